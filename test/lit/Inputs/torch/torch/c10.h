#pragma once

// Devices, types, options and lists of numbers: LibTorch's namespace c10.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace std {

template <class... Types>
std::ostream& operator<<(std::ostream& out, const std::vector<Types...>& seq);

}  // namespace std

namespace caffe2 {

class TypeMeta {
 public:
  TypeMeta() noexcept;
  template <typename T>
  static TypeMeta Make();
  size_t itemsize() const noexcept;
};
bool operator==(const TypeMeta lhs, const TypeMeta rhs) noexcept;
bool operator!=(const TypeMeta lhs, const TypeMeta rhs) noexcept;

}  // namespace caffe2

namespace c10 {

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

struct Device final {
  using Type = DeviceType;
  Device(DeviceType type, DeviceIndex index = -1);
  Device(const std::string& device_string);
  bool operator==(const Device& other) const noexcept;
  bool operator!=(const Device& other) const noexcept;
  void set_index(DeviceIndex index);
  DeviceType type() const noexcept;
  DeviceIndex index() const noexcept;
  bool has_index() const noexcept;
  bool is_cuda() const noexcept;
  bool is_cpu() const noexcept;
  std::string str() const;
};
std::ostream& operator<<(std::ostream& stream, const Device& device);

struct alignas(2) Half {};
struct alignas(2) BFloat16 {};

enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16 };
constexpr ScalarType kByte = ScalarType::Byte;
constexpr ScalarType kChar = ScalarType::Char;
constexpr ScalarType kShort = ScalarType::Short;
constexpr ScalarType kInt = ScalarType::Int;
constexpr ScalarType kLong = ScalarType::Long;
constexpr ScalarType kHalf = ScalarType::Half;
constexpr ScalarType kFloat = ScalarType::Float;
constexpr ScalarType kDouble = ScalarType::Double;
constexpr ScalarType kBool = ScalarType::Bool;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;

bool operator==(ScalarType t, caffe2::TypeMeta m);
bool operator==(caffe2::TypeMeta m, ScalarType t);
bool operator!=(ScalarType t, caffe2::TypeMeta m);
bool operator!=(caffe2::TypeMeta m, ScalarType t);
void set_default_dtype(caffe2::TypeMeta dtype);
const caffe2::TypeMeta get_default_dtype();

enum class Layout : int8_t { Strided, Sparse };
constexpr auto kStrided = Layout::Strided;
constexpr auto kSparse = Layout::Sparse;

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast };

class Scalar {
 public:
  Scalar();
  Scalar(uint8_t vv);
  Scalar(int8_t vv);
  Scalar(int16_t vv);
  Scalar(int vv);
  Scalar(int64_t vv);
  Scalar(Half vv);
  Scalar(float vv);
  Scalar(double vv);
  Scalar(BFloat16 vv);
  Scalar(long long vv);
  Scalar(uint16_t vv);
  Scalar(uint32_t vv);
  Scalar(uint64_t vv);
  template <typename T, typename std::enable_if_t<std::is_same_v<T, bool>, bool>* = nullptr>
  Scalar(T vv);
  int toInt() const;
  int64_t toLong() const;
  float toFloat() const;
  double toDouble() const;
  bool toBool() const;
  template <typename T>
  T to() const;
};

std::ostream& operator<<(std::ostream& out, const Scalar& s);

class SymInt {
 public:
  SymInt(int64_t d);
  SymInt();
};

struct TensorOptions {
  TensorOptions();
  TensorOptions(Layout layout);
  template <typename T, typename = std::enable_if_t<std::is_same_v<std::decay_t<T>, Device>>>
  TensorOptions(T&& device);
  template <typename... Args, typename = std::enable_if_t<std::is_constructible_v<Device, Args&&...>>>
  TensorOptions(Args&&... args);
  TensorOptions(caffe2::TypeMeta dtype);
  TensorOptions(ScalarType dtype);
  TensorOptions(MemoryFormat memory_format);
  [[nodiscard]] TensorOptions device(std::optional<Device> device) const noexcept;
  template <typename... Args>
  [[nodiscard]] TensorOptions device(Args&&... args) const noexcept;
  [[nodiscard]] TensorOptions device_index(c10::DeviceIndex device_index) const noexcept;
  [[nodiscard]] TensorOptions dtype(std::optional<caffe2::TypeMeta> dtype) const noexcept;
  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> dtype) const noexcept;
  template <typename T>
  TensorOptions& dtype();
  [[nodiscard]] TensorOptions layout(std::optional<Layout> layout) const noexcept;
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> requires_grad) const noexcept;
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> pinned_memory) const noexcept;
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> memory_format) const noexcept;
  Device device() const noexcept;
  bool has_device() const noexcept;
  caffe2::TypeMeta dtype() const noexcept;
  Layout layout() const noexcept;
  bool requires_grad() const noexcept;
};
TensorOptions dtype(caffe2::TypeMeta dtype);
TensorOptions dtype(ScalarType dtype);
TensorOptions layout(Layout layout);
TensorOptions device(Device device);
TensorOptions device_index(c10::DeviceIndex device_index);
TensorOptions requires_grad(bool requires_grad = true);
TensorOptions memory_format(MemoryFormat memory_format);
template <typename T>
TensorOptions dtype();

