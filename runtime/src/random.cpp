#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/alpha_dropout_native.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/feature_alpha_dropout_native.h>
#include <ATen/ops/feature_dropout_native.h>
#include <ATen/ops/rrelu_native.h>
#include <accelerate/sharing.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "environment.h"
#include "group.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// A 32-bit seed for this rank's stream (splitmix64's finaliser; mt19937 takes 32 bits).
uint64_t own_seed(uint64_t common_seed) {
  uint64_t x = common_seed + 0x9E3779B97F4A7C15ULL * static_cast<uint64_t>(rank() + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return (x ^ (x >> 31)) & 0xFFFFFFFFULL;
}

at::CPUGeneratorImpl& default_generator() {
  return *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

/// LibTorch's CPU generator, which counts how often it is seeded: manual_seed() restarts the own streams, too, and with
/// the same seed as before nothing else would tell, since numbers may be drawn before the own streams are used again.
class CountingGenerator final : public at::CPUGeneratorImpl {
 public:
  static inline uint64_t seedings = 0;  // under the generator's mutex

  explicit CountingGenerator(at::CPUGeneratorImpl& original) {
    set_engine(original.engine());
    set_next_float_normal_sample(original.next_float_normal_sample());
    set_next_double_normal_sample(original.next_double_normal_sample());
  }

  void set_current_seed(uint64_t seed) override {
    ++seedings;
    CPUGeneratorImpl::set_current_seed(seed);
  }
};

/// Makes the default generator one that counts, unless the program has a handle on it: that one would stay behind.
void count_seedings() {
  // The handle is a variable of LibTorch's, which it shows as constant.
  auto& handle = const_cast<at::Generator&>(at::detail::getDefaultCPUGenerator());
  if (handle.getIntrusivePtr().use_count() > 1) {
    return;
  }
  static auto* const original = new at::Generator(handle);  // somebody may still have its address
  handle = at::make_generator<CountingGenerator>(*at::check_generator<at::CPUGeneratorImpl>(*original));
}

/// The stream that isn't in the default generator just now: this rank's own, or, while that is in use, the
/// common one.
struct Streams {
  std::recursive_mutex mutex;  // held while the own stream is in use
  int depth = 0;
  std::optional<uint64_t> common_seed;  // that the own stream was made from
  uint64_t seedings = 0;                // of the default generator, when it was made
  at::mt19937 engine;
  std::optional<float> float_sample;
  std::optional<double> double_sample;

  void swap() {
    at::CPUGeneratorImpl& generator = default_generator();
    std::lock_guard<std::mutex> lock(generator.mutex_);
    const at::mt19937 other = generator.engine();
    const auto other_float = generator.next_float_normal_sample();
    const auto other_double = generator.next_double_normal_sample();
    generator.set_engine(engine);
    generator.set_next_float_normal_sample(float_sample);
    generator.set_next_double_normal_sample(double_sample);
    engine = other;
    float_sample = other_float;
    double_sample = other_double;
  }

  /// Whether manual_seed() was called since the own stream was made; it restarts both.
  bool outdated() const {
    at::CPUGeneratorImpl& generator = default_generator();
    std::lock_guard<std::mutex> lock(generator.mutex_);
    return common_seed != generator.current_seed() || seedings != CountingGenerator::seedings;
  }

  /// The own stream belongs to the common one as it is seeded now.
  void adopt() {
    at::CPUGeneratorImpl& generator = default_generator();
    std::lock_guard<std::mutex> lock(generator.mutex_);
    common_seed = generator.current_seed();
    seedings = CountingGenerator::seedings;
  }

  void enter() {
    mutex.lock();
    if (depth++ > 0) {
      return;
    }
    if (outdated()) {
      adopt();
      engine = at::mt19937(own_seed(*common_seed));
      float_sample.reset();
      double_sample.reset();
    }
    swap();
  }

  void leave() {
    if (--depth == 0) {
      swap();
    }
    mutex.unlock();
  }

  void save(torch::serialize::OutputArchive& archive) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (!common_seed || outdated()) {
      return;  // its next use will begin it anew
    }
    at::Generator copy = at::make_generator<at::CPUGeneratorImpl>();
    auto& generator = *at::check_generator<at::CPUGeneratorImpl>(copy);
    generator.set_engine(engine);
    generator.set_next_float_normal_sample(float_sample);
    generator.set_next_double_normal_sample(double_sample);
    archive.write("own_cpu", copy.get_state(), /*is_buffer=*/true);
    archive.write("own_cpu_seed", c10::IValue(static_cast<int64_t>(*common_seed)));
  }

  void load(torch::serialize::InputArchive& archive, bool anew) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    at::Tensor bytes;
    if (anew || !archive.try_read("own_cpu", bytes, /*is_buffer=*/true)) {
      common_seed.reset();
      return;
    }
    c10::IValue seed;
    archive.read("own_cpu_seed", seed);
    at::Generator copy = at::make_generator<at::CPUGeneratorImpl>();
    copy.set_state(bytes);
    auto& generator = *at::check_generator<at::CPUGeneratorImpl>(copy);
    engine = generator.engine();
    float_sample = generator.next_float_normal_sample();
    double_sample = generator.next_double_normal_sample();
    adopt();
    common_seed = static_cast<uint64_t>(seed.toInt());
  }
};

