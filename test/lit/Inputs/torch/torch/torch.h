#pragma once

// The part of LibTorch's interface that the tests use: declarations alone, with LibTorch's names, namespaces, base
// classes and default arguments. The tests run against LibTorch's own headers too, so nothing here can drift.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

//===----------------------------------------------------------------------===//
// c10
//===----------------------------------------------------------------------===//

namespace c10 {

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

struct Device {
  Device(DeviceType type, DeviceIndex index = -1);
  Device(const std::string& device_string);
  bool operator==(const Device& other) const noexcept;
  bool operator!=(const Device& other) const noexcept;
  DeviceType type() const noexcept;
  DeviceIndex index() const noexcept;
  bool is_cuda() const noexcept;
  bool is_cpu() const noexcept;
  std::string str() const;
};
std::ostream& operator<<(std::ostream& stream, const Device& device);

enum class ScalarType : int8_t { Byte, Int, Long, Half, Float, Double, Bool };
constexpr ScalarType kByte = ScalarType::Byte;
constexpr ScalarType kInt = ScalarType::Int;
constexpr ScalarType kInt64 = ScalarType::Long;
constexpr ScalarType kLong = ScalarType::Long;
constexpr ScalarType kFloat = ScalarType::Float;
constexpr ScalarType kFloat32 = ScalarType::Float;
constexpr ScalarType kDouble = ScalarType::Double;
constexpr ScalarType kFloat64 = ScalarType::Double;
constexpr ScalarType kBool = ScalarType::Bool;

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast };

class Scalar {
 public:
  Scalar(int v);
  Scalar(int64_t v);
  Scalar(double v);
  Scalar(float v);
  Scalar(bool v);
  double toDouble() const;
};

class SymInt {
 public:
  SymInt(int64_t v);
};

struct TensorOptions {
  TensorOptions();
  template <typename T, typename = std::enable_if_t<std::is_constructible_v<Device, T&&> &&
                                                    !std::is_same_v<std::decay_t<T>, TensorOptions>>>
  TensorOptions(T&& device);
  TensorOptions(ScalarType dtype);
  TensorOptions device(Device device) const;
  TensorOptions dtype(ScalarType dtype) const;
  TensorOptions requires_grad(bool requires_grad) const;
};

template <typename T>
class ArrayRef {
 public:
  ArrayRef();
  ArrayRef(const T& one);
  ArrayRef(const std::initializer_list<T>& list);
  template <typename A>
  ArrayRef(const std::vector<T, A>& vector);
  const T* begin() const;
  const T* end() const;
  size_t size() const;
  const T& operator[](size_t index) const;
};
using IntArrayRef = ArrayRef<int64_t>;

template <typename T>
using optional = std::optional<T>;
using std::nullopt;

class Error : public std::exception {};

}  // namespace c10

//===----------------------------------------------------------------------===//
// at
//===----------------------------------------------------------------------===//

namespace at {

using namespace c10;

class Tensor;
using TensorList = c10::ArrayRef<Tensor>;
using OptionalIntArrayRef = std::optional<IntArrayRef>;

namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}

template <typename T, size_t N>
class TensorAccessor {
 public:
  T& operator[](int64_t index);
};

class TensorBase {
 public:
  int64_t dim() const;
  int64_t size(int64_t dim) const;
  IntArrayRef sizes() const;
  int64_t numel() const;
  bool defined() const;
  TensorOptions options() const;
  Device device() const;
  ScalarType scalar_type() const;
  bool is_cuda() const;
  bool requires_grad() const;
  template <typename T>
  unsigned register_hook(T&& hook) const { return 0; }  // a lambda as an argument wants a definition
  template <typename T>
  T* data_ptr() const;
};

class Tensor : public TensorBase {
 public:
  Tensor();
  Tensor& operator=(const Tensor& other) &;
  Tensor& operator=(Tensor&& other) & noexcept;
  Tensor& operator=(const Scalar& v) &&;
  Tensor& operator=(const Tensor& other) &&;
  Tensor(const Tensor& other);
  Tensor(Tensor&& other);

