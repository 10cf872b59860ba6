/// What `accelerate-cpp test` runs on each rank:
///   accelerate-self-check FOLDER CHECKPOINT_FOLDER   the steps in turn; FOLDER/step.RANK says which one is at work
///   accelerate-self-check --versions                 what the library was built with, as JSON
/// Exit code: 0; 1 if a step failed.

#include <accelerate/accelerate.h>
#include <torch/cuda.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>

#include "steps.h"

namespace {

void print_versions() {
  std::printf(R"({"libaccelerate": "%s", "LibTorch": "%s", "C++11 ABI": %d, "CUDA available": %s})"
              "\n",
              accelerate::version(), TORCH_VERSION, _GLIBCXX_USE_CXX11_ABI,
              torch::cuda::is_available() ? "true" : "false");
}

std::string message_of(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  return c10_error ? c10_error->what_without_backtrace() : error.what();
}

int check(const std::string& folder, const std::string& checkpoint_folder) {
  const char* rank = std::getenv("RANK");
  for (const auto& step : accelerate::self_check::steps()) {
    std::ofstream(folder + "/step." + (rank ? rank : "0")) << step.name << std::endl;
    std::printf("%-24s", step.name);
    std::fflush(stdout);
    try {
      const std::string remark = step.run(checkpoint_folder);
      std::printf("ok%s%s\n", remark.empty() ? "" : ": ", remark.c_str());
      std::fflush(stdout);
    } catch (const std::exception& error) {
      std::printf("FAILED\n");
      std::fflush(stdout);
      std::fprintf(stderr, "%s: %s\n", step.name, message_of(error).c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--versions") {
    print_versions();
    return 0;
  }
  if (argc != 3) {
    std::fprintf(stderr, "this program belongs to `accelerate-cpp test`, which runs it\n");
    return 2;
  }
  return check(argv[1], argv[2]);
}
