#pragma once

// Tensors and their methods, as ATen/core/TensorBase.h and TensorBody.h declare them.

#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <torch/c10.h>

namespace torch {
namespace autograd {
struct Node {
  virtual ~Node() = default;
  std::string name() const;
};
}  // namespace autograd
}  // namespace torch

namespace at {

using namespace c10;

class Tensor;
using TensorList = ArrayRef<Tensor>;

template <typename T>
class IListRef {
 public:
  IListRef();
  IListRef(const ArrayRef<T>& unboxed);
  IListRef(const std::initializer_list<T>& list);
  template <typename... UnboxedConstructorArgs,
            typename = std::enable_if_t<std::is_constructible_v<ArrayRef<T>, UnboxedConstructorArgs...>>>
  IListRef(UnboxedConstructorArgs&&... args);
  size_t size() const;
};
using ITensorListRef = IListRef<Tensor>;

struct Generator {
  Generator();
  bool defined() const;
  void set_current_seed(uint64_t seed);
  uint64_t current_seed() const;
  uint64_t seed();
  Device device() const;
  Generator clone() const;
};
namespace detail {
Generator createCPUGenerator(uint64_t seed_val = 67280421310721);
}  // namespace detail

namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}

namespace indexing {
struct TensorIndex;
}

template <typename T, size_t N>
class TensorAccessor {
 public:
  int64_t size(int64_t i) const;
  TensorAccessor<T, N - 1> operator[](int64_t i);
};
template <typename T>
class TensorAccessor<T, 1> {
 public:
  int64_t size(int64_t i) const;
  T& operator[](int64_t i);
};

class TensorBase {
 public:
  TensorBase();
  TensorBase(const TensorBase&);
  TensorBase(TensorBase&&) noexcept;
  ~TensorBase() noexcept;
  int64_t dim() const;
  TensorBase contiguous(MemoryFormat memory_format = MemoryFormat::Contiguous) const;
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  bool defined() const;
  void reset();
  bool is_same(const TensorBase& other) const noexcept;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  int64_t ndimension() const;
  bool is_contiguous(MemoryFormat memory_format = MemoryFormat::Contiguous) const;
  size_t nbytes() const;
  int64_t numel() const;
  size_t itemsize() const;
  int64_t element_size() const;
  ScalarType scalar_type() const;
  caffe2::TypeMeta dtype() const;
  Device device() const;
  DeviceIndex get_device() const;
  bool is_cpu() const;
  bool is_cuda() const;
  bool is_sparse() const;
  bool is_floating_point() const;
  TensorOptions options() const;
  const void* const_data_ptr() const;
  void* mutable_data_ptr() const;
  void* data_ptr() const;
  template <typename T>
  const T* const_data_ptr() const;
  template <typename T>
  T* mutable_data_ptr() const;
  template <typename T>
  T* data_ptr() const;
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const&;
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  const TensorBase& set_requires_grad(bool requires_grad) const;
  bool requires_grad() const;
  TensorBase tensor_data() const;
  TensorBase variable_data() const;
  const std::shared_ptr<torch::autograd::Node>& grad_fn() const;
  void remove_hook(unsigned pos) const;
  bool is_leaf() const;
  int64_t output_nr() const;
  void set_data(const TensorBase& new_data) const;
  TensorBase data() const;
  int64_t _version() const;
  void retain_grad() const;
  bool retains_grad() const;
  const TensorBase& requires_grad_(bool _requires_grad = true) const;
  bool is_view() const;
  const std::string& name() const;
};