Streams& streams() {
  static auto* const instance = new Streams;
  return *instance;
}

/// The same on a CUDA device, whose generator is a seed and an offset.
class OwnCudaStream {
 public:
  explicit OwnCudaStream(const at::Tensor& x) {
    if (!x.is_cuda()) {
      return;
    }
    generator_ = at::globalContext().defaultGenerator(x.device());
    std::lock_guard<std::mutex> lock(generator_.mutex());
    seed_ = generator_.current_seed();
    offset_ = generator_.get_offset();
    own_ = &own(x.device());
    // manual_seed() restarts both streams; it seeds the CPU's generator as well.
    const uint64_t seedings = seedings_now();
    if (own_->common_seed != seed_ || own_->seedings != seedings || offset_ < own_->common_offset) {
      *own_ = Own{seed_, 0, 0, seedings};
    }
    own_->common_offset = offset_;
    generator_.set_current_seed(own_seed(seed_));
    generator_.set_offset(own_->offset);
  }
  ~OwnCudaStream() {
    if (generator_.defined()) {
      std::lock_guard<std::mutex> lock(generator_.mutex());
      own_->offset = generator_.get_offset();
      generator_.set_current_seed(seed_);
      generator_.set_offset(offset_);
    }
  }
  OwnCudaStream(const OwnCudaStream&) = delete;
  OwnCudaStream& operator=(const OwnCudaStream&) = delete;

  static void save(torch::serialize::OutputArchive& archive, const at::Device& device) {
    const Own& stream = own(device);
    if (stream.common_seed) {
      archive.write("own_cuda",
                    torch::tensor({static_cast<int64_t>(*stream.common_seed),
                                   static_cast<int64_t>(stream.common_offset), static_cast<int64_t>(stream.offset)},
                                  torch::kInt64),
                    /*is_buffer=*/true);
    }
  }

  static void load(torch::serialize::InputArchive& archive, const at::Device& device, bool anew) {
    at::Tensor numbers;
    own(device) = Own{};
    if (!anew && archive.try_read("own_cuda", numbers, /*is_buffer=*/true)) {
      const auto number = [&](int64_t i) { return static_cast<uint64_t>(numbers[i].item<int64_t>()); };
      own(device) = Own{number(0), number(1), number(2), seedings_now()};
    }
  }

 private:
  struct Own {
    std::optional<uint64_t> common_seed;
    uint64_t common_offset = 0, offset = 0;
    uint64_t seedings = 0;
  };
  static uint64_t seedings_now() {
    std::lock_guard<std::mutex> lock(default_generator().mutex_);
    return CountingGenerator::seedings;
  }
  static Own& own(const at::Device& device) {
    static auto* const streams = new std::map<at::DeviceIndex, Own>;
    return (*streams)[device.index()];
  }

  at::Generator generator_;
  Own* own_ = nullptr;
  uint64_t seed_ = 0, offset_ = 0;
};

at::Tensor state_of(at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state_of(at::Generator generator, const at::Tensor& bytes) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(bytes);
}

at::Device current_cuda_device() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice(); }

/// What LibTorch computes with numbers drawn for `x` comes from this rank's stream; in what every rank computes whole,
/// from the one that they have in common.
template <typename Native>
decltype(auto) in_own_stream(bool draws, const at::Tensor& x, Native native) {
  if (!draws || state().wholes > 0) {
    return native();
  }
  OwnRandomStream cpu;
  OwnCudaStream cuda(x);
  return native();
}

/// LibTorch's own implementation of an operator that draws, out of place or in place.
template <auto native>
struct Separated;

template <typename R, typename X, R (*dropout)(X, double, bool)>
struct Separated<dropout> {
  static R call(X x, double p, bool train) {
    return in_own_stream(train && p != 0, x, [&]() -> R { return dropout(x, p, train); });
  }
};

template <typename R, typename X,
          R (*rrelu)(X, const at::Scalar&, const at::Scalar&, bool, std::optional<at::Generator>)>
