#pragma once

// The operators, the functions of ATen/ops that the tests use, and the factories of torch's own namespace.

#include <functional>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <vector>

#include <torch/tensor.h>

namespace at {

Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator+(const Tensor& x, const Scalar& y);
Tensor operator+(const Scalar& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Scalar& y);
Tensor operator*(const Scalar& x, const Tensor& y);
Tensor operator-(const Tensor& x, const Tensor& y);
Tensor operator-(const Tensor& x, const Scalar& y);
Tensor operator-(const Scalar& x, const Tensor& y);
Tensor operator/(const Tensor& x, const Tensor& y);
Tensor operator/(const Tensor& x, const Scalar& y);
Tensor operator/(const Scalar& x, const Tensor& y);
Tensor operator%(const Tensor& x, const Tensor& y);
Tensor operator%(const Tensor& x, const Scalar& y);
Tensor operator%(const Scalar& x, const Tensor& y);
Tensor operator&(const Tensor& x, const Tensor& y);
Tensor operator&(const Tensor& x, const Scalar& y);
Tensor operator&(const Scalar& x, const Tensor& y);
Tensor operator|(const Tensor& x, const Tensor& y);
Tensor operator|(const Tensor& x, const Scalar& y);
Tensor operator|(const Scalar& x, const Tensor& y);
Tensor operator^(const Tensor& x, const Tensor& y);
Tensor operator^(const Tensor& x, const Scalar& y);
Tensor operator^(const Scalar& x, const Tensor& y);
Tensor operator<(const Tensor& x, const Tensor& y);
Tensor operator<(const Tensor& x, const Scalar& y);
Tensor operator<(const Scalar& x, const Tensor& y);
Tensor operator<=(const Tensor& x, const Tensor& y);
Tensor operator<=(const Tensor& x, const Scalar& y);
Tensor operator<=(const Scalar& x, const Tensor& y);
Tensor operator>(const Tensor& x, const Tensor& y);
Tensor operator>(const Tensor& x, const Scalar& y);
Tensor operator>(const Scalar& x, const Tensor& y);
Tensor operator>=(const Tensor& x, const Tensor& y);
Tensor operator>=(const Tensor& x, const Scalar& y);
Tensor operator>=(const Scalar& x, const Tensor& y);
Tensor operator==(const Tensor& x, const Tensor& y);
Tensor operator==(const Tensor& x, const Scalar& y);
Tensor operator==(const Scalar& x, const Tensor& y);
Tensor operator!=(const Tensor& x, const Tensor& y);
Tensor operator!=(const Tensor& x, const Scalar& y);
Tensor operator!=(const Scalar& x, const Tensor& y);

Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& add_out(Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
             const Scalar& alpha = 1);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, ScalarType out_dtype, const Scalar& beta = 1,
             const Scalar& alpha = 1);
Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& self, bool stable, int64_t dim = -1, bool descending = false);
Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = std::nullopt);
Tensor bernoulli(const Tensor& self, std::optional<Generator> generator = std::nullopt);
Tensor bernoulli(const Tensor& self, double p, std::optional<Generator> generator = std::nullopt);
Tensor bernoulli(const Tensor& self, const Tensor& p, std::optional<Generator> generator = std::nullopt);
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = {},
                            int64_t reduction = Reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight = {},
                                        const std::optional<Tensor>& pos_weight = {},
                                        int64_t reduction = Reduction::Mean);
Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = {}, int64_t minlength = 0);
Tensor bmm(const Tensor& self, const Tensor& mat2);
Tensor bmm(const Tensor& self, const Tensor& mat2, ScalarType out_dtype);
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);
Tensor cat(const ITensorListRef& tensors, int64_t dim = 0);
Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2, std::optional<int64_t> compute_mode = std::nullopt);
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max = std::nullopt);
Tensor clamp(const Tensor& self, const std::optional<Tensor>& min = {}, const std::optional<Tensor>& max = {});
Tensor clamp_min(const Tensor& self, const Scalar& min);
Tensor clamp_min(const Tensor& self, const Tensor& min);
Tensor concat(TensorList tensors, int64_t dim = 0);
Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value = 0);
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1,
              IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
              std::string_view padding, IntArrayRef dilation = 1, int64_t groups = 1);
