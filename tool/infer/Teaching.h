//===- Teaching.h - What users say about functions of their own -----------===//
//
// Roles come from types and flow. Where these end (a function of another library, a class whose objects are polled),
// the user says in `.accelerate-migrate.yaml` what a name stands for. The bodies of taught functions aren't looked at.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_TEACHING_H
#define ACCELERATE_MIGRATE_INFER_TEACHING_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace migrate {

struct Teaching {
  llvm::StringSet<> Loggers; ///< functions that print or write: sinks, run on the main process only
  llvm::StringSet<> Saves;   ///< functions that write a checkpoint: the same, and the others wait
  llvm::StringSet<> Devices; ///< functions, or classes with methods and conversions, that give a device
  llvm::StringSet<>
      Loaders; ///< functions, or classes with methods and iterators, that give batches, alike on all ranks

  bool isLogger(llvm::StringRef Function) const { return !Loggers.empty() && Loggers.contains(plain(Function)); }
  bool isSave(llvm::StringRef Function) const { return !Saves.empty() && Saves.contains(plain(Function)); }
  /// Runs on the main process only.
  bool isMainOnly(llvm::StringRef Function) const { return isLogger(Function) || isSave(Function); }
  bool givesDevice(llvm::StringRef Function) const { return gives(Devices, Function); }
  bool isDevice(llvm::StringRef Class) const { return !Devices.empty() && Devices.contains(plain(Class)); }
  bool givesBatch(llvm::StringRef Function) const { return gives(Loaders, Function); }
  bool isLoader(llvm::StringRef Class) const { return !Loaders.empty() && Loaders.contains(plain(Class)); }

  /// A name without template arguments; `operator<` has none.
  static std::string plain(llvm::StringRef Name) {
    size_t Operator = Name.rfind("::operator");
    std::string Result;
    int Depth = 0;
    for (char C : Name.take_front(Operator)) {
      Depth += C == '<';
      if (Depth == 0)
        Result += C;
      Depth -= C == '>';
    }
    return Operator == llvm::StringRef::npos ? Result : Result + Name.substr(Operator).str();
  }

private:
  /// A function that was taught, or a method of a class that was.
  static bool gives(const llvm::StringSet<> &Taught, llvm::StringRef Function) {
    if (Taught.empty())
      return false;
    std::string Name = plain(Function);
    return Taught.contains(Name) || Taught.contains(llvm::StringRef(Name).rsplit("::").first);
  }
};

} // namespace migrate

#endif