struct Separated<rrelu> {
  static R call(X x, const at::Scalar& lower, const at::Scalar& upper, bool train,
                std::optional<at::Generator> generator) {
    return in_own_stream(train && !generator, x,
                         [&]() -> R { return rrelu(x, lower, upper, train, std::move(generator)); });
  }
};

void add_kernels(torch::Library& library) {
  library.impl("rrelu", TORCH_FN(Separated<&at::native::rrelu>::call));
  library.impl("rrelu_", TORCH_FN(Separated<&at::native::rrelu_>::call));
  library.impl("dropout", TORCH_FN(Separated<&at::native::dropout>::call));
  library.impl("dropout_", TORCH_FN(Separated<&at::native::dropout_>::call));
  library.impl("feature_dropout", TORCH_FN(Separated<&at::native::feature_dropout>::call));
  library.impl("feature_dropout_", TORCH_FN(Separated<&at::native::feature_dropout_>::call));
  library.impl("alpha_dropout", TORCH_FN(Separated<&at::native::alpha_dropout>::call));
  library.impl("alpha_dropout_", TORCH_FN(Separated<&at::native::alpha_dropout_>::call));
  library.impl("feature_alpha_dropout", TORCH_FN(Separated<&at::native::feature_alpha_dropout>::call));
  library.impl("feature_alpha_dropout_", TORCH_FN(Separated<&at::native::feature_alpha_dropout_>::call));
}

void broadcast_random_state(Group& group) {
  at::Tensor bytes = random_state();
  group.broadcast(bytes, 0, "the random state");
  set_random_state(bytes);
}

/// Any number that no program seeds with.
constexpr uint64_t kUnseeded = 0x756e736565646564ULL;

/// What variables' initializers draw is drawn before `main`, where no rank has met another. LibTorch seeds from the
/// system's entropy; the ranks of a job all begin with one seed instead. This library is loaded before the program's
/// own initializers run.
[[maybe_unused]] const bool drawn_alike_before_main = [] {
  try {
    if (!read_environment().alone()) {
      default_generator().set_current_seed(kUnseeded);
    }
  } catch (const c10::Error&) {
    // The first Accelerator tells what is wrong with the environment.
  }
  return true;
}();

}  // namespace

void begin_common_stream(Group& group) {
  {
    at::CPUGeneratorImpl& generator = default_generator();
    std::lock_guard<std::mutex> lock(generator.mutex_);
    if (generator.current_seed() == kUnseeded) {
      generator.set_current_seed(c10::detail::getNonDeterministicRandom());
    }
  }
  broadcast_random_state(group);
}

void separate_dropout() {
  count_seedings();
  // These operators are composites, so their own kernels stand for all keys; a kernel at an autograd key
  // takes precedence there. Calling the native function from it keeps their gradients.
  static auto* const cpu =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__, __LINE__);
  static auto* const cuda =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__, __LINE__);
  add_kernels(*cpu);
  add_kernels(*cuda);
}

OwnRandomStream::OwnRandomStream() : active_(!state().alone()) {
  if (active_) {
    streams().enter();
  }
}

OwnRandomStream::~OwnRandomStream() {
  if (active_) {
    streams().leave();
  }
}

at::Tensor random_state() { return state_of(at::detail::getDefaultCPUGenerator()); }

void set_random_state(const at::Tensor& bytes) { set_state_of(at::detail::getDefaultCPUGenerator(), bytes); }

void agree_on_random_state() {
  State& s = state();
  if (!s.alone()) {
    broadcast_random_state(*s.group);
  }
}

void save_random_streams(torch::serialize::OutputArchive& archive) {
  archive.write("cpu", random_state(), /*is_buffer=*/true);
  streams().save(archive);
  if (torch::cuda::is_available()) {
    const at::Device device = current_cuda_device();
    archive.write("cuda", state_of(at::globalContext().defaultGenerator(device)), /*is_buffer=*/true);
    OwnCudaStream::save(archive, device);
  }
}

void load_random_streams(torch::serialize::InputArchive& archive, bool common_only) {
  at::Tensor bytes;
  archive.read("cpu", bytes, /*is_buffer=*/true);
  set_random_state(bytes);
  streams().load(archive, common_only);
  at::Tensor cuda_bytes;
  if (torch::cuda::is_available() && archive.try_read("cuda", cuda_bytes, /*is_buffer=*/true)) {
    const at::Device device = current_cuda_device();
    set_state_of(at::globalContext().defaultGenerator(device), cuda_bytes);
    OwnCudaStream::load(archive, device, common_only);
  }
}

}  // namespace accelerate::detail
