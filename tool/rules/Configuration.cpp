//===- Configuration.cpp --------------------------------------------------===//
#include "rules/Configuration.h"
#include "rules/Yaml.h"
#include "units/Cache.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace migrate {

static const char *const FileName = ".accelerate-migrate.yaml";

static std::string absoluteTo(StringRef Folder, StringRef Name) {
  SmallString<256> Full(Name);
  sys::fs::make_absolute(Folder, Full);
  sys::path::remove_dots(Full, /*remove_dot_dot=*/true);
  return Full.str().str();
}

/// The folders of rules that a configuration names; nothing if it can't be read, which `load` reports.
static std::vector<std::string> foldersOf(StringRef Path) {
  std::vector<std::string> Folders;
  Expected<YamlFile> File = YamlFile::read(Path, "");
  if (!File) {
    consumeError(File.takeError());
    return Folders;
  }
  for (const auto &[Key, Value] : File->root().Fields)
    if (Key.Text == "rules")
      File->each(Value, [&, &V = Value](const YamlValue &Folder) {
        Folders.push_back(absoluteTo(sys::path::parent_path(Path), Folder.Text));
      });
  consumeError(File->takeError());
  return Folders;
}

namespace {

/// Reads a configuration into what it puts in force.
class ConfigurationReader {
public:
  ConfigurationReader(YamlFile &File, InForce &Out) : File(File), Out(Out) {}

  Error read(ArrayRef<std::string> CommandLine) {
    const YamlValue *Safety = nullptr;
    std::vector<const YamlValue *> Disabled;
    auto Rules = [&](const YamlValue &V) { File.each(V, [&](const YamlValue &F) { folder(F); }); };
    auto Disable = [&](const YamlValue &V) { File.each(V, [&](const YamlValue &Code) { Disabled.push_back(&Code); }); };
    auto Safeties = [&](const YamlValue &V) { Safety = &V; };
    auto Names = [&](StringSet<> &Into) {
      return [&](const YamlValue &V) { File.each(V, [&](const YamlValue &Name) { name(Name, Into); }); };
    };
    auto Loggers = Names(Out.Taught.Loggers), Saves = Names(Out.Taught.Saves), Devices = Names(Out.Taught.Devices),
         Loaders = Names(Out.Taught.Loaders);
    File.fields(File.root(), {{"rules", Rules},
                              {"disable", Disable},
                              {"safety", Safeties},
                              {"devices", Devices},
                              {"loaders", Loaders},
                              {"loggers", Loggers},
                              {"saves", Saves}});
    if (Error E = File.takeError())
      return E;
    for (const std::string &Folder : CommandLine)
      if (Error E = addFolder(Folder, /*Wins=*/true))
        return E;
    Out.Rules.replace();
    // Now all rules are known.
    for (const YamlValue *Code : Disabled)
      if (Rule *R = rule(*Code))
        R->Off = true;
    if (Safety)
      safety(*Safety);
    return File.takeError();
  }

  static Error addFolders(InForce &Out, ArrayRef<std::string> Folders) {
    for (const std::string &Folder : Folders) {
      if (Error E = Out.Rules.add(Folder, /*Wins=*/true))
        return E;
      if (Error E = Out.Table.add(Folder, /*Wins=*/true))
        return E;
    }
    Out.Rules.replace();
    return Error::success();
  }

private:
  Error addFolder(StringRef Folder, bool Wins) {
    if (Error E = Out.Rules.add(Folder, Wins))
      return E;
    return Out.Table.add(Folder, Wins);
  }

  void folder(const YamlValue &V) {
    std::string Folder = absoluteTo(sys::path::parent_path(File.path()), File.text(V));
    if (!sys::fs::is_directory(Folder))
      return File.fail(V.Where, "no folder '" + V.Text + "'; it's looked for beside this file");
    if (Error E = addFolder(Folder, /*Wins=*/false)) {
      std::string Message = llvm::toString(std::move(E));
      // What is wrong in a rule has its own place.
      if (Failed.empty())
        Failed = Message;
      File.fail(V.Where, Message);
    }
  }

  void name(const YamlValue &V, StringSet<> &Into) {
    static const Regex Qualified("^[A-Za-z_][A-Za-z0-9_]*(::~?[A-Za-z_][A-Za-z0-9_]*)*(::operator *[^ A-Za-z]+)?$");
    std::string Name = File.text(V);
    if (!Qualified.match(Name))
      return File.fail(V.Where, "'" + Name +
                                    "' isn't a qualified name: `acme::Logger::write`, without `::` ahead, template "
                                    "arguments and parameters");
    Into.insert(Name);
  }