class Tensor : public TensorBase {
 public:
  Tensor();
  explicit Tensor(intrusive_ptr<TensorImpl> tensor_impl);
  Tensor(const Tensor& tensor);
  Tensor(Tensor&& tensor);
  explicit Tensor(const TensorBase& base);
  Tensor(TensorBase&& base);
  Tensor contiguous(MemoryFormat memory_format = MemoryFormat::Contiguous) const;
  using TensorBase::size;
  using TensorBase::stride;
  Tensor& operator=(const TensorBase& x) & noexcept;
  Tensor& operator=(TensorBase&& x) & noexcept;
  Tensor& operator=(const Tensor& x) & noexcept;
  Tensor& operator=(Tensor&& x) & noexcept;
  Tensor& operator=(const Scalar& v) &&;
  Tensor& operator=(const Tensor& rhs) &&;
  Tensor& operator=(Tensor&& rhs) &&;
  Tensor toType(ScalarType t) const;
  template <typename T>
  T* data() const;
  template <typename T>
  T item() const;
  Tensor operator~() const;
  Tensor operator-() const;
  Tensor& operator+=(const Tensor& other);
  Tensor& operator+=(const Scalar& other);
  Tensor& operator-=(const Tensor& other);
  Tensor& operator-=(const Scalar& other);
  Tensor& operator*=(const Tensor& other);
  Tensor& operator*=(const Scalar& other);
  Tensor& operator/=(const Tensor& other);
  Tensor& operator/=(const Scalar& other);
  Tensor& operator&=(const Tensor& other);
  Tensor& operator|=(const Tensor& other);
  Tensor& operator^=(const Tensor& other);
  Tensor operator[](const Scalar& index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor operator[](int64_t index) const;
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, Tensor const& rhs);
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& v);
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, Tensor const& rhs);
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& v);
  Tensor cpu() const;
  Tensor cuda() const;
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<TensorList> inputs = std::nullopt) const;
  const Tensor& set_requires_grad(bool requires_grad) const;
  Tensor& mutable_grad() const;
  const Tensor& grad() const;

  Tensor abs() const;
  Tensor resolve_conj() const;
  Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor add(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor& add_(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor all(int64_t dim, bool keepdim = false) const;
  Tensor all(OptionalIntArrayRef dim, bool keepdim = false) const;
  bool allclose(const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false) const;
  Tensor any(int64_t dim, bool keepdim = false) const;
  Tensor any(OptionalIntArrayRef dim, bool keepdim = false) const;
  Tensor argmax(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> dim = std::nullopt, bool keepdim = false) const;
  Tensor bernoulli(std::optional<Generator> generator = std::nullopt) const;
  Tensor bernoulli(double p, std::optional<Generator> generator = std::nullopt) const;
  Tensor logical_not() const;
  Tensor& logical_or_(const Tensor& other) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  Tensor clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max = std::nullopt) const;
  Tensor clamp(const std::optional<Tensor>& min = {}, const std::optional<Tensor>& max = {}) const;
  Tensor& clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max = std::nullopt) const;
  Tensor& clamp_(const std::optional<Tensor>& min = {}, const std::optional<Tensor>& max = {}) const;
  Tensor clamp_min(const Scalar& min) const;
  Tensor clamp_min(const Tensor& min) const;
  Tensor& clamp_min_(const Scalar& min) const;
  Tensor& clamp_min_(const Tensor& min) const;
  Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
  Tensor cumsum(int64_t dim, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1, const std::optional<Tensor>& prepend = {},
              const std::optional<Tensor>& append = {}) const;
  Tensor div(const Tensor& other) const;
  Tensor& div_(const Tensor& other) const;
  Tensor div(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
  Tensor& div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
  Tensor div(const Scalar& other) const;
  Tensor& div_(const Scalar& other) const;
  Tensor div(const Scalar& other, std::optional<std::string_view> rounding_mode) const;
  Tensor& div_(const Scalar& other, std::optional<std::string_view> rounding_mode) const;
  Tensor exp() const;
  Tensor expand(IntArrayRef size, bool implicit = false) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor unflatten(int64_t dim, IntArrayRef sizes) const;
  Tensor& fill_(const Scalar& value) const;
  Tensor& fill_(const Tensor& value) const;
  Tensor floor_divide(const Tensor& other) const;
  Tensor floor_divide(const Scalar& other) const;
  Tensor index(const List<std::optional<Tensor>>& indices) const;
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor& index_put_(const List<std::optional<Tensor>>& indices, const Tensor& values, bool accumulate = false) const;
  Tensor isnan() const;
  Tensor log() const;
  Tensor logsumexp(IntArrayRef dim, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
  Tensor amax(IntArrayRef dim = {}, bool keepdim = false) const;
  Tensor mean(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor mean(OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor median() const;
  std::tuple<Tensor, Tensor> median(int64_t dim, bool keepdim = false) const;
  std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
  Tensor mm(const Tensor& mat2) const;
  std::tuple<Tensor, Tensor> mode(int64_t dim = -1, bool keepdim = false) const;
  Tensor mul(const Tensor& other) const;
  Tensor& mul_(const Tensor& other) const;
  Tensor mul(const Scalar& other) const;
  Tensor& mul_(const Scalar& other) const;
  Tensor mv(const Tensor& vec) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor narrow(int64_t dim, const Tensor& start, int64_t length) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor movedim(IntArrayRef source, IntArrayRef destination) const;
  Tensor movedim(int64_t source, int64_t destination) const;
  Tensor repeat(IntArrayRef repeats) const;
  Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim = std::nullopt,
                           std::optional<int64_t> output_size = std::nullopt) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                           std::optional<int64_t> output_size = std::nullopt) const;
  Tensor reshape(IntArrayRef shape) const;
  Tensor round() const;
  Tensor round(int64_t decimals) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor sigmoid() const;
  Tensor sin() const;
  Tensor detach() const;
  Tensor& detach_() const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const;
  Tensor softmax(int64_t dim, std::optional<ScalarType> dtype = std::nullopt) const;
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0) const;
  std::vector<Tensor> split(IntArrayRef split_size, int64_t dim = 0) const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor squeeze(IntArrayRef dim) const;
  Tensor sum(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor sum(OptionalIntArrayRef dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor sqrt() const;
  Tensor square() const;
  Tensor std(bool unbiased) const;
  Tensor std(OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) const;
  Tensor std(OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt,
             bool keepdim = false) const;
  Tensor prod(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor prod(int64_t dim, bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor t() const;
  Tensor tanh() const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor flip(IntArrayRef dims) const;
  Tensor roll(IntArrayRef shifts, IntArrayRef dims = {}) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor var(bool unbiased) const;
  Tensor var(OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) const;
  Tensor var(OptionalIntArrayRef dim = std::nullopt, const std::optional<Scalar>& correction = std::nullopt,
             bool keepdim = false) const;
  Tensor view_as(const Tensor& other) const;
  Tensor norm(const std::optional<Scalar>& p, ScalarType dtype) const;
  Tensor norm(const Scalar& p = 2) const;
  Tensor norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, ScalarType dtype) const;
  Tensor norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false) const;
  Tensor clone(std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor& zero_() const;
  Tensor sub(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor& sub_(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor sub(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor& sub_(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor values() const;
  Tensor to(TensorOptions options = {}, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> memory_format = std::nullopt) const;
  Scalar item() const;
  Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const;
  Tensor masked_fill(const Tensor& mask, const Scalar& value) const;
  Tensor& masked_fill_(const Tensor& mask, const Tensor& value) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor view(IntArrayRef size) const;
  Tensor view(ScalarType dtype) const;
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false) const;
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Scalar& value) const;
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Scalar& value) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor& lerp_(const Tensor& end, const Scalar& weight) const;
  Tensor& lerp_(const Tensor& end, const Tensor& weight) const;
  Tensor& uniform_(double from = 0, double to = 1, std::optional<Generator> generator = std::nullopt) const;
  Tensor& exponential_(double lambd = 1, std::optional<Generator> generator = std::nullopt) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor trace() const;
  Tensor ne(const Scalar& other) const;
  Tensor ne(const Tensor& other) const;
  Tensor eq(const Scalar& other) const;
  Tensor eq(const Tensor& other) const;
  Tensor gt(const Scalar& other) const;
  Tensor gt(const Tensor& other) const;
  Tensor lt(const Scalar& other) const;
  Tensor lt(const Tensor& other) const;
  Tensor take(const Tensor& index) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor nonzero() const;
  Tensor gather(int64_t dim, const Tensor& index, bool sparse_grad = false) const;
  Tensor multinomial(int64_t num_samples, bool replacement = false,
                     std::optional<Generator> generator = std::nullopt) const;
  Tensor sign() const;
  Tensor remainder(const Scalar& other) const;
  Tensor remainder(const Tensor& other) const;
  Tensor min() const;
  Tensor max() const;
  Tensor max(const Tensor& other) const;
  Tensor min(const Tensor& other) const;
  std::tuple<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false) const;
  std::tuple<Tensor, Tensor> sort(std::optional<bool> stable, int64_t dim = -1, bool descending = false) const;
  std::tuple<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  Tensor all() const;
  Tensor any() const;
  Tensor unfold(int64_t dimension, int64_t size, int64_t step) const;
  bool equal(const Tensor& other) const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(const Scalar& exponent) const;
  Tensor& normal_(double mean = 0, double std = 1, std::optional<Generator> generator = std::nullopt) const;
  Tensor isfinite() const;

  Tensor tensor_data() const;
  Tensor variable_data() const;
  template <typename T>
  using hook_return_void_t = std::enable_if_t<std::is_void<typename std::invoke_result_t<T&, Tensor>>::value, unsigned>;
  template <typename T>
  using hook_return_var_t =
      std::enable_if_t<std::is_same_v<typename std::invoke_result_t<T&, Tensor>, Tensor>, unsigned>;
  template <typename T>
  hook_return_void_t<T> register_hook(T&& hook) const {
    return 0;
  }  // a lambda as an argument wants a definition
  template <typename T>
  hook_return_var_t<T> register_hook(T&& hook) const {
    return 0;
  }
  Tensor data() const;
  const Tensor& requires_grad_(bool _requires_grad = true) const;
};

std::ostream& operator<<(std::ostream& out, const Tensor& t);

namespace indexing {
constexpr std::nullopt_t None = std::nullopt;
struct EllipsisIndexType final {};
extern const EllipsisIndexType Ellipsis;
struct Slice final {
  Slice(std::optional<SymInt> start_index = std::nullopt, std::optional<SymInt> stop_index = std::nullopt,
        std::optional<SymInt> step_index = std::nullopt);
};
struct TensorIndex final {
  TensorIndex(std::nullopt_t);
  TensorIndex(EllipsisIndexType);
  TensorIndex(const char* str);
  TensorIndex(SymInt integer);
  TensorIndex(int64_t integer);
  TensorIndex(int integer);
  template <class T, class = std::enable_if_t<std::is_same_v<bool, T>>>
  TensorIndex(T boolean);
  TensorIndex(Slice slice);
  TensorIndex(Tensor tensor);
};
}  // namespace indexing

}  // namespace at
