//===- TextPlaces.cpp - Where in a text new lines go ----------------------===//
//
// What the syntax tree doesn't tell: comments, and lines that are the preprocessor's.
//
//===----------------------------------------------------------------------===//
#include "rules/TextPlaces.h"
#include <tuple>

using llvm::StringRef;

namespace migrate {

uint32_t behindConditional(StringRef Source, uint32_t End) {
  bool Other = false; // in another branch of it
  int Depth = 0, Braces = 0;
  StringRef Line, Rest = Source.substr(End);
  while (!Rest.empty()) {
    std::tie(Line, Rest) = Rest.split('\n');
    const StringRef Text = Line.trim(), Directive = Text.starts_with("#") ? Text.drop_front().ltrim() : StringRef();
    if (Directive.starts_with("endif") && Depth == 0)
      return Braces == 0 ? behindConditional(Source, Line.rtrim().end() - Source.begin()) : End;
    Other |= Depth == 0 && Directive.starts_with("el");
    if (!Other && !Text.empty() && !Text.starts_with("//"))
      return End;
    Depth += Directive.starts_with("if") - Directive.starts_with("endif");
    Braces += int(Text.count('{')) - int(Text.count('}'));
  }
  return End;
}

uint32_t aboveSuppressions(StringRef Source, uint32_t Begin) {
  StringRef Ahead = Source.take_front(Begin).rtrim(" \t");
  uint32_t Place = Begin;
  while (Ahead.ends_with("\n")) {
    Ahead = Ahead.drop_back().rtrim("\r");
    size_t Break = Ahead.rfind('\n') + 1; // npos + 1 is 0
    StringRef Line = Ahead.substr(Break);
    if (!Line.trim().starts_with("//") || !Line.contains("accelerate-migrate: off("))
      break;
    Place = Break + (Line.size() - Line.ltrim().size());
    Ahead = Ahead.take_front(Break);
  }
  return Place;
}

uint32_t behindGuard(StringRef Source) {
  const uint32_t First = Source.starts_with("\xef\xbb\xbf") ? 3 : 0;
  StringRef Rest = Source.drop_front(First), Line, Name;
  while (!Rest.empty()) {
    std::tie(Line, Rest) = Rest.split('\n');
    const StringRef Text = Line.trim();
    if (Text.empty() || Text.starts_with("//"))
      continue;
    StringRef Guard = Text;
    if (Guard.consume_front("#ifndef") && Name.empty()) {
      Name = Guard.trim();
      continue;
    }
    const bool Defines = !Name.empty() && Text.starts_with("#define") && Text.drop_front(7).trim() == Name;
    return Defines || Text == "#pragma once" ? Rest.begin() - Source.begin() : First;
  }
  return First;
}

} // namespace migrate
