//===- Format.cpp ---------------------------------------------------------===//
#include "edit/Format.h"
#include "clang/Format/Format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace migrate {

static bool hasStyle(StringRef Path, StringRef Root) {
  for (StringRef Dir = sys::path::parent_path(Path); Dir.starts_with(Root) && !Dir.empty();
       Dir = sys::path::parent_path(Dir))
    if (sys::fs::exists(Dir + "/.clang-format") || sys::fs::exists(Dir + "/_clang-format"))
      return true;
  return false;
}

std::string formatTouched(StringRef Path, StringRef Root, std::string After, const std::vector<Edit> &Merged,
                          std::string &Ignored) {
  if (StringRef(Path).ends_with(".txt") || StringRef(Path).ends_with(".cmake") || !hasStyle(Path, Root))
    return After;
  // Clang's messages aren't for our users; that the style isn't used is.
  Expected<clang::format::FormatStyle> Style = clang::format::getStyle(
      "file", Path, "none", After, nullptr, /*AllowUnknownOptions=*/false, [](const SMDiagnostic &, void *) {});
  if (!Style) {
    Ignored = llvm::toString(Style.takeError());
    return After;
  }
  if (Style->DisableFormat)
    return After;
  std::vector<clang::tooling::Range> Touched;
  int64_t Shift = 0;
  for (const Edit &E : Merged) {
    if (E.Path != Path)
      continue;
    // The line breaks around what is inserted belong to its neighbours.
    StringRef Text = E.Text, Code = Text.trim();
    if (!Code.empty())
      Touched.emplace_back(E.Begin + Shift + (Code.begin() - Text.begin()), Code.size());
    else if (E.Begin == 0 || After[E.Begin + Shift - 1] != '\n') // not a line that went as a whole
      Touched.emplace_back(E.Begin + Shift, 0);
    Shift += static_cast<int64_t>(E.Text.size()) - (E.End - E.Begin);
  }
  clang::tooling::Replacements Changes = clang::format::reformat(*Style, After, Touched, Path);
  Expected<std::string> Formatted = clang::tooling::applyAllReplacements(After, Changes);
  if (!Formatted) {
    consumeError(Formatted.takeError());
    return After;
  }
  return *Formatted;
}

} // namespace migrate