  Tensor operator-() const;
  Tensor& operator+=(const Tensor& other);
  Tensor& operator+=(const Scalar& other);
  Tensor& operator-=(const Tensor& other);
  Tensor& operator-=(const Scalar& other);
  Tensor& operator*=(const Tensor& other);
  Tensor& operator*=(const Scalar& other);
  Tensor& operator/=(const Tensor& other);
  Tensor& operator/=(const Scalar& other);
  Tensor operator[](const Scalar& index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor operator[](int64_t index) const;

  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
  Scalar item() const;
  template <typename T>
  T item() const;
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const&;

  Tensor to(TensorOptions options = {}, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor cuda() const;
  Tensor cpu() const;
  Tensor detach() const;
  Tensor clone(std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor contiguous(MemoryFormat memory_format = MemoryFormat::Contiguous) const;
  const Tensor& requires_grad_(bool requires_grad = true) const;
  const Tensor& set_requires_grad(bool requires_grad) const;
  const Tensor& grad() const;

  Tensor sum(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor sum(OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor mean(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor mean(OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor argmax(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const;
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
  Tensor max() const;
  Tensor eq(const Tensor& other) const;
  Tensor eq(const Scalar& other) const;
  Tensor ne(const Scalar& other) const;
  Tensor pow(const Scalar& exponent) const;
  Tensor norm(const Scalar& p = 2) const;
  Tensor repeat(IntArrayRef repeats) const;
  Tensor view(IntArrayRef size) const;
  Tensor reshape(IntArrayRef size) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor min() const;
  Tensor log() const;
  Tensor exp() const;
  Tensor abs() const;
  Tensor sign() const;
  Tensor squeeze() const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor nonzero() const;
  Tensor gather(int64_t dim, const Tensor& index, bool sparse_grad = false) const;
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
  Tensor median() const;
  Tensor squeeze(int64_t dim) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor t() const;
  Tensor mm(const Tensor& other) const;
  Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor& zero_() const;
  Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
};

Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator+(const Tensor& x, const Scalar& y);
Tensor operator+(const Scalar& x, const Tensor& y);
Tensor operator-(const Tensor& x, const Tensor& y);
Tensor operator-(const Tensor& x, const Scalar& y);
Tensor operator-(const Scalar& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Scalar& y);
Tensor operator*(const Scalar& x, const Tensor& y);
Tensor operator/(const Tensor& x, const Tensor& y);
Tensor operator/(const Tensor& x, const Scalar& y);
Tensor operator/(const Scalar& x, const Tensor& y);
Tensor operator==(const Tensor& x, const Tensor& y);
Tensor operator>(const Tensor& x, const Scalar& y);
std::ostream& operator<<(std::ostream& out, const Tensor& t);

Tensor relu(const Tensor& self);
Tensor exp(const Tensor& self);
Tensor sqrt(const Tensor& self);
Tensor min(const Tensor& self);
Tensor tanh(const Tensor& self);
Tensor sigmoid(const Tensor& self);
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = {},
                int64_t reduction = Reduction::Mean, int64_t ignore_index = -100);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = {},
                          int64_t reduction = Reduction::Mean, int64_t ignore_index = -100,
                          double label_smoothing = 0.0);
Tensor take(const Tensor& self, const Tensor& index);
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean);
Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor matmul(const Tensor& self, const Tensor& other);
Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor mean(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor cat(TensorList tensors, int64_t dim = 0);
Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path = std::nullopt);
Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = {}, int64_t minlength = 0);
Tensor outer(const Tensor& self, const Tensor& vec2);
Tensor stack(TensorList tensors, int64_t dim = 0);
Tensor max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {});
Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {});
Tensor one_hot(const Tensor& self, int64_t num_classes = -1);
Tensor zeros_like(const Tensor& self, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randn_like(const Tensor& self, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);

}  // namespace at

//===----------------------------------------------------------------------===//
// torch
//===----------------------------------------------------------------------===//

namespace torch {

using namespace at;
using at::optional;
using Dtype = at::ScalarType;

Tensor zeros(at::IntArrayRef size, at::TensorOptions options = {});
Tensor ones(at::IntArrayRef size, at::TensorOptions options = {});
Tensor linspace(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::TensorOptions options = {});
Tensor full(at::IntArrayRef size, const at::Scalar& value, at::TensorOptions options = {});
Tensor rand(at::IntArrayRef size, at::TensorOptions options = {});
Tensor randn(at::IntArrayRef size, at::TensorOptions options = {});
Tensor randint(int64_t high, at::IntArrayRef size, at::TensorOptions options = {});
Tensor randperm(int64_t n, at::TensorOptions options = {});
Tensor arange(const at::Scalar& end, at::TensorOptions options = {});
Tensor tensor(std::initializer_list<double> values, const at::TensorOptions& options = {});
Tensor tensor(double value, const at::TensorOptions& options = {});

void manual_seed(uint64_t seed);

namespace cuda {
bool is_available();
size_t device_count();
void synchronize(int64_t device_index = -1);
}  // namespace cuda

struct NoGradGuard {
  NoGradGuard();
  ~NoGradGuard();
};

namespace autograd {
using variable_list = std::vector<Tensor>;
void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const variable_list& inputs = {});
}  // namespace autograd


namespace serialize {
class OutputArchive final {
 public:
  OutputArchive();
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void save_to(const std::string& filename);
  void save_to(std::ostream& stream);
  void save_to(const std::function<size_t(const void*, size_t)>& func);
};
class InputArchive final {
 public:
  void load_from(const std::string& filename, std::optional<torch::Device> device = std::nullopt);
};
}  // namespace serialize

template <typename Value, typename... SaveToArgs>
void save(const Value& value, SaveToArgs&&... args) {}  // a lambda as an argument wants a definition
template <typename Value, typename... LoadFromArgs>
void load(Value& value, LoadFromArgs&&... args) {}

template <typename Key, typename Value>
class OrderedDict {
 public:
  class Item {
   public:
    const Key& key() const;
    Value& value();
    const Value& value() const;
  };
  std::vector<Item>::const_iterator begin() const;
  std::vector<Item>::const_iterator end() const;
};

//===----------------------------------------------------------------------===//
// torch::nn
//===----------------------------------------------------------------------===//

namespace nn {

template <typename Contained>
class ModuleHolder;

class Module : public std::enable_shared_from_this<Module> {
 public:
  Module();
  explicit Module(std::string name);
  virtual ~Module() = default;
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  virtual void train(bool on = true);
  void eval();
  virtual bool is_training() const noexcept;
  virtual void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false);
  virtual void to(torch::Dtype dtype, bool non_blocking = false);
  virtual void to(torch::Device device, bool non_blocking = false);
  virtual void zero_grad(bool set_to_none = true);
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, std::shared_ptr<ModuleType> module);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, ModuleHolder<ModuleType> module_holder);
};