Tensor cos(const Tensor& self);
Tensor cosh(const Tensor& self);
Tensor count_nonzero(const Tensor& self, IntArrayRef dim);
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim = std::nullopt);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = {},
                          int64_t reduction = Reduction::Mean, int64_t ignore_index = -100,
                          double label_smoothing = 0.0);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
                int64_t blank = 0, int64_t reduction = Reduction::Mean, bool zero_infinity = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank = 0, int64_t reduction = Reduction::Mean,
                bool zero_infinity = false);
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor dropout(const Tensor& input, double p, bool train);
Tensor dstack(TensorList tensors);
Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path = std::nullopt);
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1, bool scale_grad_by_freq = false,
                 bool sparse = false);
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq = false,
                                                         int64_t mode = 0, bool sparse = false,
                                                         const std::optional<Tensor>& per_sample_weights = {},
                                                         bool include_last_offset = false);
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                                                         bool sparse, const std::optional<Tensor>& per_sample_weights,
                                                         bool include_last_offset, std::optional<int64_t> padding_idx);
Tensor exp(const Tensor& self);
Tensor gelu(const Tensor& self, std::string_view approximate = "none");
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean, double delta = 1.0);
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false, bool invert = false);
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
Tensor isnan(const Tensor& self);
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean, bool log_target = false);
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean);
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true,
                                              std::optional<std::string_view> driver = std::nullopt);
Tensor log(const Tensor& self);
Tensor log1p(const Tensor& self);
Tensor log_sigmoid(const Tensor& self);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor logical_and(const Tensor& self, const Tensor& other);
Tensor logical_or(const Tensor& self, const Tensor& other);
Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor masked_select(const Tensor& self, const Tensor& mask);
Tensor matmul(const Tensor& self, const Tensor& other);
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor max(const Tensor& self);
Tensor max(const Tensor& self, const Tensor& other);
Tensor max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                  IntArrayRef dilation = 1, bool ceil_mode = false);
Tensor maximum(const Tensor& self, const Tensor& other);
Tensor mean(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
            std::optional<ScalarType> dtype = std::nullopt);
std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor min(const Tensor& self);
Tensor min(const Tensor& self, const Tensor& other);
Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor mm(const Tensor& self, const Tensor& mat2, ScalarType out_dtype);
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean);
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement = false,
                   std::optional<Generator> generator = std::nullopt);
Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = {},
                int64_t reduction = Reduction::Mean, int64_t ignore_index = -100);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype);
Tensor norm(const Tensor& self, const Scalar& p = 2);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false);
Tensor normal(const Tensor& mean, double std = 1, std::optional<Generator> generator = std::nullopt);
Tensor normal(double mean, const Tensor& std, std::optional<Generator> generator = std::nullopt);
Tensor normal(const Tensor& mean, const Tensor& std, std::optional<Generator> generator = std::nullopt);
Tensor normal(double mean, double std, IntArrayRef size, std::optional<Generator> generator = std::nullopt,
              TensorOptions options = {});
Tensor one_hot(const Tensor& self, int64_t num_classes = -1);
Tensor outer(const Tensor& self, const Tensor& vec2);
Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0.0,
                    std::string_view padding_side = "right");
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-06, bool keepdim = false);
Tensor poisson(const Tensor& self, std::optional<Generator> generator = std::nullopt);
Tensor pow(const Tensor& self, const Tensor& exponent);
Tensor pow(const Scalar& self, const Tensor& exponent);
Tensor pow(const Tensor& self, const Scalar& exponent);
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor relu(const Tensor& self);
Tensor reshape(const Tensor& self, IntArrayRef shape);
Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {});
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& attn_mask = {}, double dropout_p = 0.0,
                                    bool is_causal = false, std::optional<double> scale = std::nullopt,
                                    bool enable_gqa = false);
Tensor sigmoid(const Tensor& self);
Tensor silu(const Tensor& self);
Tensor sin(const Tensor& self);
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = Reduction::Mean, double beta = 1.0);
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt);
Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1, bool descending = false);
std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, int64_t dim = -1,
                                bool descending = false);
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& self, IntArrayRef split_size, int64_t dim = 0);
Tensor sqrt(const Tensor& self);
Tensor square(const Tensor& self);
Tensor stack(TensorList tensors, int64_t dim = 0);
Tensor std(const Tensor& self, bool unbiased);
Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false);
Tensor std(const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
           const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
           std::optional<ScalarType> dtype = std::nullopt);
Tensor& sum_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                std::optional<ScalarType> dtype = std::nullopt);
Tensor& sum_out(Tensor& out, const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
Tensor take(const Tensor& self, const Tensor& index);
Tensor tanh(const Tensor& self);
Tensor tril(const Tensor& self, int64_t diagonal = 0);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1.0,
                           double p = 2, double eps = 1e-06, bool swap = false, int64_t reduction = Reduction::Mean);
