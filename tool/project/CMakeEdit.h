//===- CMakeEdit.h - The lines that link the runtime ----------------------===//
#ifndef ACCELERATE_MIGRATE_PROJECT_CMAKEEDIT_H
#define ACCELERATE_MIGRATE_PROJECT_CMAKEEDIT_H

#include "project/Project.h"
#include "rules/Apply.h"

namespace migrate {

/// Adds `find_package(Accelerate REQUIRED)` and `Accelerate::accelerate` where a target is defined. A target whose
/// definition isn't found (made by another package's function, another build system) becomes a finding with the lines to type.
void linkRuntime(const Project &P, const std::string &Target, const RuleSet &Rules, const FileTexts &Texts,
                 Migration &Out);

} // namespace migrate

#endif
