//===- Edits.h - All-or-none sets of replacements -------------------------===//
#ifndef ACCELERATE_MIGRATE_EDIT_EDITS_H
#define ACCELERATE_MIGRATE_EDIT_EDITS_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace migrate {

/// Replaces the bytes [Begin, End) of a file. Insertions at one offset nest: what closes a node stands before what
/// opens the next one, inner nodes close first and open last. Of one node, what opened first closes last.
struct Edit {
  enum class Side { Closes, Opens, Replaces };
  std::string Path;
  uint32_t Begin = 0, End = 0;
  std::string Text;
  Side Where = Side::Replaces;
  uint32_t NodeSize = 0;
  std::string Opened; ///< of what closes: the text that it was opened with
  std::string Code, Name, Safety;
  uint32_t Line = 0;

  bool operator==(const Edit &O) const {
    // Two nodes that end at one place each close with the same text: the node's size tells them apart.
    return Path == O.Path && Begin == O.Begin && End == O.End && Text == O.Text && Where == O.Where &&
           NodeSize == O.NodeSize && Code == O.Code;
  }
};

/// Sorts edits into the order in which they are applied and drops duplicates (a header reached from several units, a
/// template from several instantiations). Two edits that want the same bytes are an error that names both rules.
llvm::Error mergeEdits(std::vector<Edit> &Edits);

/// The text of a file with its part of the merged edits.
std::string applyEdits(llvm::StringRef Original, const std::vector<Edit> &Merged, llvm::StringRef Path);

} // namespace migrate

#endif
