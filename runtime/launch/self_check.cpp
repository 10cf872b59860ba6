#include "self_check.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "launch.h"
#include "temporary_folder.h"

namespace accelerate::launch {

namespace fs = std::filesystem;

namespace {

constexpr int kExitFailed = 1;

struct TestOptions {
  LaunchOptions launch;
  std::string checkpoint_dir;
};

/// The folder for the checkpoint among the user's own: removed at the end, and never one that was there before. On
/// several machines it is that of all their launchers, whoever comes first.
class CheckpointFolder {
 public:
  /// Throws UsageError if somebody else's has the name. If it can't be made, the step that needs it tells why.
  explicit CheckpointFolder(const std::string& parent) : path_(parent + "/accelerate-self-check") {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(path_, error))) Make(parent);
    const bool there = fs::exists(fs::symlink_status(path_, error));
    ours_ = fs::is_regular_file(path_ + kMarker, error);
    if (there && !ours_) {
      throw UsageError(
          fmt::format("--checkpoint_dir: {} exists, and no test made it; move it, or name another folder", path_));
    }
  }
  ~CheckpointFolder() {
    std::error_code ignored;
    if (ours_) fs::remove_all(path_, ignored);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  std::string checkpoint() const { return path_ + "/checkpoint"; }

 private:
  static constexpr const char* kMarker = "/.accelerate-cpp-test";

  // With the marker at once: another machine's launcher may look at any moment.
  void Make(const std::string& parent) const {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string made = parent + "/.accelerate-self-check-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) return;
    std::ofstream(made + kMarker) << "accelerate-cpp test removes this folder when it ends.\n";
    fs::rename(made, path_, error);
    if (error) fs::remove_all(made, error);
  }

  std::string path_;
  bool ours_ = false;
};

std::string FirstLine(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

int RunSelfCheck(TestOptions options) {
  const Configuration configuration = Resolve(options.launch.configuration.Read(), options.launch.config_file,
                                              options.launch.no_config, ProcessEnvironment)
                                          .configuration;
  if (options.checkpoint_dir.empty() && configuration.num_machines.value_or(1) > 1) {
    throw UsageError("several machines need --checkpoint_dir, a folder that all of them see");
  }
  const std::string program = SelfCheckProgram();
  if (program.empty()) {
    throw UsageError(
        "accelerate-self-check is missing: it is built and installed with the runtime, beside accelerate-cpp");
  }
  const TemporaryFolder folder;
  if (options.checkpoint_dir.empty()) options.checkpoint_dir = folder.path();
  const CheckpointFolder checkpoints(options.checkpoint_dir);
  const GroupExit exit = RunProgram(options.launch, {program, folder.path(), checkpoints.checkpoint()});
  if (exit.exit_code == 0) {
    Say("test: all steps passed");
    return 0;
  }
  if (exit.stop_signal != 0 || exit.failures.empty()) return exit.exit_code;
  const int rank = exit.failures.front().rank;
  const std::string step = FirstLine(fs::path(folder.path()) / fmt::format("step.{}", rank));
  Say("test: failed in the step '{}' on rank {}", step.empty() ? "start" : step, rank);
  return kExitFailed;
}

}  // namespace

std::string SelfCheckProgram() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = own.parent_path() / "accelerate-self-check";
  return !error && fs::exists(program, error) ? program.string() : "";
}

std::string RuntimeVersions() {
  const std::string program = SelfCheckProgram();
  if (program.empty() || program.find('\'') != std::string::npos) return "";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      popen(fmt::format("'{}' --versions 2>/dev/null", program).c_str(), "r"), pclose);
  std::string text;
  for (int c = 0; output && (c = std::fgetc(output.get())) != EOF;) text.push_back(static_cast<char>(c));
  return text;
}

void AddTestCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("test", "Check that training works under the configuration, with a small program of our own");
  auto options = std::make_shared<TestOptions>();
  options->launch.AddTo(*command, /*whole=*/false);
  command
      ->add_option(
          BothSpellings("checkpoint_dir"), options->checkpoint_dir,
          "folder for a checkpoint, which all machines must see; needed with several (default: a temporary one)")
      ->option_text("FOLDER");
  command->footer(
      "The steps: rendezvous, collectives, sharding, gradient parity (with one process), checkpoint round trip.\n"
      "On several machines, run it on each. The checkpoint is in accelerate-self-check in its folder while they "
      "run.\n\n"
      "Exit code: 0; 1 if a step failed, which is named; 2 for a mistake in flags or configuration; 128 + the number "
      "of "
      "the\nsignal that stopped it.");
  command->callback([options, &action] { action = [options] { return RunSelfCheck(*options); }; });
}

}  // namespace accelerate::launch
