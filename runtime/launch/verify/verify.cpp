/// accelerate-cpp verify: whether a migrated program trains as the original does.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "command.h"
#include "compare.h"
#include "machine.h"
#include "output_file.h"
#include "recordable.h"
#include "report.h"
#include "run.h"

namespace accelerate::launch {

namespace {

namespace fs = std::filesystem;

constexpr int kExitNotCompared = 3;
constexpr int kExitDifferent = 4;

struct VerifyOptions {
  std::string original;
  std::string migrated;
  std::string ranks = "2,3";
  double tolerance = 0;
  double timeout = 600;
  std::vector<std::string> json;
  std::string html;
  std::string work;
  std::string recorder;
  std::vector<std::string> links;
  std::vector<std::string> masks;
  std::vector<std::string> ignored;
  bool cpu = false;
  bool keep = false;
};

std::vector<int> ReadRanks(const std::string& text) {
  std::vector<int> ranks;
  std::size_t begin = 0;
  while (begin <= text.size() && text != "none") {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool digits = !word.empty() && word.size() < 4 && word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(word) < 1) {
      throw UsageError(fmt::format("--ranks: '{}' is no list of numbers from 1, such as 2,3; or none", text));
    }
    ranks.push_back(std::stoi(word));
    begin = end + 1;
  }
  return ranks;
}

std::vector<std::regex> ReadMasks(const std::vector<std::string>& masks) {
  std::vector<std::regex> result;
  for (const std::string& mask : masks) {
    try {
      result.emplace_back(mask);
    } catch (const std::regex_error& error) {
      throw UsageError(fmt::format("--mask: '{}' is no regular expression: {}", mask, error.what()));
    }
  }
  return result;
}

// Installed or built, it lies in the library folder beside the folder of this program.
std::string FindRecorder(const std::string& wanted) {
  constexpr const char* kName = "libaccelerate_recorder.so";
  if (!wanted.empty()) {
    if (!fs::is_regular_file(wanted)) throw UsageError(fmt::format("--recorder: there is no {}", wanted));
    return fs::absolute(wanted);
  }
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const char* folder : {ACCELERATE_LIBRARY_FOLDER, "lib"}) {
    const fs::path path = beside / folder / kName;
    if (fs::is_regular_file(path)) return path;
  }
  throw UsageError(fmt::format("there is no {} in {}; name it with --recorder", kName, (beside / "lib").string()));
}

std::string ProgramPath(const char* flag, const std::string& program) {
  if (program.empty()) throw UsageError(fmt::format("{} is needed: the program to compare", flag));
  return fs::absolute(FindProgram(program, ProcessEnvironment));
}

// Says of a folder that what is in it is ours to remove.
constexpr const char* kWorkMarker = ".accelerate-verify";

// Runs begin in new folders, so what has their names is removed: none of it may be the user's.
void ClaimWorkFolder(const std::string& folder) {
  const auto check = [&](const std::error_code& error) {
    if (error) throw UsageError(fmt::format("--work: cannot use the folder {}: {}", folder, error.message()));
  };
  std::error_code error;
  fs::create_directories(folder, error);
  check(error);
  const std::string marker = folder + "/" + kWorkMarker;
  if (fs::exists(marker, error)) return;
  const bool empty = fs::is_empty(folder, error);
  check(error);
  if (!empty) {
    throw UsageError(
        fmt::format("--work: {} isn't empty, and no earlier verify wrote it; name a new or an empty folder", folder));
  }
  std::ofstream file(marker);
  file << "What is beside this file was written by accelerate-cpp verify, which removes it when it runs again.\n";
  file.close();
  if (!file) throw UsageError(fmt::format("--work: cannot write {}", marker));
}

/// The folder of the runs: removed at the end unless it was asked for, or has something to show.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& wanted) : temporary_(wanted.empty()) {
    if (temporary_) {
      std::string pattern = (fs::temp_directory_path() / "accelerate-verify-XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr) throw UsageError(fmt::format("cannot make a folder {}", pattern));
      path_ = pattern;
    } else {
      ClaimWorkFolder(wanted);
      path_ = fs::absolute(wanted).lexically_normal();
    }
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  void Keep() {
    if (std::exchange(temporary_, false)) Say("what the programs wrote is kept in {}", path_);
  }

 private:
  std::string path_;
  bool temporary_;
};