namespace detail {
struct ModuleHolderIndicator {};
template <typename T>
using is_module_holder = std::is_base_of<ModuleHolderIndicator, std::decay_t<T>>;
}  // namespace detail

template <typename Contained>
class ModuleHolder : detail::ModuleHolderIndicator {
 protected:
  std::shared_ptr<Contained> impl_;

 public:
  using ContainedType = Contained;
  ModuleHolder();
  ModuleHolder(std::nullptr_t);
  template <typename Head, typename... Tail,
            typename = std::enable_if_t<!(detail::is_module_holder<Head>::value && sizeof...(Tail) == 0)>>
  explicit ModuleHolder(Head&& head, Tail&&... tail);
  ModuleHolder(std::shared_ptr<Contained> module);
  explicit operator bool() const noexcept;
  Contained* operator->();
  const Contained* operator->() const;
  Contained& operator*();
  const std::shared_ptr<Contained>& ptr() const;
  Contained* get();
  template <typename... Args>
  auto operator()(Args&&... args) -> decltype(std::declval<Contained&>().forward(std::declval<Args>()...));
  bool is_empty() const noexcept;
};

#define TORCH_MODULE_IMPL(Name, ImplType)                    \
  class Name : public torch::nn::ModuleHolder<ImplType> {    \
   public:                                                   \
    using torch::nn::ModuleHolder<ImplType>::ModuleHolder;   \
    using Impl = ImplType;                                   \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features);
  LinearOptions& bias(bool on);
};
class LinearImpl : public Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features);
  explicit LinearImpl(const LinearOptions& options);
  Tensor forward(const Tensor& input);
  Tensor weight;
  Tensor bias;
};
TORCH_MODULE(Linear);

template <size_t D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, int64_t kernel_size);
  ConvOptions& stride(int64_t stride);
};
using Conv2dOptions = ConvOptions<2>;
class Conv2dImpl : public Module {
 public:
  Conv2dImpl(int64_t input_channels, int64_t output_channels, int64_t kernel_size);
  explicit Conv2dImpl(Conv2dOptions options);
  Tensor forward(const Tensor& input);
};
TORCH_MODULE(Conv2d);

