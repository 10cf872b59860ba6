//===- Edits.cpp ----------------------------------------------------------===//
#include "edit/Edits.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <tuple>

using namespace llvm;

namespace migrate {

llvm::Error mergeEdits(std::vector<Edit> &Edits) {
  auto Key = [](const Edit &E) {
    // Smaller nodes close first; larger nodes open first.
    int64_t Nesting = E.Where == Edit::Side::Closes ? int64_t(E.NodeSize) : -int64_t(E.NodeSize);
    return std::make_tuple(std::cref(E.Path), E.Begin, int(E.Where), Nesting, E.End);
  };
  stable_sort(Edits, [&](const Edit &A, const Edit &B) {
    if (Key(A) != Key(B))
      return Key(A) < Key(B);
    return A.Opened != B.Opened ? A.Opened > B.Opened : A.Text < B.Text;
  });
  Edits.erase(std::unique(Edits.begin(), Edits.end()), Edits.end());
  const Edit *Last = nullptr; // the last one that takes bytes away
  for (const Edit &E : Edits) {
    bool Overlaps =
        Last && Last->Path == E.Path && E.Begin < Last->End && !(E.Begin == E.End && E.Begin == Last->Begin);
    if (Overlaps)
      return createStringError(inconvertibleErrorCode(), Last->Code + " (" + Last->Name + ") and " + E.Code + " (" +
                                                             E.Name + ") both edit " + E.Path + ":" + Twine(E.Line));
    if (E.Begin != E.End)
      Last = &E;
  }
  return Error::success();
}

std::string applyEdits(StringRef Original, const std::vector<Edit> &Merged, StringRef Path) {
  std::string Result;
  size_t At = 0;
  for (const Edit &E : Merged) {
    if (E.Path != Path)
      continue;
    Result += Original.slice(At, E.Begin);
    Result += E.Text;
    At = std::max<size_t>(At, E.End);
  }
  Result += Original.drop_front(At);
  return Result;
}

} // namespace migrate
