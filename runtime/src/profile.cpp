#include <accelerate/profile.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/cuda.h>

#include <atomic>
#include <cstdio>
#include <set>
#include <utility>

#include "files.h"
#include "state.h"

namespace accelerate {
namespace {

std::atomic<bool>& recording() {
  static std::atomic<bool> flag{false};
  return flag;
}

}  // namespace

Profile::Profile(const ProfileOptions& options) {
  namespace profiler = torch::profiler::impl;
  const std::string folder = options.output_trace_dir.empty() ? "." : options.output_trace_dir;
  detail::make_folders(folder);
  path_ = folder + "/profile_" + std::to_string(detail::rank()) + ".json";
  TORCH_CHECK(!recording().exchange(true), "[accelerate] rank ", detail::rank(), " of ", detail::ranks(),
              ": a profile is being recorded already; let it end before another begins");
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO, options.record_shapes, options.profile_memory,
                                        options.with_stack, options.with_flops, /*with_modules=*/false);
  std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU};
  if (torch::cuda::is_available()) {
    activities.insert(profiler::ActivityType::CUDA);
  }
  try {
    torch::autograd::profiler::prepareProfiler(config, activities);
    torch::autograd::profiler::enableProfiler(config, activities);
  } catch (...) {
    recording() = false;
    throw;
  }
  active_ = true;
}

Profile::Profile(Profile&& other) noexcept : path_(other.path_), active_(std::exchange(other.active_, false)) {}

Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void Profile::stop() {
  if (!std::exchange(active_, false)) {
    return;
  }
  recording() = false;
  const auto result = torch::autograd::profiler::disableProfiler();
  TORCH_CHECK(result, "[accelerate] the profiler was ended by someone else; there is no trace");
  result->save(path_);
  TORCH_CHECK(detail::is_file(path_), "[accelerate] can't write the profile's trace ", path_);
}

}  // namespace accelerate