struct DropoutOptions {
  DropoutOptions(double p = 0.5);
};
class DropoutImpl : public Module {
 public:
  DropoutImpl();
  explicit DropoutImpl(double p);
  Tensor forward(Tensor input);
};
TORCH_MODULE(Dropout);

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features);
};
template <size_t D, typename Derived>
class BatchNormImplBase : public Module {
 public:
  Tensor forward(const Tensor& input);
};
class BatchNorm1dImpl : public BatchNormImplBase<1, BatchNorm1dImpl> {
 public:
  explicit BatchNorm1dImpl(const BatchNormOptions& options);
};
TORCH_MODULE(BatchNorm1d);
class BatchNorm2dImpl : public BatchNormImplBase<2, BatchNorm2dImpl> {
 public:
  explicit BatchNorm2dImpl(const BatchNormOptions& options);
};
TORCH_MODULE(BatchNorm2d);

class ReLUImpl : public Module {
 public:
  ReLUImpl();
  Tensor forward(Tensor input);
};
TORCH_MODULE(ReLU);

class AnyModule {
 public:
  template <typename ModuleType>
  AnyModule(ModuleType&& module);
  template <typename ReturnType = torch::Tensor, typename... ArgumentTypes>
  ReturnType forward(ArgumentTypes&&... arguments);
};

struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim);
};
class SoftmaxImpl : public Module {
 public:
  explicit SoftmaxImpl(const SoftmaxOptions& options);
  Tensor forward(const Tensor& input);
};
TORCH_MODULE(Softmax);

struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size);
  LSTMOptions& batch_first(const bool& on);
};
class LSTMImpl : public Module {
 public:
  explicit LSTMImpl(const LSTMOptions& options);
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& input,
                                                         std::optional<std::tuple<Tensor, Tensor>> hx = {});
};
TORCH_MODULE(LSTM);

class SequentialImpl : public Module {
 public:
  SequentialImpl();
  template <typename... Modules, typename = std::enable_if_t<(sizeof...(Modules) > 0)>>
  explicit SequentialImpl(Modules&&... modules);
  template <typename ReturnType = Tensor, typename... InputTypes>
  ReturnType forward(InputTypes&&... inputs);
  template <typename M>
  void push_back(M&& module);
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() : ModuleHolder() {}
};

namespace enumtype_options {
struct Reduction {};
}  // namespace enumtype_options

}  // namespace nn

namespace enumtype {
struct kNone {};
struct kMean {};
struct kSum {};
}  // namespace enumtype
constexpr enumtype::kNone kNone{};
constexpr enumtype::kMean kMean{};
constexpr enumtype::kSum kSum{};

namespace nn {

struct CrossEntropyLossOptions {
  CrossEntropyLossOptions();
  template <typename Reduction>
  CrossEntropyLossOptions(Reduction reduction);
  template <typename Reduction>
  CrossEntropyLossOptions& reduction(const Reduction& reduction);
  CrossEntropyLossOptions& weight(const Tensor& weight);
  CrossEntropyLossOptions& ignore_index(const int64_t& index);
  const Tensor& weight() const;
  const int64_t& ignore_index() const;
};
class CrossEntropyLossImpl : public Module {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options = {});
  CrossEntropyLossOptions options;
  Tensor weight;
  Tensor forward(const Tensor& input, const Tensor& target);
};
TORCH_MODULE(CrossEntropyLoss);

struct MSELossOptions {
  MSELossOptions();
  template <typename Reduction>
  MSELossOptions(Reduction reduction);
  template <typename Reduction>
  MSELossOptions& reduction(const Reduction& reduction);
};
class MSELossImpl : public Module {
 public:
  explicit MSELossImpl(MSELossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
};
TORCH_MODULE(MSELoss);

namespace functional {
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using MSELossFuncOptions = MSELossOptions;
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
}  // namespace functional

namespace utils {
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
namespace rnn {
Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false, double padding_value = 0);
}  // namespace rnn
}  // namespace utils

}  // namespace nn

//===----------------------------------------------------------------------===//
// torch::optim
//===----------------------------------------------------------------------===//

namespace optim {

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual double get_lr() const;
  virtual void set_lr(const double lr);
};

class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params);
  OptimizerOptions& options();
  std::vector<Tensor>& params();
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  virtual ~Optimizer() = default;
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  void zero_grad(bool set_to_none = true);
  std::vector<OptimizerParamGroup>& param_groups() noexcept;
};

struct SGDOptions : public OptimizerOptions {
  SGDOptions(double lr);
  SGDOptions& momentum(const double& momentum);
  SGDOptions& weight_decay(const double& decay);
};
class SGD : public Optimizer {
 public:
  explicit SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> params, SGDOptions defaults);
  Tensor step(LossClosure closure = nullptr) override;
};

