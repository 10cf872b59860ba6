//===- Prefilter.h - Units that needn't be parsed -------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_PREFILTER_H
#define ACCELERATE_MIGRATE_UNITS_PREFILTER_H

#include "project/Project.h"
#include "units/Dependencies.h"

namespace migrate {

/// Which units can't matter, by the words in them and in the project's headers that they include: a program without a
/// call of `backward`, and without a distributed library, has nothing to migrate. All units of a program are parsed or
/// none, since what a helper prints matters to the program that trains.
struct Prefiltered {
  std::vector<bool> Skip;       ///< by unit
  std::vector<size_t> Programs; ///< those of them that have a `main`
  std::vector<Dependency> Read; ///< what this was decided from
};

Prefiltered prefilter(const Project &P);

/// By header of the project: the targets of units that include it, as far as can be told without a parser.
std::map<std::string, std::set<std::string>> includingTargets(const Project &P);

/// Whether a source has a `main`, as far as can be told without a parser.
bool hasMain(const std::string &Source);

/// Whether a text has one of the words that bring a program to our attention.
bool mayTrain(llvm::StringRef Text);

} // namespace migrate

#endif