constexpr const char* kStandardOutput = "-";  // as a file's name

// Programs run in folders of their own, so that their outputs can be told apart.
void WarnOfRelativePaths(const std::vector<std::string>& arguments, const std::vector<std::string>& links) {
  for (const std::string& argument : arguments) {
    const fs::path path = fs::path(argument).lexically_normal();
    if (argument.empty() || path.is_absolute() || !fs::exists(path)) continue;
    const std::string first = path.begin()->string();
    const bool linked = std::any_of(links.begin(), links.end(), [&](const std::string& link) {
      return fs::absolute(link).lexically_normal() == fs::absolute(first).lexically_normal();
    });
    if (linked) continue;
    Say("warning: {} is a path from this folder, and the programs run in others; give its whole path{}", argument,
        first == ".." || first == "." ? "" : fmt::format(", or --link {}", first));
  }
}

bool Failed(const RunResult& original, const VerifyOptions& options) {
  if (original.timed_out) {
    Say("error: the original did not end within {:g} s (--timeout); give it less to do", options.timeout);
  } else if (CannotBeRecorded(original) || (original.exit_code == 0 && original.recordings.empty())) {
    Say("error: nothing was recorded of the original: {} {}", original.program, WhyNotRecorded(original.program));
  } else if (original.exit_code != 0) {
    Say("error: the original fails with exit code {}; the last lines of its stderr:", original.exit_code);
    for (const std::string& line : original.error_lines) fmt::print(stderr, "    {}\n", line);
  } else if (original.recordings[0].events.empty()) {
    Say("error: the original trains nothing: no backward pass and no step of an optimizer was seen");
  } else {
    return false;
  }
  return true;
}

int Verify(RunSignals& signals, const VerifyOptions& options, const std::vector<std::string>& arguments) {
  const std::string original_path = ProgramPath("--original", options.original);
  const std::string migrated_path = ProgramPath("--migrated", options.migrated);
  const std::vector<int> ranks = ReadRanks(options.ranks);
  CompareSettings compare;
  compare.tolerance.first = options.tolerance;
  compare.masks = ReadMasks(options.masks);
  compare.ignored = options.ignored;
  bool prints_json = false;
  for (const std::string& file : options.json) {
    prints_json = prints_json || file == kStandardOutput;
    if (file != kStandardOutput) CheckWritable(file, "--json");
  }
  if (!options.html.empty()) CheckWritable(options.html, "--html");

  const int most = ranks.empty() ? 1 : *std::max_element(ranks.begin(), ranks.end());
  RunSettings settings;
  settings.recorder = FindRecorder(options.recorder);
  settings.arguments = arguments;
  settings.time_limit = std::chrono::milliseconds(std::lround(options.timeout * 1000));
  settings.links = options.links;
  const std::string threads = ProcessEnvironment("OMP_NUM_THREADS").value_or("");
  settings.threads = threads.empty() ? std::max(1, CountCpus() / most) : std::max(1, std::atoi(threads.c_str()));
  const int devices = CountVisibleCudaDevices(ProcessEnvironment);
  settings.cpu = options.cpu || devices < most;
  if (settings.cpu && !options.cpu && devices > 0) {
    Say("{} ranks need as many GPUs, and there {} {}: all runs use the CPU", most, devices == 1 ? "is" : "are",
        devices);
  }
  WarnOfRelativePaths(arguments, options.links);
  WorkFolder work(options.work);
  settings.work = work.path();
  if (options.keep) work.Keep();

  const RunResult original = RunRecorded(signals, settings, "original", original_path, 0);
  if (Failed(original, options)) {
    work.Keep();
    return kExitNotCompared;
  }
  Report report;
  report.original = options.original;
  report.migrated = options.migrated;
  report.arguments = arguments;
  report.original_seconds = original.seconds;
  for (const RecordedEvent& event : original.recordings[0].events) {
    if (!event.is_step) report.original_losses.push_back(event.loss);
  }
  report.runs.push_back(CompareRuns(original, RunRecorded(signals, settings, "alone", migrated_path, 0), compare));
  if (!report.runs[0].same()) {
    // Before anybody looks for a mistake that isn't there.
    const RunResult again = RunRecorded(signals, settings, "original-again", original_path, 0);
    if (auto difference = FindNondeterminism(original, again, compare)) report.runs[0].first = difference;
  }
  std::optional<std::size_t> shared;
  for (const int n : ranks) {
    const RunResult run = RunRecorded(signals, settings, fmt::format("ranks-{}", n), migrated_path, n);
    report.runs.push_back(CompareRuns(original, run, compare));
    if (shared) CompareRows(report.runs[*shared], report.runs.back());
    if (!shared && n > 1) shared = report.runs.size() - 1;
  }
  fmt::print(prints_json ? stderr : stdout, "{}", TextReport(report));
  if (prints_json) fmt::print("{}", JsonReport(report));
  std::fflush(stdout);  // before what is said on stderr
  for (const std::string& file : options.json) {
    if (file != kStandardOutput) WriteFileAtomically(file, JsonReport(report), "--json");
  }
  if (!options.html.empty()) WriteFileAtomically(options.html, HtmlReport(report), "--html");
  if (report.same()) return 0;
  work.Keep();
  return kExitDifferent;
}