struct AdamOptions : public OptimizerOptions {
  AdamOptions(double lr = 1e-3);
  AdamOptions& weight_decay(const double& decay);
};
class Adam : public Optimizer {
 public:
  explicit Adam(const std::vector<OptimizerParamGroup>& param_groups, AdamOptions defaults = {});
  explicit Adam(std::vector<Tensor> params, AdamOptions defaults = {});
  Tensor step(LossClosure closure = nullptr) override;
};

class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler() = default;
  void step();

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_;
};
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const unsigned step_size, const double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
};
class ReduceLROnPlateauScheduler {
 public:
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer);
  virtual ~ReduceLROnPlateauScheduler() = default;
  void step(float metric);
};

}  // namespace optim

//===----------------------------------------------------------------------===//
// torch::data
//===----------------------------------------------------------------------===//

namespace data {

namespace example {
struct NoTarget {};
}  // namespace example

template <typename Data = at::Tensor, typename Target = at::Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target);
  Data data;
  Target target;
};
template <typename Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data);
  Data data;
};
using TensorExample = Example<at::Tensor, example::NoTarget>;

namespace samplers {
template <typename BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  virtual void reset(std::optional<size_t> new_size) = 0;
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
};
class RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(int64_t size, Dtype index_dtype = c10::kInt64);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
};
class SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
};
template <typename BatchRequest = std::vector<size_t>>
class DistributedSampler : public Sampler<BatchRequest> {
 public:
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true);
};
class DistributedRandomSampler : public DistributedSampler<> {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
};
class DistributedSequentialSampler : public DistributedSampler<> {
 public:
  DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
};
}  // namespace samplers

namespace datasets {

template <typename SourceDataset, typename AppliedTransform>
class MapDataset;

template <typename Self, typename Batch, typename BatchRequest = c10::ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  constexpr static bool is_stateful = false;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <typename TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) &;
  template <typename TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) &&;
};

template <typename Self, typename SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(c10::ArrayRef<size_t> indices) override;
};

template <typename SourceDataset, typename AppliedTransform>
class MapDataset : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>,
                                       typename AppliedTransform::OutputBatchType> {
 public:
  typename AppliedTransform::OutputBatchType get_batch(c10::ArrayRef<size_t> indices) override;
  std::optional<size_t> size() const noexcept override;
};

class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
};

struct TensorDataset : public Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  explicit TensorDataset(Tensor tensor);
  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;
};

}  // namespace datasets

namespace transforms {
template <typename InputBatch, typename OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};
template <typename Batch, typename T = std::vector<Batch>>
using Collation = BatchTransform<T, Batch>;
template <typename T = Example<>>
struct Stack {
  using OutputBatchType = T;
};
template <typename Target = Tensor>
struct Normalize {
  using OutputBatchType = std::vector<Example<Tensor, Target>>;
  Normalize(double mean, double stddev);
};
}  // namespace transforms

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size);
  DataLoaderOptions& batch_size(const size_t& size);
  DataLoaderOptions& workers(const size_t& workers);
  DataLoaderOptions& drop_last(const bool& drop);
};

template <typename Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;
  Iterator& operator++();
  Batch& operator*();
  Batch* operator->();
  bool operator==(const Iterator& other) const;
  bool operator!=(const Iterator& other) const;
};

template <typename Dataset, typename Batch, typename BatchRequest>
class DataLoaderBase {
 public:
  using BatchType = Batch;
  virtual ~DataLoaderBase() = default;
  Iterator<Batch> begin();
  Iterator<Batch> end();
};

template <typename Dataset, typename Sampler>
class StatelessDataLoader : public DataLoaderBase<Dataset, typename Dataset::BatchType,
                                                  typename Sampler::BatchRequestType> {
 public:
  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options);
};

template <typename Dataset, typename Sampler>
std::enable_if_t<!Dataset::is_stateful, std::unique_ptr<StatelessDataLoader<Dataset, Sampler>>> make_data_loader(
    Dataset dataset, Sampler sampler, DataLoaderOptions options);
template <typename Sampler = samplers::RandomSampler, typename Dataset>
std::enable_if_t<!Dataset::is_stateful && std::is_constructible_v<Sampler, size_t>,
                 std::unique_ptr<StatelessDataLoader<Dataset, Sampler>>>
make_data_loader(Dataset dataset, DataLoaderOptions options = DataLoaderOptions());

}  // namespace data
}  // namespace torch
