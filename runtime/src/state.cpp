#include "state.h"

#include <ATen/Parallel.h>
#include <accelerate/accelerator.h>
#include <accelerate/version.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sched.h>
#include <torch/cuda.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "output.h"
#include "random.h"

namespace accelerate {
namespace detail {
namespace {

torch::Device choose_device(const Environment& environment) {
  if (flag("ACCELERATE_USE_CPU")) {
    return torch::kCPU;
  }
  if (const std::string wanted = variable("ACCELERATE_TORCH_DEVICE"); !wanted.empty()) {
    return torch::Device(wanted);
  }
  if (!torch::cuda::is_available()) {
    return torch::kCPU;
  }
  if (environment.alone()) {
    return torch::kCUDA;
  }
  return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(
                                         environment.local_rank % static_cast<int64_t>(torch::cuda::device_count())));
}

/// The CPUs that a process may run on; 0 if that isn't known.
int64_t cpus_of(pid_t process) {
  cpu_set_t cpus;
  return sched_getaffinity(process, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

/// As many threads for all ranks of a host together as one process would have used. The ranks share the CPUs of their
/// launcher; where that has bound them to fewer, as mpirun and srun do, a rank has no more threads than CPUs.
void share_threads(const Environment& environment) {
  if (!variable("OMP_NUM_THREADS").empty()) {
    return;
  }
  int64_t own = cpus_of(0);
  if (own == 0) {
    own = std::max(1U, std::thread::hardware_concurrency());  // more than a set has room for
  }
  const int64_t shared = std::max(own, cpus_of(getppid())) / environment.local_world_size;
  at::set_num_threads(static_cast<int>(std::max<int64_t>(1, std::min(own, shared))));
}

void at_exit(int status, void*) {
  State& s = state();
  const bool failed = status != 0;
  if (!failed) {
    s.models.clear();
  }
  s.group->leave(status);
}

/// What the first Accelerator was given; read once, when the state is made.
Options& first_options() {
  static Options options;
  return options;
}

std::atomic<bool>& made_already() {
  static std::atomic<bool> made{false};
  return made;
}

State* make_state() {
  made_already() = true;
  auto made = std::make_unique<State>();
  made->options = first_options();
  made->control.configure(made->options);
  made->environment = read_environment();
  if (const auto& timeout = made->options.init_process_group.timeout) {
    TORCH_CHECK(timeout->count() > 0, "[accelerate] InitProcessGroupOptions::timeout is ", timeout->count(),
                " s, and must be 1 s or more");
    made->environment.timeout = *timeout;
  }
  made->device = choose_device(made->environment);
  const DataLoaderConfiguration& dataloader = made->options.dataloader;
  if (dataloader.batch_policy == BatchPolicy::PerProcess || !dataloader.split_batches.value_or(true)) {
    made->control.scheduler_steps = made->environment.world_size;  // until a loader says something else
  }
  if (made->environment.alone()) {
    return made.release();
  }
  redirect_output(made->environment);
  const bool cuda = made->device.is_cuda();
  if (cuda) {
    c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).setDevice(made->device);
  } else {
    share_threads(made->environment);
  }
  made->group = std::make_unique<Group>(made->environment, cuda);
  begin_common_stream(*made->group);
  separate_dropout();
  return made.release();
}

}  // namespace

State& state() {
  // Never destroyed: the library's users may be static objects. What has to end, ends in at_exit, which is
  // registered here, when c10d's own static objects exist, so that it runs before they go.
  static State* const instance = make_state();
  static const bool registered = [] {
    if (instance->group) {
      on_exit(at_exit, nullptr);
    }
    return true;
  }();
  (void)registered;
  return *instance;
}

State& state(const Options& options) {
  TORCH_CHECK(!made_already(),
              "[accelerate] an Accelerator with options must be the program's first: another one, or a "
              "loader, has made the process's state already");
  check(options.dataloader);
  first_options() = options;
  return state();
}

bool state_is_made() { return made_already(); }

bool alone() { return state().alone() || state().wholes > 0; }

int64_t rank() { return state().environment.rank; }

int64_t ranks() { return state().environment.world_size; }

}  // namespace detail

const char* version() { return ACCELERATE_VERSION; }

Accelerator::Accelerator() { detail::state(); }

Accelerator::Accelerator(const Options& options) { detail::state(options); }

torch::Device Accelerator::device() const {
  detail::State& s = detail::state();
  s.device_requested = true;
  return s.device;
}

torch::Device Accelerator::device(torch::Device original) const {
  detail::State& s = detail::state();
  if (s.alone() || !original.is_cuda()) {
    s.device = original;
  } else if (!s.device.is_cuda()) {
    // Either the job was forced onto the CPU, or the program asked for the CPU elsewhere and now wants a GPU.
    s.device = detail::choose_device(s.environment);
  }
  s.device_requested = true;
  return s.device;
}

int64_t Accelerator::process_index() const { return detail::state().environment.rank; }

int64_t Accelerator::local_process_index() const { return detail::state().environment.local_rank; }

int64_t Accelerator::restarts() const { return detail::number("TORCHELASTIC_RESTART_COUNT").value_or(0); }

int64_t Accelerator::num_processes() const { return detail::state().environment.world_size; }

}  // namespace accelerate
