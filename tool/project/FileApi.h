//===- FileApi.h - What CMake says about targets --------------------------===//
#ifndef ACCELERATE_MIGRATE_PROJECT_FILEAPI_H
#define ACCELERATE_MIGRATE_PROJECT_FILEAPI_H

#include "llvm/ADT/StringRef.h"
#include <map>
#include <set>
#include <string>

namespace migrate {

/// Target -> the targets that are built into it, directly or not, itself included; read from the reply of CMake's file
/// API (cmake-file-api(7), codemodel version 2) in a build folder. Empty if there is no reply: CMake writes one for
/// whoever has asked (an IDE, or `touch .cmake/api/v1/query/codemodel-v2` before configuring).
std::map<std::string, std::set<std::string>> targetsOf(llvm::StringRef BuildDir);

/// Executable target -> the path of its program, from the same reply (of the first configuration, if it tells of
/// several).
std::map<std::string, std::string> programsOf(llvm::StringRef BuildDir);

} // namespace migrate

#endif
