//===- Configuration.h - `.accelerate-migrate.yaml`, and what it puts in force ===//
#ifndef ACCELERATE_MIGRATE_RULES_CONFIGURATION_H
#define ACCELERATE_MIGRATE_RULES_CONFIGURATION_H

#include "infer/Operations.h"
#include "infer/Teaching.h"
#include "rules/Rule.h"
#include <map>
#include <memory>

namespace migrate {

/// The rules, the table and the teaching that hold for a program.
struct InForce {
  std::string Configuration; ///< the file, or empty
  RuleSet Rules;
  OperationTable Table;
  Teaching Taught;
};

/// What the command line says about configuration; it wins over files.
struct ConfigurationOptions {
  std::string BuiltIn;              ///< the folder of the tool's own rules
  std::vector<std::string> Folders; ///< `--rules`
  std::string File;                 ///< `--config`: in place of what is found
  bool Ignore = false;              ///< `--no-config`
};

/// Every program has the configuration that stands nearest above the file with its `main`. All that the sources of a
/// run may need are found and read before anything else is done: what is wrong in one is an error.
class Configurations {
public:
  /// `Root`: above it no file is looked for.
  Configurations(ConfigurationOptions O, llvm::StringRef Root) : O(std::move(O)), Root(Root) {}

  /// Finds what stands above each of `Sources`, and nothing else: cheap.
  void find(llvm::ArrayRef<std::string> Sources);
  /// All that the configurations which were found say: their texts, and their folders' rules and tables.
  std::string digest() const;
  /// The part of it that matters to how units are read: all patterns.
  std::string patternsDigest() const;

  llvm::Error load();

  const ConfigurationOptions &options() const { return O; }
  const InForce &of(llvm::StringRef Source) const;
  /// The patterns of all.
  const RuleSet &patterns() const { return Patterns; }

private:
  std::string nearest(llvm::StringRef Source) const;

  ConfigurationOptions O;
  std::string Root;
  mutable std::map<std::string, std::string> Nearest;     ///< by folder
  std::map<std::string, std::unique_ptr<InForce>> Loaded; ///< by the file's path
  RuleSet Patterns;
};

} // namespace migrate

#endif
