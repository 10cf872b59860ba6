//===- WriteTree.h - All files or none, whatever happens ------------------===//
//
// The new texts are written into a folder of their own below the project's root, then a journal that lists them, and
// then each is renamed to where it belongs. A run that is killed before the journal is complete has changed nothing,
// and one that is killed later has said all that is to be done: the next run undoes the first (removes the folder) and
// completes the second.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_EDIT_WRITETREE_H
#define ACCELERATE_MIGRATE_EDIT_WRITETREE_H

#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace migrate {

/// Path -> text before, text after.
using TextChanges = std::map<std::string, std::pair<std::string, std::string>>;

/// The name of the folder, below the root.
extern const char *const WriteFolder;

/// Writes all texts, or none: an error says what is in the way, and that nothing was changed. Permissions stay.
/// A file whose text isn't the one before (somebody else has written it since) is such an error.
llvm::Error writeTree(llvm::StringRef Root, const TextChanges &Changes);

enum class Recovery { NothingToDo, Undone, Completed };

/// What a run that was killed has left below `Root`; waits for one that is writing now. An error if it can't be put
/// right, because a file has been changed since.
llvm::Expected<Recovery> recoverTree(llvm::StringRef Root);

} // namespace migrate

#endif
