//===- main.cpp - accelerate-migrate --------------------------------------===//
#include "Driver.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include <sys/resource.h>

using namespace llvm;

static cl::OptionCategory Category("accelerate-migrate options");
static cl::list<std::string> Sources(cl::Positional, cl::desc("[source...]"), cl::cat(Category));
static cl::opt<std::string> BuildDir("p", cl::desc("Build folder with the compile database (default: build*/ here)"),
                                     cl::value_desc("dir"), cl::cat(Category));
static cl::opt<bool> InPlace("in-place", cl::desc("Write the edits instead of printing a diff"), cl::cat(Category));
static cl::alias InPlaceShort("i", cl::desc("Alias for --in-place"), cl::aliasopt(InPlace), cl::cat(Category));
static cl::opt<migrate::Options::Format>
    Format("format", cl::desc("What standard output gets"),
           cl::values(clEnumValN(migrate::Options::Format::Diff, "diff", "a unified diff (default)"),
                      clEnumValN(migrate::Options::Format::Json, "json", "one JSON document")),
           cl::init(migrate::Options::Format::Diff), cl::cat(Category));
static cl::opt<bool> AllowDirty("allow-dirty",
                                cl::desc("With --in-place: write although git couldn't take the edits back"),
                                cl::cat(Category));
static cl::opt<bool> AllowErrors("allow-errors",
                                 cl::desc("Migrate programs that don't compile here, but for what isn't understood"),
                                 cl::cat(Category));
static cl::opt<migrate::VerifyMode>
    Verify("verify", cl::desc("How the result is checked"),
           cl::values(clEnumValN(migrate::VerifyMode::None, "none", "not at all"),
                      clEnumValN(migrate::VerifyMode::Parse, "parse", "parsed and migrated again (default)"),
                      clEnumValN(migrate::VerifyMode::Compile, "compile",
                                 "also as the compiler reads it, bodies of all templates included"),
                      clEnumValN(migrate::VerifyMode::Train, "train",
                                 "also built by CMake, run and compared by accelerate-cpp verify")),
           cl::init(migrate::VerifyMode::Parse), cl::cat(Category));
static cl::opt<bool> NoVerify("no-verify", cl::desc("The same as --verify=none"), cl::cat(Category));
static cl::list<std::string> VerifyArgs("verify-args",
                                        cl::desc("With --verify=train: arguments of the programs, or of one "
                                                 "(program:words; may be repeated)"),
                                        cl::value_desc("words"), cl::cat(Category));
static cl::opt<std::string> VerifyFlags("verify-flags",
                                        cl::desc("With --verify=train: flags of accelerate-cpp verify, such as "
                                                 "'--ranks 2 --cpu --mask [0-9.]+s'"),
                                        cl::value_desc("words"), cl::cat(Category));
static cl::opt<std::string> VerifyCwd("verify-cwd",
                                      cl::desc("With --verify=train: the folder that programs run in copies of "
                                               "(default: the current one)"),
                                      cl::value_desc("dir"), cl::cat(Category));
static cl::opt<unsigned> VerifyTimeout("verify-timeout",
                                       cl::desc("With --verify=train: seconds that a run may take (default: 600)"),
                                       cl::value_desc("seconds"), cl::init(600), cl::cat(Category));
static cl::opt<bool> NoPrefilter("no-prefilter", cl::desc("Parse programs without training, too"), cl::cat(Category));
static cl::opt<bool> NoCache("no-cache",
                             cl::desc("Don't reuse what earlier runs have read of the project, and keep nothing"),
                             cl::cat(Category));
static cl::opt<bool> NoPch("no-pch",
                           cl::desc("Don't use a precompiled header of LibTorch (kept in the user's cache folder)"),
                           cl::cat(Category));
static cl::opt<bool> NoSkip("no-skip", cl::desc("Read function bodies outside the project, too"), cl::cat(Category));
static cl::opt<bool> NoIsolate("no-isolate", cl::desc("Parse in this process (for debuggers)"), cl::cat(Category));
static cl::opt<bool> Statistics("statistics", cl::desc("Print what was parsed and what was known"), cl::cat(Category));
static cl::opt<bool> Quiet("quiet", cl::desc("Findings and summary are not printed"), cl::cat(Category));
static cl::opt<unsigned> Jobs("j", cl::desc("Units to read at once (default: by cores and memory)"), cl::Prefix,
                              cl::cat(Category));
static cl::opt<std::string> Explain("explain", cl::desc("Print a rule's page"), cl::value_desc("code"),
                                    cl::cat(Category));
static cl::opt<bool> ListRules("list-rules", cl::desc("List the rules"), cl::cat(Category));
static cl::opt<std::string> Dump("dump", cl::desc("Print what was inferred instead: roles or placements"),
                                 cl::value_desc("what"), cl::cat(Category));
static cl::opt<std::string> RulesDir("rules-dir", cl::desc("Folder of the tool's own rules"), cl::value_desc("dir"),
                                     cl::cat(Category));
static cl::list<std::string> Rules("rules",
                                   cl::desc("Folder of rules of your own, beside the tool's (may be repeated)"),
                                   cl::value_desc("dir"), cl::cat(Category));
