//===- Ranges.cpp ---------------------------------------------------------===//
#include "lower/Ranges.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

using namespace clang;

namespace migrate {

std::optional<CharSourceRange> typedByUser(SourceLocation First, SourceLocation Last, const ASTContext &Ctx) {
  const SourceManager &SM = Ctx.getSourceManager();
  for (; First.isMacroID() || Last.isMacroID();
       First = SM.getImmediateSpellingLoc(First), Last = SM.getImmediateSpellingLoc(Last)) {
    bool BothArgs =
        First.isMacroID() && Last.isMacroID() && SM.isMacroArgExpansion(First) && SM.isMacroArgExpansion(Last);
    // Different calls, or a macro's body.
    if (!BothArgs || SM.getImmediateExpansionRange(First).getBegin() != SM.getImmediateExpansionRange(Last).getBegin())
      return std::nullopt;
  }
  CharSourceRange R = Lexer::makeFileCharRange(CharSourceRange::getTokenRange(First, Last), SM, Ctx.getLangOpts());
  bool Usable = R.isValid() && SM.getFileID(R.getBegin()) == SM.getFileID(R.getEnd());
  return Usable ? std::optional(R) : std::nullopt;
}

} // namespace migrate
