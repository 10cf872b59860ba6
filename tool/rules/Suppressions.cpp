//===- Suppressions.cpp ---------------------------------------------------===//
#include "rules/Suppressions.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/SmallString.h"

using namespace llvm;

namespace migrate {
namespace {

constexpr StringLiteral Mark = "accelerate-migrate:";

class Scanner {
public:
  explicit Scanner(StringRef Text) : Text(Text) {}

  Suppressions run() {
    clang::LangOptions Options;
    Options.CPlusPlus = Options.CPlusPlus11 = true;
    SmallString<0> Copy(Text); // the lexer wants a null behind the last byte
    clang::Lexer Lex(clang::SourceLocation::getFromRawEncoding(1), Options, Copy.c_str(), Copy.c_str(),
                     Copy.c_str() + Copy.size());
    Lex.SetCommentRetentionState(true);
    size_t Seen = 0;
    unsigned Line = 1, CodeLine = 0; // of the last token that isn't a comment
    clang::Token T;
    for (Lex.LexFromRawLexer(T); T.isNot(clang::tok::eof); Lex.LexFromRawLexer(T)) {
      size_t Begin = T.getLocation().getRawEncoding() - 1;
      Line += Text.slice(Seen, Begin).count('\n');
      Seen = Begin;
      if (T.isNot(clang::tok::comment)) {
        for (size_t I : Above) // what stands alone is about the next line of code
          Out.All[I].First = Out.All[I].Last = Line;
        Above.clear();
        CodeLine = Line + Text.substr(Begin, T.getLength()).count('\n');
        continue;
      }
      comment(Begin, Text.substr(Begin, T.getLength()), Line, /*Alone=*/CodeLine != Line);
    }
    for (const Suppression &Begin : Open)
      malformed(Begin, "`off-begin(" + Begin.Code + ")` has no `off-end(" + Begin.Code + ")`");
    return std::move(Out);
  }

private:
  void malformed(Suppression At, std::string Why) {
    At.Code = std::move(Why);
    Out.Malformed.push_back(std::move(At));
  }

  void comment(size_t Begin, StringRef Comment, unsigned Line, bool Alone) {
    size_t At = Comment.find(Mark);
    if (At == StringRef::npos)
      return;
    Suppression S;
    S.Line = Line + Comment.take_front(At).count('\n');
    S.Column = Begin + At - (Text.rfind('\n', Begin + At) + 1) + 1; // npos + 1 is 0
    S.First = S.Last = S.Line;
    StringRef Rest = Comment.drop_front(At + Mark.size()).ltrim(" \t");
    StringRef Verb = Rest.take_while([](char C) { return C == '-' || (C >= 'a' && C <= 'z'); });
    Rest = Rest.drop_front(Verb.size());
    size_t Close = Rest.find(')');
    if ((Verb != "off" && Verb != "off-begin" && Verb != "off-end") || !Rest.starts_with("(") ||
        Close == StringRef::npos)
      return malformed(S, "there are `off(CODE)`, `off-begin(CODE)` and `off-end(CODE)`, with one code or several");
    SmallVector<StringRef, 4> Codes;
    Rest.slice(1, Close).split(Codes, ',');
    for (StringRef Code : Codes) {
      S.Code = Code.trim().str();
      if (S.Code.empty())
        malformed(S, "a code is missing");
      else if (Verb == "off-begin")
        Open.push_back(S);
      else if (Verb == "off-end")
        end(S);
      else {
        if (Alone)
          Above.push_back(Out.All.size());
        Out.All.push_back(S);
      }
    }
  }

  void end(const Suppression &End) {
    for (size_t I = Open.size(); I-- != 0;)
      if (Open[I].Code == End.Code) {
        Suppression S = Open[I];
        S.Last = End.Line;
        Out.All.push_back(S);
        Open.erase(Open.begin() + I);
        return;
      }
    malformed(End, "`off-end(" + End.Code + ")` has no `off-begin(" + End.Code + ")`");
  }

  StringRef Text;
  Suppressions Out;
  std::vector<size_t> Above;     ///< in `Out.All`: waiting for the next line of code
  std::vector<Suppression> Open; ///< begun
};

} // namespace

Suppressions Suppressions::in(StringRef Text) { return Text.contains(Mark) ? Scanner(Text).run() : Suppressions(); }

} // namespace migrate
