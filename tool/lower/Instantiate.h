//===- Instantiate.h - What skipped bodies would have made ------*- C++ -*-===//
//
// A template is instantiated where it is used, and some uses stand in bodies that aren't read: `std::make_unique<T>`
// calls T's constructor, which alone makes its virtual methods; `std::for_each` calls the lambda it is given.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_INSTANTIATE_H
#define ACCELERATE_MIGRATE_LOWER_INSTANTIATE_H

#include "lower/Lower.h"
#include "clang/Sema/Sema.h"

namespace migrate {

/// Completes the project's class template specialisations that LibTorch or what uses it has to do with and defines
/// their methods, and the default constructors that nobody wrote of classes that initialise their members. What doesn't
/// compile for its arguments, as nobody would have noticed, is left out without a word.
void instantiateMethods(clang::Sema &S, ProjectFilter InProject);

/// Whether a header of the standard library calls what it is given: its bodies are read, wherever it lies.
bool callsBack(llvm::StringRef Path);

} // namespace migrate

#endif