template <typename T>
class HeaderOnlyArrayRef {
 public:
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  using value_type = T;
  constexpr HeaderOnlyArrayRef() {}
  constexpr HeaderOnlyArrayRef(const T& OneElt) {}
  constexpr HeaderOnlyArrayRef(const T* data, size_t length) {}
  constexpr HeaderOnlyArrayRef(const T* begin, const T* end) {}
  template <typename Container, typename U = decltype(std::declval<Container>().data()),
            typename = std::enable_if_t<(std::is_same_v<U, T*> || std::is_same_v<U, T const*>)>>
  HeaderOnlyArrayRef(const Container& container) {}
  template <typename A>
  HeaderOnlyArrayRef(const std::vector<T, A>& Vec) {}
  template <size_t N>
  constexpr HeaderOnlyArrayRef(const std::array<T, N>& Arr) {}
  template <size_t N>
  constexpr HeaderOnlyArrayRef(const T (&Arr)[N]) {}
  constexpr HeaderOnlyArrayRef(const std::initializer_list<T>& Vec) {}
  iterator begin() const;
  iterator end() const;
  const_iterator cbegin() const;
  const_iterator cend() const;
  bool empty() const;
  const T* data() const;
  size_t size() const;
  bool equals(HeaderOnlyArrayRef RHS) const;
  const T& operator[](size_t Index) const;
  std::vector<T> vec() const;
};
template <typename T>
class ArrayRef : public HeaderOnlyArrayRef<T> {
 public:
  using HeaderOnlyArrayRef<T>::HeaderOnlyArrayRef;
  const T& front() const;
  const T& back() const;
  ArrayRef<T> slice(size_t N, size_t M) const;
  ArrayRef<T> slice(size_t N) const;
  const T& at(size_t Index) const;
};
template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list);
template <typename T>
bool operator==(c10::ArrayRef<T> a1, c10::ArrayRef<T> a2);
template <typename T>
bool operator!=(c10::ArrayRef<T> a1, c10::ArrayRef<T> a2);
using IntArrayRef = ArrayRef<int64_t>;

template <typename T>
class OptionalArrayRef final {
 public:
  constexpr OptionalArrayRef() noexcept {}
  constexpr OptionalArrayRef(std::nullopt_t) noexcept {}
  constexpr OptionalArrayRef(const std::optional<ArrayRef<T>>& other) noexcept {}
  constexpr OptionalArrayRef(const T& value) noexcept {}
  template <typename U = ArrayRef<T>,
            std::enable_if_t<!std::is_same_v<std::decay_t<U>, OptionalArrayRef> &&
                                 !std::is_same_v<std::decay_t<U>, std::in_place_t> &&
                                 std::is_constructible_v<ArrayRef<T>, U&&> && std::is_convertible_v<U&&, ArrayRef<T>> &&
                                 !std::is_convertible_v<U&&, T>,
                             bool> = false>
  constexpr OptionalArrayRef(U&& value) noexcept {}
  constexpr OptionalArrayRef(const std::initializer_list<T>& Vec) {}
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

template <class T>
class List final {
 public:
  explicit List();
  List(std::initializer_list<T> initial_values);
  explicit List(ArrayRef<T> initial_values);
};

template <class T>
class intrusive_ptr final {
 public:
  intrusive_ptr() noexcept;
  intrusive_ptr(std::nullptr_t) noexcept;
};
struct TensorImpl;

using std::nullopt;
using std::optional;

class Error : public std::exception {
 public:
  const char* what() const noexcept override;
};

template <typename... Args>
std::string str(const Args&... args);

namespace detail {
template <typename... Args>
std::string torchCheckMsgImpl(const char* msg, const Args&... args);
[[noreturn]] void torchCheckFail(const char* func, const char* file, uint32_t line, const std::string& msg);
[[noreturn]] void torchInternalAssertFail(const char* func, const char* file, uint32_t line, const char* condMsg,
                                          const std::string& userMsg);
void deprecated_AT_ASSERT();
}  // namespace detail

#define TORCH_CHECK_MSG(cond, type, ...) \
  (::c10::detail::torchCheckMsgImpl("Expected " #cond " to be true, but got false.", ##__VA_ARGS__))
#define TORCH_CHECK(cond, ...)                                                         \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                               \
    ::c10::detail::torchCheckFail(__func__, __FILE__, static_cast<uint32_t>(__LINE__), \
                                  TORCH_CHECK_MSG(cond, "", ##__VA_ARGS__));           \
  }

#define TORCH_INTERNAL_ASSERT(cond, ...)                                                              \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                                              \
    ::c10::detail::torchInternalAssertFail(__func__, __FILE__, static_cast<uint32_t>(__LINE__),       \
                                           #cond " INTERNAL ASSERT FAILED", ::c10::str(__VA_ARGS__)); \
  }
#define AT_ASSERT(...)                     \
  do {                                     \
    ::c10::detail::deprecated_AT_ASSERT(); \
    TORCH_INTERNAL_ASSERT(__VA_ARGS__);    \
  } while (false)

struct GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};
struct AutoGradMode {
  AutoGradMode(bool enabled);
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode(AutoGradMode&&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;
  AutoGradMode& operator=(AutoGradMode&&) = delete;
  ~AutoGradMode();
};
struct NoGradGuard : public AutoGradMode {
  NoGradGuard();
};

}  // namespace c10
