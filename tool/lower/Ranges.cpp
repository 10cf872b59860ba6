//===- Ranges.cpp ---------------------------------------------------------===//
#include "lower/Ranges.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

using namespace clang;

namespace migrate {

/// Out of a macro without parameters, `#define ROWS 64`, whose first (last) token stands at `Loc`: to its name.
static bool toName(SourceLocation &Loc, bool Last, const ASTContext &Ctx) {
  const SourceManager &SM = Ctx.getSourceManager();
  if (!Loc.isMacroID() || SM.getSLocEntry(SM.getFileID(Loc)).getExpansion().isFunctionMacroExpansion() ||
      SM.isMacroArgExpansion(Loc))
    return false;
  SourceLocation Name;
  unsigned Length = Last ? Lexer::MeasureTokenLength(SM.getSpellingLoc(Loc), SM, Ctx.getLangOpts()) : 0;
  if (!(Last ? Length > 0 && SM.isAtEndOfImmediateMacroExpansion(Loc.getLocWithOffset(int(Length)), &Name)
             : SM.isAtStartOfImmediateMacroExpansion(Loc, &Name)))
    return false;
  Loc = Name;
  return true;
}

std::optional<CharSourceRange> typedByUser(SourceLocation First, SourceLocation Last, const ASTContext &Ctx) {
  const SourceManager &SM = Ctx.getSourceManager();
  while (First.isMacroID() || Last.isMacroID()) {
    bool Named = toName(First, /*Last=*/false, Ctx);
    if (toName(Last, /*Last=*/true, Ctx) || Named)
      continue;
    bool BothArgs =
        First.isMacroID() && Last.isMacroID() && SM.isMacroArgExpansion(First) && SM.isMacroArgExpansion(Last);
    // Different calls, or a macro's body.
    if (!BothArgs || SM.getImmediateExpansionRange(First).getBegin() != SM.getImmediateExpansionRange(Last).getBegin())
      return std::nullopt;
    First = SM.getImmediateSpellingLoc(First);
    Last = SM.getImmediateSpellingLoc(Last);
  }
  CharSourceRange R = Lexer::makeFileCharRange(CharSourceRange::getTokenRange(First, Last), SM, Ctx.getLangOpts());
  bool Usable = R.isValid() && SM.getFileID(R.getBegin()) == SM.getFileID(R.getEnd());
  return Usable ? std::optional(R) : std::nullopt;
}

} // namespace migrate