static cl::opt<std::string> Config("config",
                                   cl::desc("Configuration (default: the nearest .accelerate-migrate.yaml above the "
                                            "file with the program's main)"),
                                   cl::value_desc("file"), cl::cat(Category));
static cl::opt<bool> NoConfig("no-config", cl::desc("Don't look for .accelerate-migrate.yaml"), cl::cat(Category));
static cl::opt<bool> Variants("variants",
                              cl::desc("With test: also the examples written in other ways (comments, templates, "
                                       "macros)"),
                              cl::cat(Category));
static cl::opt<std::string> ResourceDir("resource-dir", cl::desc("Clang's resource folder"), cl::value_desc("dir"),
                                        cl::cat(Category));
static cl::opt<std::string> RuntimeInclude("runtime-include", cl::desc("Folder of accelerate/accelerate.h"),
                                           cl::value_desc("dir"), cl::cat(Category));

static const char *const Overview =
    "Reads C++ LibTorch training code written for one device and prints the diff that makes it train on many.\n\n"
    "accelerate-migrate test DIR -- FLAGS runs the examples of the rules in DIR, compiled with FLAGS or like the "
    "first\n"
    "unit of the build folder (-p).\n\n"
    "exit status: 0 nothing to do, or everything applied with --in-place; 1 edits or findings pending;\n"
    "             2 usage, configuration or rule error; 3 a unit could not be parsed; 4 verification failed";

int main(int Argc, char **Argv) {
  InitLLVM Init(Argc, Argv);
  // Expressions nest as deep as somebody's generator makes them. The kernel leaves this much room to grow.
  if (rlimit Stack; getrlimit(RLIMIT_STACK, &Stack) == 0 && Stack.rlim_cur < (100u << 20)) {
    Stack.rlim_cur = std::min<rlim_t>(100u << 20, Stack.rlim_max);
    setrlimit(RLIMIT_STACK, &Stack);
  }
  migrate::Options O;
  // What follows `--` are flags of the compiler.
  std::vector<const char *> Own;
  int I = 0;
  for (; I != Argc && StringRef(Argv[I]) != "--"; ++I)
    if (I == 1 && StringRef(Argv[I]) == "test")
      O.Test = true;
    else
      Own.push_back(Argv[I]);
  for (++I; I < Argc; ++I)
    O.Flags.push_back(Argv[I]);

  cl::HideUnrelatedOptions(Category);
  cl::SetVersionPrinter([](raw_ostream &OS) { OS << "accelerate-migrate " << MIGRATE_VERSION << "\n"; });
  if (!cl::ParseCommandLineOptions(Own.size(), Own.data(), Overview, &errs()))
    return migrate::Usage;
  if (!Dump.empty() && Dump != "roles" && Dump != "placements") {
    errs() << "accelerate-migrate: error: --dump knows roles and placements, not '" << Dump << "'\n";
    return migrate::Usage;
  }
  if (Verify != migrate::VerifyMode::Train || NoVerify)
    for (const cl::Option *Flag :
         std::initializer_list<cl::Option *>{std::addressof(VerifyArgs), &VerifyFlags, &VerifyCwd, &VerifyTimeout})
      if (Flag->getNumOccurrences() != 0) {
        errs() << "accelerate-migrate: error: --" << Flag->ArgStr << " is for --verify=train\n";
        return migrate::Usage;
      }
  if (VerifyTimeout == 0 || VerifyTimeout > 604800) {
    errs() << "accelerate-migrate: error: --verify-timeout takes 1 to 604800 seconds\n";
    return migrate::Usage;
  }
  if (Variants && !O.Test) {
    errs() << "accelerate-migrate: error: --variants is for accelerate-migrate test\n";
    return migrate::Usage;
  }
  O.Variants = Variants;
  O.VerifyArgs.assign(VerifyArgs.begin(), VerifyArgs.end());
  O.VerifyFlags = VerifyFlags;
  O.VerifyCwd = VerifyCwd;
  O.VerifyTimeout = VerifyTimeout;
  O.BuildDir = BuildDir;
  O.Sources.assign(Sources.begin(), Sources.end());
  O.InPlace = InPlace;
  O.Output = Format;
  O.Verify = NoVerify ? migrate::VerifyMode::None : Verify;
  O.AllowDirty = AllowDirty;
  O.AllowErrors = AllowErrors;
  O.Prefilter = !NoPrefilter;
  O.Cache = !NoCache;
  O.Precompile = !NoPch;
  O.SkipBodies = !NoSkip;
  O.Isolate = !NoIsolate;
  O.Statistics = Statistics;
  O.Quiet = Quiet;
  O.Jobs = Jobs;
  O.Explain = Explain;
  O.ListRules = ListRules;
  O.Dump = Dump;
  O.RulesDir = RulesDir;
  O.Rules.assign(Rules.begin(), Rules.end());
  O.Config = Config;
  O.NoConfig = NoConfig;
  O.ResourceDir = ResourceDir;
  O.RuntimeInclude = RuntimeInclude;
  O.Executable = sys::fs::getMainExecutable(Argv[0], reinterpret_cast<void *>(&main));
  int Code = migrate::run(O, outs(), errs());
  outs().flush();
  if (outs().has_error()) {
    errs() << "accelerate-migrate: error: standard output can't be written: " << outs().error().message() << "\n";
    outs().clear_error();
    return migrate::Usage;
  }
  return Code;
}