  Rule *rule(const YamlValue &V) {
    std::string Code = File.text(V);
    for (Rule &R : Out.Rules.rules())
      if (R.Code == Code || R.Name == Code)
        return &R;
    File.fail(V.Where, "no rule '" + Code + "'; `--list-rules` lists them");
    return nullptr;
  }

  void safety(const YamlValue &Map) {
    if (Map.What != YamlValue::Kind::Map)
      return File.fail(Map.Where, "rules and their safety are wanted here: `AM0501: review`");
    for (const auto &[Code, Value] : Map.Fields) {
      static const StringRef Names[] = {"safe", "review", "manual"};
      Rule *R = rule(Code);
      Safety How = static_cast<Safety>(File.choice(Value, Names));
      if (!R)
        return;
      if (R->Edits.empty() && How != Safety::Manual)
        return File.fail(Value.Where, R->Code + " " + R->Name + " edits nothing: its safety is manual");
      R->How = How;
    }
  }

  YamlFile &File;
  InForce &Out;

public:
  std::string Failed; ///< what is wrong in a file that this one names
};

} // namespace

std::string Configurations::nearest(StringRef Source) const {
  if (O.Ignore)
    return "";
  if (!O.File.empty())
    return O.File;
  std::vector<std::string> Passed;
  std::string Found;
  for (StringRef Dir = sys::path::parent_path(Source); !Dir.empty(); Dir = sys::path::parent_path(Dir)) {
    if (auto It = Nearest.find(Dir.str()); It != Nearest.end()) {
      Found = It->second;
      break;
    }
    Passed.push_back(Dir.str());
    std::string File = (Dir == "/" ? Dir : Dir + "/").str() + FileName;
    if (sys::fs::is_regular_file(File)) {
      Found = File;
      break;
    }
    if (Dir == Root)
      break;
  }
  for (const std::string &Dir : Passed)
    Nearest[Dir] = Found;
  return Found;
}

void Configurations::find(ArrayRef<std::string> Sources) {
  Loaded[O.Ignore ? "" : O.File];
  for (const std::string &Source : Sources)
    Loaded[nearest(Source)];
}

std::string Configurations::digest() const {
  std::vector<std::string> Owned = {patternsDigest()};
  for (const auto &[Path, Unused] : Loaded) {
    Owned.push_back(Path);
    auto Buffer = MemoryBuffer::getFile(Path);
    Owned.push_back(Buffer ? (*Buffer)->getBuffer().str() : "");
  }
  std::vector<StringRef> Parts(Owned.begin(), Owned.end());
  return cacheKey(Parts);
}

std::string Configurations::patternsDigest() const {
  std::vector<std::string> Owned = {RuleSet::digest(O.BuiltIn)};
  for (const std::string &Folder : O.Folders)
    Owned.push_back(RuleSet::digest(Folder));
  for (const auto &[Path, Unused] : Loaded)
    if (!Path.empty())
      for (const std::string &Folder : foldersOf(Path))
        Owned.push_back(RuleSet::digest(Folder));
  std::vector<StringRef> Parts(Owned.begin(), Owned.end());
  return cacheKey(Parts);
}

Error Configurations::load() {
  Expected<RuleSet> BuiltIn = RuleSet::load(O.BuiltIn);
  if (!BuiltIn)
    return BuiltIn.takeError();
  Expected<OperationTable> Table = OperationTable::load(O.BuiltIn);
  if (!Table)
    return Table.takeError();
  std::vector<RuleSet *> Sets;
  for (auto &[Path, To] : Loaded) {
    To = std::make_unique<InForce>();
    To->Configuration = Path;
    To->Rules = *BuiltIn;
    To->Table = *Table;
    Sets.push_back(&To->Rules);
    if (Path.empty()) {
      if (Error E = ConfigurationReader::addFolders(*To, O.Folders))
        return E;
      continue;
    }
    Expected<YamlFile> File = YamlFile::read(Path, "nothing is configured in this file; delete it, or fill it");
    if (!File)
      return File.takeError();
    ConfigurationReader R(*File, *To);
    if (Error E = R.read(O.Folders)) {
      if (R.Failed.empty())
        return E;
      consumeError(std::move(E));
      return createStringError(inconvertibleErrorCode(), R.Failed);
    }
  }
  Patterns = RuleSet::join(Sets);
  return Error::success();
}

const InForce &Configurations::of(StringRef Source) const {
  auto It = Loaded.find(nearest(Source));
  // A source that wasn't asked for: as without a file.
  return It != Loaded.end() && It->second ? *It->second : *Loaded.begin()->second;
}

} // namespace migrate
