//===- UnifiedDiff.cpp ----------------------------------------------------===//
#include "edit/UnifiedDiff.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <vector>

using llvm::StringRef;

namespace migrate {
namespace {

/// With their line ends; only a missing final newline makes the last one end without.
std::vector<StringRef> linesOf(StringRef Text) {
  std::vector<StringRef> Lines;
  while (!Text.empty()) {
    size_t End = Text.find('\n');
    End = End == StringRef::npos ? Text.size() : End + 1;
    Lines.push_back(Text.take_front(End));
    Text = Text.drop_front(End);
  }
  return Lines;
}

struct Change {
  size_t OldBegin, OldEnd, NewBegin, NewEnd;
};

/// The changed stretches, by the longest common subsequence of what is between the equal head and tail. A migration
/// changes few lines, so the quadratic table stays small; beyond a bound the whole middle is one change.
std::vector<Change> changes(const std::vector<StringRef> &A, const std::vector<StringRef> &B) {
  size_t Head = 0, TailA = A.size(), TailB = B.size();
  while (Head < TailA && Head < TailB && A[Head] == B[Head])
    ++Head;
  while (TailA > Head && TailB > Head && A[TailA - 1] == B[TailB - 1])
    --TailA, --TailB;
  if (Head == TailA && Head == TailB)
    return {};
  size_t N = TailA - Head, M = TailB - Head;
  if (N * M > 64u << 20)
    return {{Head, TailA, Head, TailB}};
  std::vector<uint32_t> Length((N + 1) * (M + 1));
  auto At = [&](size_t I, size_t J) -> uint32_t & { return Length[I * (M + 1) + J]; };
  for (size_t I = N; I-- > 0;)
    for (size_t J = M; J-- > 0;)
      At(I, J) = A[Head + I] == B[Head + J] ? At(I + 1, J + 1) + 1 : std::max(At(I + 1, J), At(I, J + 1));
  std::vector<Change> Result;
  for (size_t I = 0, J = 0; I < N || J < M;) {
    if (I < N && J < M && A[Head + I] == B[Head + J]) {
      ++I, ++J;
      continue;
    }
    Change C{Head + I, Head + I, Head + J, Head + J};
    while ((I < N || J < M) && !(I < N && J < M && A[Head + I] == B[Head + J])) {
      if (J >= M || (I < N && At(I + 1, J) >= At(I, J + 1)))
        ++I;
      else
        ++J;
    }
    C.OldEnd = Head + I;
    C.NewEnd = Head + J;
    Result.push_back(C);
  }
  return Result;
}

/// As git names files with quotes, backslashes and control characters.
std::string quoted(const std::string &Name) {
  std::string Result;
  for (unsigned char C : Name) {
    if (C == '"' || C == '\\')
      Result += {'\\', static_cast<char>(C)};
    else if (C < 0x20 || C == 0x7f)
      Result += {'\\', static_cast<char>('0' + (C >> 6)), static_cast<char>('0' + (C >> 3 & 7)),
                 static_cast<char>('0' + (C & 7))};
    else
      Result += static_cast<char>(C);
  }
  return Result == Name ? Name : '"' + Result + '"';
}

} // namespace

std::string unifiedDiff(StringRef Name, StringRef Before, StringRef After) {
  std::vector<StringRef> A = linesOf(Before), B = linesOf(After);
  std::vector<Change> All = changes(A, B);
  if (All.empty())
    return "";
  constexpr size_t Context = 3;
  std::string Text;
  llvm::raw_string_ostream OS(Text);
  std::string Old = quoted("a/" + Name.str()), New = quoted("b/" + Name.str());
  OS << "diff --git " << Old << " " << New << "\n--- " << Old << "\n+++ " << New << "\n";
  auto Line = [&](char Mark, StringRef L) {
    OS << Mark << L;
    if (!L.ends_with("\n"))
      OS << "\n\\ No newline at end of file\n";
  };
  for (size_t First = 0; First != All.size();) {
    size_t Last = First;
    while (Last + 1 != All.size() && All[Last + 1].OldBegin - All[Last].OldEnd <= 2 * Context)
      ++Last;
    size_t OldBegin = All[First].OldBegin - std::min(All[First].OldBegin, Context);
    size_t NewBegin = All[First].NewBegin - (All[First].OldBegin - OldBegin);
    size_t OldEnd = std::min(All[Last].OldEnd + Context, A.size());
    size_t NewEnd = All[Last].NewEnd + (OldEnd - All[Last].OldEnd);
    auto Span = [&](size_t Begin, size_t End) {
      OS << (End == Begin ? Begin : Begin + 1);
      if (End - Begin != 1)
        OS << "," << End - Begin;
    };
    OS << "@@ -";
    Span(OldBegin, OldEnd);
    OS << " +";
    Span(NewBegin, NewEnd);
    OS << " @@\n";
    size_t At = OldBegin;
    for (size_t I = First; I <= Last; ++I) {
      for (; At != All[I].OldBegin; ++At)
        Line(' ', A[At]);
      for (; At != All[I].OldEnd; ++At)
        Line('-', A[At]);
      for (size_t J = All[I].NewBegin; J != All[I].NewEnd; ++J)
        Line('+', B[J]);
    }
    for (; At != OldEnd; ++At)
      Line(' ', A[At]);
    First = Last + 1;
  }
  return Text;
}

} // namespace migrate