Tensor vstack(TensorList tensors);
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
std::vector<Tensor> where(const Tensor& condition);
void manual_seed(uint64_t seed);
void set_num_threads(int);
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  f(begin, end);
}

}  // namespace at

namespace torch {

using namespace at;
using std::nullopt;
using std::optional;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;

using NoGradGuard = at::NoGradGuard;
using AutoGradMode = at::AutoGradMode;
using at::manual_seed;
using at::set_num_threads;

namespace detail {
struct TensorDataContainer {
  TensorDataContainer();
  TensorDataContainer(uint8_t value);
  TensorDataContainer(int8_t value);
  TensorDataContainer(int16_t value);
  TensorDataContainer(int value);
  TensorDataContainer(int64_t value);
  TensorDataContainer(float value);
  TensorDataContainer(double value);
  TensorDataContainer(bool value);
  TensorDataContainer(std::initializer_list<TensorDataContainer> init_list);
  TensorDataContainer(at::ArrayRef<uint8_t> values);
  TensorDataContainer(at::ArrayRef<int> values);
  TensorDataContainer(at::ArrayRef<int64_t> values);
  TensorDataContainer(at::ArrayRef<float> values);
  TensorDataContainer(at::ArrayRef<double> values);
  TensorDataContainer(at::ArrayRef<bool> values);
  TensorDataContainer(const std::vector<uint8_t>& values);
  TensorDataContainer(const std::vector<int>& values);
  TensorDataContainer(const std::vector<int64_t>& values);
  TensorDataContainer(const std::vector<float>& values);
  TensorDataContainer(const std::vector<double>& values);
};
}  // namespace detail
Tensor tensor(detail::TensorDataContainer tensor_data_container, const TensorOptions& options = {});

using Deleter = std::function<void(void*)>;
using at::MemoryFormat;
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const Deleter& deleter,
                 const TensorOptions& options = TensorOptions());
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = TensorOptions());
Tensor from_blob(void* data, IntArrayRef sizes, const Deleter& deleter, const TensorOptions& options = TensorOptions());
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = TensorOptions());

Tensor arange(const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, TensorOptions options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, TensorOptions options = {});
Tensor empty(IntArrayRef size, TensorOptions options = {}, std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor empty_like(const Tensor& self, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor eye(int64_t n, TensorOptions options = {});
Tensor eye(int64_t n, int64_t m, TensorOptions options = {});
Tensor full(IntArrayRef size, const Scalar& fill_value, TensorOptions options = {});
Tensor full_like(const Tensor& self, const Scalar& fill_value, TensorOptions options = {},
                 std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, TensorOptions options = {});
Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps, TensorOptions options = {});
Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps, TensorOptions options = {});
Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps, TensorOptions options = {});
Tensor ones(IntArrayRef size, TensorOptions options = {});
Tensor ones_like(const Tensor& self, TensorOptions options = {},
                 std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor rand(IntArrayRef size, TensorOptions options = {});
Tensor rand(IntArrayRef size, std::optional<Generator> generator, TensorOptions options = {});
Tensor rand_like(const Tensor& self, TensorOptions options = {},
                 std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor rand_like(const Tensor& self, std::optional<Generator> generator, TensorOptions options = {},
                 std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randint(int64_t high, IntArrayRef size, TensorOptions options = at::kLong);
Tensor randint(int64_t high, IntArrayRef size, std::optional<Generator> generator, TensorOptions options = at::kLong);
Tensor randint(int64_t low, int64_t high, IntArrayRef size, TensorOptions options = at::kLong);
Tensor randint(int64_t low, int64_t high, IntArrayRef size, std::optional<Generator> generator,
               TensorOptions options = at::kLong);
Tensor randn(IntArrayRef size, TensorOptions options = {});
Tensor randn(IntArrayRef size, std::optional<Generator> generator, TensorOptions options = {});
Tensor randn_like(const Tensor& self, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randn_like(const Tensor& self, std::optional<Generator> generator, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor randperm(int64_t n, TensorOptions options = at::kLong);
Tensor randperm(int64_t n, std::optional<Generator> generator, TensorOptions options = at::kLong);
Tensor zeros(IntArrayRef size, TensorOptions options = {});
Tensor zeros_like(const Tensor& self, TensorOptions options = {},
                  std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor normal(double mean, double std, IntArrayRef size, std::optional<Generator> generator = std::nullopt,
              TensorOptions options = {});

namespace cuda {
DeviceIndex device_count();
bool is_available();
bool cudnn_is_available();
void manual_seed(uint64_t seed);
void manual_seed_all(uint64_t seed);
void synchronize(int64_t device_index = -1);
}  // namespace cuda

}  // namespace torch