int VerifyUnlessStopped(const VerifyOptions& options, const std::vector<std::string>& arguments) {
  RunSignals signals;
  try {
    return Verify(signals, options, arguments);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal();
  }
}

}  // namespace

void AddVerifyCommand(CLI::App& app, const std::vector<std::string>& program, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Compare a migrated program's training with the original's: verify [flags] [-- ARGUMENTS]");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("--original", options->original, "the program as it was")->option_text("PROGRAM");
  command->add_option("--migrated", options->migrated, "the program as it is now")->option_text("PROGRAM");
  command
      ->add_option("--ranks", options->ranks,
                   "run the migrated program alone and on so many ranks (default: 2,3; none: alone only)")
      ->option_text("N,N");
  command
      ->add_option(
          "--tolerance", options->tolerance,
          "relative difference that ranks may have in the first step (default: 256 roundings of the loss's type, "
          "1.5e-5 for float); it grows with each step")
      ->option_text("X")
      ->check(CLI::Range(1e-16, 1.0));
  command->add_option("--timeout", options->timeout, "seconds that a run may take (default: 600)")
      ->option_text("SECONDS")
      ->check(CLI::Range(1.0, 604800.0));
  command
      ->add_option("--json", options->json,
                   "write a JSON document; -: on standard output, and the report on stderr (again for more)")
      ->option_text("FILE")
      ->allow_extra_args(false);
  command->add_option("--html", options->html, "write a page with the curves of the losses")->option_text("FILE");
  command
      ->add_option("--link", options->links,
                   "a file or folder that the programs find in their working folders (again for more)")
      ->option_text("PATH")
      ->allow_extra_args(false);
  command
      ->add_option("--mask", options->masks,
                   "regular expression of output that differs from run to run, such as times (again for more)")
      ->option_text("REGEX")
      ->allow_extra_args(false);
  command->add_option("--ignore", options->ignored, "files that aren't compared, as in 'logs/*' (again for more)")
      ->option_text("GLOB")
      ->allow_extra_args(false);
  command->add_flag("--cpu", options->cpu, "hide the GPUs from all runs");
  command->add_option("--work", options->work, "new, empty or earlier folder for the runs (default: a temporary one)")
      ->option_text("FOLDER");
  command->add_flag("--keep", options->keep, "keep what the programs wrote, also if nothing differs");
  command->add_option("--recorder", options->recorder, "libaccelerate_recorder.so (default: beside this program)")
      ->option_text("FILE");
  command->footer(
      "ARGUMENTS are those of both programs. Each run has a new, empty working folder. Alone, the migrated program "
      "has\n"
      "to compute and write the same bits; on ranks the same up to the order of sums. How much that is, what is\n"
      "recorded, and what the kinds of differences mean: runtime/launch/verify/README.md.\n\n"
      "Exit code: 0 the same training; 4 not the same, or the migrated program fails; 3 the original fails, hangs or\n"
      "can't be recorded; 2 a mistake in flags, or a program that cannot be started;\n128 + the number of the signal "
      "that stopped it.");
  command->callback([options, &program, &action] {
    action = [options, &program] { return VerifyUnlessStopped(*options, program); };
  });
}

}  // namespace accelerate::launch
