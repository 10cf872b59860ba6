//===- Variants.cpp -------------------------------------------------------===//
#include "Variants.h"
#include "edit/UnifiedDiff.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using clang::tok::TokenKind;

namespace migrate {
namespace {

constexpr StringLiteral Model = "torch::nn::Linear";
constexpr StringLiteral Checked = "#define CHECKED(...) __VA_ARGS__\n";

/// A token of a program, or a comment.
struct Word {
  TokenKind Kind;
  size_t Begin, End;
  StringRef Text;
};

std::vector<Word> wordsOf(StringRef Program) {
  clang::LangOptions Options;
  Options.CPlusPlus = Options.CPlusPlus11 = Options.CPlusPlus17 = Options.LineComment = true;
  SmallString<0> Copy(Program); // the lexer wants a null behind the last byte
  clang::Lexer Lex(clang::SourceLocation::getFromRawEncoding(1), Options, Copy.c_str(), Copy.c_str(),
                   Copy.c_str() + Copy.size());
  Lex.SetCommentRetentionState(true);
  std::vector<Word> Words;
  clang::Token T;
  for (Lex.LexFromRawLexer(T); T.isNot(clang::tok::eof); Lex.LexFromRawLexer(T)) {
    size_t Begin = T.getLocation().getRawEncoding() - 1, End = Begin + T.getLength();
    Words.push_back({T.getKind(), Begin, End, Program.slice(Begin, End)});
  }
  return Words;
}

std::vector<Word> codeOf(StringRef Program) {
  std::vector<Word> Words = wordsOf(Program);
  erase_if(Words, [](const Word &W) { return W.Kind == clang::tok::comment; });
  return Words;
}

std::vector<StringRef> comments(StringRef Program) {
  std::vector<StringRef> Found;
  for (const Word &W : wordsOf(Program))
    if (W.Kind == clang::tok::comment)
      Found.push_back(W.Text);
  return Found;
}

/// The word that closes what the word `Open` opens.
size_t closing(ArrayRef<Word> Words, size_t Open) {
  TokenKind Opens = Words[Open].Kind, Closes = Opens == clang::tok::l_paren ? clang::tok::r_paren : clang::tok::r_brace;
  unsigned Depth = 0;
  for (size_t I = Open; I != Words.size(); ++I) {
    Depth += Words[I].Kind == Opens;
    if (Words[I].Kind == Closes && --Depth == 0)
      return I;
  }
  return Words.size();
}

/// Whether the words from `At` on are these, separated by blanks.
bool spells(ArrayRef<Word> Words, size_t At, StringRef Text) {
  for (StringRef Rest = Text; !Rest.empty(); ++At) {
    auto [Next, More] = Rest.split(' ');
    if (At >= Words.size() || Words[At].Text != Next)
      return false;
    Rest = More;
  }
  return true;
}

/// Replacements in one text, from its end to its beginning.
class Rewriting {
public:
  explicit Rewriting(StringRef Text) : Text(Text) {}
  void replace(size_t Begin, size_t End, StringRef With) { All.push_back({Begin, End, With.str()}); }
  void insert(size_t At, StringRef With) { replace(At, At, With); }
  std::string done() {
    llvm::stable_sort(All, [](const auto &A, const auto &B) { return std::get<0>(A) > std::get<0>(B); });
    std::string Result = Text.str();
    for (const auto &[Begin, End, With] : All)
      Result.replace(Begin, End - Begin, With);
    return Result;
  }

private:
  StringRef Text;
  std::vector<std::tuple<size_t, size_t, std::string>> All;
};

/// Where the example's lines begin and end.
std::pair<size_t, size_t> exampleOf(StringRef Program) {
  size_t From = Program.find(ExampleBegins), To = Program.find(ExampleEnds);
  if (From == StringRef::npos || To == StringRef::npos)
    return {0, Program.size()};
  return {Program.find('\n', From) + 1, Program.rfind('\n', To) + 1};
}

//===----------------------------------------------------------------------===//
// Other ways to write it
//===----------------------------------------------------------------------===//

/// A comment ahead of each line and one behind it.
std::string withComments(StringRef Program) {
  std::vector<Word> Words = wordsOf(Program);
  Rewriting Result(Program);
  size_t Number = 0;
  for (size_t Line = 0; Line < Program.size();) {
    size_t End = std::min(Program.find('\n', Line), Program.size());
    StringRef Text = Program.slice(Line, End);
    bool Inside = any_of(Words, [&](const Word &W) { return W.Begin < Line && Line < W.End; }) ||
                  Program.take_front(Line).ends_with("\\\n");
    bool Commented = any_of(Words, [&](const Word &W) {
      return W.Kind == clang::tok::comment && W.Begin < End && W.End >= End; // up to the next line at least
    });
    if (!Text.trim().empty() && !Inside) {
      ++Number;
      Result.insert(Line + Text.size() - Text.ltrim().size(), ("/* ahead of " + Twine(Number) + " */ ").str());
      if (!Commented && !Text.ends_with("\\"))
        Result.insert(End, ("  // behind " + Twine(Number)).str());
    }
    Line = End + 1;
  }
  return Result.done();
}

/// Functions that the example defines, outside of `main`, as templates whose parameter has a default.
std::optional<std::string> withFunctionTemplates(StringRef Program) {
  auto [From, To] = exampleOf(Program);
  std::vector<Word> Words = codeOf(Program);
  erase_if(Words, [From = From, To = To](const Word &W) { return W.Begin < From || W.End > To; });
  Rewriting Result(Program);
  bool Any = false;
  for (size_t I = 0, First = 0; I < Words.size(); ++I) {
    if (Words[I].Kind == clang::tok::semi) {
      First = I + 1;
    } else if (Words[I].Kind == clang::tok::l_brace) {
      bool Function =
          any_of(ArrayRef(Words).slice(First, I - First), [](const Word &W) { return W.Kind == clang::tok::r_paren; });
      if (Function && Words[First].Text != "template") {
        Result.insert(Words[First].Begin, "template <typename = int> ");
        Any = true;
      }
      I = closing(Words, I);
      First = I + 1;
    }
  }
  return Any ? std::optional(Result.done()) : std::nullopt;
}

/// `main` as a template of its model's type, which `main` then calls for each of the second types.
std::optional<std::string> withMainTemplate(StringRef Program, ArrayRef<StringRef> Types) {
  std::vector<Word> Words = codeOf(Program);
  size_t Main = 1;
  while (Main < Words.size() && !spells(Words, Main - 1, "int main ("))
    ++Main;
  if (Main >= Words.size())
    return std::nullopt;
  size_t Parameters = closing(Words, Main + 1), End = closing(Words, Parameters + 1);
  if (End >= Words.size())
    return std::nullopt;
  Rewriting Result(Program);
  Result.replace(Words[Main - 1].Begin, Words[Main].End, "template <typename ModelType, typename> int run");
  bool Named = false;
  for (size_t I = Parameters; I != End; ++I) {
    if (!Named && spells(Words, I, "torch :: nn :: Linear")) {
      Named = true; // now nearly everything depends on it
      Result.replace(Words[I].Begin, Words[I + 4].End, "ModelType");
    }
    if (spells(Words, I, "item <"))
      Result.insert(Words[I].Begin, "template ");
  }
  StringRef Declared = Program.slice(Words[Main].End, Words[Parameters].End);
  std::string Calls = "  return 0;\n}\n\nint main" + Declared.str() + " {\n";
  for (StringRef Type : Types)
    Calls += ("  run<" + Model + ", " + Type + ">(" + (Declared.contains("argc") ? "argc, argv" : "") + ");\n").str();
  Result.replace(Words[End].Begin, Words[End].End, Calls + "}");
  return Result.done();
}

/// Whether the example is in `main`, or the head of it.
bool inMain(StringRef Program) {
  auto [From, To] = exampleOf(Program);
  std::vector<Word> Words = codeOf(Program);
  for (size_t I = 0; I + 2 < Words.size(); ++I)
    if (spells(Words, I, "int main (")) {
      size_t Body = closing(Words, I + 2) + 1, End = Body < Words.size() ? closing(Words, Body) : Words.size();
      return Words[I].Begin < To && (End >= Words.size() || From < Words[End].End);
    }
  return false;
}

/// The example's lines without comments; none if one of them is a directive.
std::optional<std::vector<std::string>> plainLines(StringRef Program) {
  auto [From, To] = exampleOf(Program);
  StringRef Example = Program.slice(From, To);
  std::string Plain = Example.str();
  for (const Word &W : wordsOf(Example))
    if (W.Kind == clang::tok::comment)
      std::fill(Plain.begin() + W.Begin, Plain.begin() + W.End, ' ');
  std::vector<std::string> Lines;
  for (StringRef Rest = Plain; !Rest.empty();) {
    auto [Line, Next] = Rest.split('\n');
    if (Line.ltrim().starts_with("#"))
      return std::nullopt;
    if (!Line.trim().empty())
      Lines.push_back(Line.rtrim().str());
    Rest = Next;
  }
  return Lines.empty() ? std::nullopt : std::optional(std::move(Lines));
}

std::optional<std::string> inMacro(StringRef Program, bool Argument) {
  auto [From, To] = exampleOf(Program);
  auto Lines = plainLines(Program);
  if (!Lines)
    return std::nullopt;
  std::string Head = Program.take_front(From).str(), Tail = Program.drop_front(To).str();
  if (Argument)
    return (Checked + Head + "CHECKED(\n" + llvm::join(*Lines, "\n") + "\n)\n" + Tail).str();
  return "#define STATEMENTS " + llvm::join(*Lines, " \\\n") + "\n" + Head + "STATEMENTS\n" + Tail;
}

/// Losses are left alone, so that nothing trains.
std::string withoutTraining(StringRef Program) {
  std::vector<Word> Words = codeOf(Program);
  Rewriting Result(Program);
  for (size_t I = 1; I + 1 < Words.size(); ++I)
    if (Words[I - 1].Kind == clang::tok::period && spells(Words, I, "backward ("))
      Result.replace(Words[I].Begin, Words[closing(Words, I + 1)].End, "detach()");
  return Result.done();
}

std::string switchedOff(StringRef Program, StringRef Code) {
  auto [From, To] = exampleOf(Program);
  return (Program.take_front(From) + "// accelerate-migrate: off-begin(" + Code + ")\n" + Program.slice(From, To) +
          "// accelerate-migrate: off-end(" + Code + ")\n" + Program.drop_front(To))
      .str();
}

//===----------------------------------------------------------------------===//
// What must have become of it
//===----------------------------------------------------------------------===//

/// The code of a program, one word a line. Where a function's handle is declared is its own business.
std::string codeLines(ArrayRef<Word> Words) {
  constexpr StringLiteral Handle = "accelerate :: Accelerator accelerator ;";
  std::string Lines;
  for (size_t I = 0; I != Words.size();) {
    if (spells(Words, I, Handle)) {
      I += Handle.count(' ') + 1;
      continue;
    }
    Lines += (Words[I++].Text + "\n").str();
  }
  return Lines;
}
std::string codeLines(StringRef Program) { return codeLines(codeOf(Program)); }

std::string differs(StringRef Expected, StringRef Got) {
  if (Expected == Got)
    return "";
  return "it becomes something else\n" + unifiedDiff("words", Expected.str(), Got.str());
}

/// The program with the macro of `inMacro` replaced by what it stands for.
std::string expanded(StringRef Program, bool Argument) {
  size_t End = 0;
  do
    End = Program.find('\n', End) + 1;
  while (End > 1 && Program[End - 2] == '\\');
  std::vector<Word> Macro = codeOf(Program.take_front(End)), Words = codeOf(Program.drop_front(End)), Result;
  for (size_t I = 0; I < Words.size(); ++I) {
    if (!Argument && Words[I].Text == "STATEMENTS") {
      append_range(Result, drop_begin(Macro, 3)); // `#define STATEMENTS`
    } else if (Argument && spells(Words, I, "CHECKED (")) {
      size_t Close = closing(Words, I + 1);
      Result.insert(Result.end(), Words.begin() + I + 2, Words.begin() + Close);
      I = Close;
    } else {
      Result.push_back(Words[I]);
    }
  }
  return codeLines(Result);
}

/// Codes of findings, with their lines or without.
std::string said(const ExampleOutcome &O, bool Lines) {
  std::vector<std::string> All;
  for (const Finding &F : O.Findings)
    All.push_back(F.Code + (Lines ? ":" + std::to_string(F.Line) : ""));
  llvm::sort(All);
  return llvm::join(All, ", ");
}

std::string saysOther(const ExampleOutcome &Example, const ExampleOutcome &Other, bool Lines) {
  std::string First = said(Example, Lines), Second = said(Other, Lines);
  return First == Second ? "" : "it is told '" + Second + "', and not '" + First + "'";
}

bool says(const ExampleOutcome &O, function_ref<bool(const Finding &)> What) {
  auto [First, Last] = exampleLines(O.Before);
  return any_of(O.Findings, [&, First = First, Last = Last](const Finding &F) {
    return First <= F.Line && F.Line <= Last && What(F);
  });
}

std::string macro(const Rule &R, const ExampleOutcome &Example, const ExampleOutcome &Other, bool Argument) {
  auto Own = [&](const Finding &F) { return F.Code == R.Code; };
  auto Refuses = [&](const Finding &F) { return F.Level == Severity::Refusal; };
  bool Refused = Other.What == Verdict::Refused && says(Other, Refuses);
  if (Other.Edited)
    if (std::string Why = differs(codeLines(Example.Now), expanded(Other.Now, Argument)); !Why.empty())
      return Why;
  if (Example.Edited && !Other.Edited && !Refused)
    return "nothing is edited, and nothing says that the macro is why";
  if (says(Example, Own) && !says(Other, Own) && !Refused)
    return "nothing is reported";
  return "";
}

std::string suppressed(const Rule &R, bool Edits, const ExampleOutcome &Example, const ExampleOutcome &Other) {
  if (says(Other, [&](const Finding &F) { return F.Code == R.Code; }))
    return "it is reported, although it is switched off";
  // What isn't found can't be switched off.
  bool Found = Edits || says(Example, [&](const Finding &F) { return F.Code == R.Code; });
  bool Unused = says(Other, [](const Finding &F) { return F.Code == "AM1001"; });
  if (Found == Unused && (Found || Example.Edited))
    return Found ? "its suppression is reported as unused" : "its suppression isn't reported as unused";
  if (Edits && (Other.Edited || !StringRef(Other.Reason).starts_with(R.Code + " ") ||
                !StringRef(Other.Reason).ends_with("switched off")))
    return "the program isn't left alone because of what is switched off";
  return "";
}

std::string again(const ExampleOutcome &Example, const ExampleOutcome &Other) {
  if (Other.Edited)
    return "migrated again, it changes again\n" + unifiedDiff("again", Other.Before, Other.Now);
  for (const Finding &F : Other.Findings)
    if (none_of(Example.Findings, [&](const Finding &X) { return X.Code == F.Code && X.Message == F.Message; }))
      return "migrated again, it is told what it wasn't before: " + F.Code + " " + F.Name;
  return "";
}

} // namespace

std::pair<unsigned, unsigned> exampleLines(StringRef Program) {
  auto [From, To] = exampleOf(Program);
  unsigned First = Program.take_front(From).count('\n') + 1;
  return {First, First + Program.slice(From, To).rtrim('\n').count('\n')};
}

std::optional<std::string> written(Variant V, StringRef Program, StringRef Code) {
  switch (V) {
  case Variant::Again:
    return Program.str();
  case Variant::Comments:
    return withComments(Program);
  case Variant::Template:
    if (!inMain(Program))
      if (auto Functions = withFunctionTemplates(Program))
        return Functions;
    return withMainTemplate(Program, {"int"});
  case Variant::Instantiations:
    return withMainTemplate(Program, {"int", "long"});
  case Variant::Macro:
    return inMacro(Program, /*Argument=*/false);
  case Variant::MacroArgument:
    return inMacro(Program, /*Argument=*/true);
  case Variant::Untrained:
    return withoutTraining(Program);
  case Variant::Suppressed:
    return switchedOff(Program, Code);
  }
  llvm_unreachable("every variant is written");
}

std::string whatIsWrong(Variant V, const Rule &R, const RuleExample &E, const ExampleOutcome &Example,
                        const ExampleOutcome &Other) {
  bool Edits = E.After && StringRef(*E.After).rtrim() != StringRef(E.Before).rtrim();
  switch (V) {
  case Variant::Again:
    return again(Example, Other);
  case Variant::Comments:
    if (std::string Why = differs(codeLines(Example.Now), codeLines(Other.Now)); !Why.empty())
      return Why;
    if (comments(Other.Before) != comments(Other.Now))
      return "comments are lost\n" + unifiedDiff("comments", Other.Before, Other.Now);
    return saysOther(Example, Other, /*Lines=*/true);
  case Variant::Template:
  case Variant::Instantiations:
    // Migrated and then rewritten, or rewritten and then migrated.
    if (std::string Why = differs(codeLines(*written(V, Example.Now, R.Code)), codeLines(Other.Now)); !Why.empty())
      return Why;
    return saysOther(Example, Other, /*Lines=*/false);
  case Variant::Macro:
  case Variant::MacroArgument:
    return macro(R, Example, Other, V == Variant::MacroArgument);
  case Variant::Untrained:
    if (Other.Edited || !Other.Findings.empty() || Other.What != Verdict::NothingToDo)
      return "it doesn't train, and isn't left alone";
    return "";
  case Variant::Suppressed:
    return suppressed(R, Edits, Example, Other);
  }
  llvm_unreachable("every variant is looked at");
}

} // namespace migrate
