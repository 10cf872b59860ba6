//===- Yaml.h - YAML whose every value knows where it stands --------------===//
//
// Rules, tables and configurations are written by users: whatever is wrong in one is said with file, line and column.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_RULES_YAML_H
#define ACCELERATE_MIGRATE_RULES_YAML_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace migrate {

struct TextPlace {
  unsigned Line = 1, Column = 1;
};

struct YamlValue {
  enum class Kind { Null, Scalar, List, Map } What = Kind::Null;
  TextPlace Where;
  std::string Text;                                    ///< of scalars
  std::vector<YamlValue> Items;                        ///< of lists
  std::vector<std::pair<YamlValue, YamlValue>> Fields; ///< of maps, in order
  bool Block = false;                                  ///< a scalar behind `|`: its text begins a line below
  unsigned Indent = 0;                                 ///< of a block's lines, or the width of a scalar's quote

  /// Where a character of a scalar's text stands in the file.
  TextPlace placeOf(size_t Offset) const;
};

/// One file. Readers walk its values; the first thing that is wrong is kept, and whoever reads the file asks for it in
/// the end.
class YamlFile {
public:
  /// The one document of the file; `Empty` is what to say if there is none.
  static llvm::Expected<YamlFile> read(llvm::StringRef Path, llvm::StringRef Empty);

  const std::string &path() const { return Path; }
  const YamlValue &root() const { return Root; }

  void fail(TextPlace At, const llvm::Twine &Message);
  /// What was wrong first, as `path:line:column: message`.
  llvm::Error takeError() const;

  struct Field {
    llvm::StringRef Key;
    llvm::function_ref<void(const YamlValue &)> Read;
    bool Required = false;
  };
  /// Reads a map; other keys, keys that come twice and missing ones are wrong.
  void fields(const YamlValue &Map, llvm::ArrayRef<Field> Known);
  std::string text(const YamlValue &Value);
  /// A list of scalars, or one of them.
  void each(const YamlValue &List, llvm::function_ref<void(const YamlValue &)> Visit);
  /// The position of a scalar in `Names`.
  unsigned choice(const YamlValue &Value, llvm::ArrayRef<llvm::StringRef> Names);

private:
  std::string Path, First;
  YamlValue Root;
};

} // namespace migrate

#endif
