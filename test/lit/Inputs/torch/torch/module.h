#pragma once

// What modules are made of: options' arguments, ordered dictionaries, nn::Module, its holders and containers.

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/serialize.h>

#define TORCH_ARG(T, name)                                        \
 public:                                                          \
  inline auto name(const T& new_##name) -> decltype(*this) {      \
    this->name##_ = new_##name;                                   \
    return *this;                                                 \
  }                                                               \
  inline auto name(T&& new_##name) -> decltype(*this) {           \
    this->name##_ = std::move(new_##name);                        \
    return *this;                                                 \
  }                                                               \
  inline const T& name() const noexcept { return this->name##_; } \
  inline T& name() noexcept { return this->name##_; }             \
                                                                  \
 private:                                                         \
  T name##_

#define TORCH_ENUM_DECLARE(name)          \
  namespace torch {                       \
  namespace enumtype {                    \
  struct k##name {                        \
    k##name() {}                          \
  };                                      \
  }                                       \
  extern const enumtype::k##name k##name; \
  }

TORCH_ENUM_DECLARE(Tanh)
TORCH_ENUM_DECLARE(ReLU)
TORCH_ENUM_DECLARE(GELU)
TORCH_ENUM_DECLARE(LeakyReLU)
TORCH_ENUM_DECLARE(FanIn)
TORCH_ENUM_DECLARE(FanOut)
TORCH_ENUM_DECLARE(Constant)
TORCH_ENUM_DECLARE(Reflect)
TORCH_ENUM_DECLARE(Replicate)
TORCH_ENUM_DECLARE(Circular)
TORCH_ENUM_DECLARE(Sum)
TORCH_ENUM_DECLARE(Mean)
TORCH_ENUM_DECLARE(Max)
TORCH_ENUM_DECLARE(None)
TORCH_ENUM_DECLARE(Zeros)
TORCH_ENUM_DECLARE(Valid)
TORCH_ENUM_DECLARE(Same)

namespace torch {

template <size_t D, typename T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) {}
  ExpandingArray(std::vector<T> vec) {}
  ExpandingArray(ArrayRef<T> values) {}
  ExpandingArray(T single_size) {}
  ExpandingArray(const std::array<T, D>& values) {}
  std::array<T, D>& operator*();
  const std::array<T, D>& operator*() const;
  std::array<T, D>* operator->();
  const std::array<T, D>* operator->() const;
  operator ArrayRef<T>() const;
  size_t size() const noexcept;
};

template <typename Key, typename Value>
class OrderedDict {
 public:
  class Item;
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;
  explicit OrderedDict(std::string key_description = "Key");
  OrderedDict(const OrderedDict& other);
  OrderedDict& operator=(const OrderedDict& other);
  OrderedDict(OrderedDict&& other) noexcept;
  OrderedDict& operator=(OrderedDict&& other) noexcept;
  ~OrderedDict();
  OrderedDict(std::initializer_list<Item> initializer_list);
  Item& front();
  const Item& front() const;
  Item& back();
  const Item& back() const;
  Item& operator[](size_t index);
  const Item& operator[](size_t index) const;
  Value& operator[](const Key& key);
  const Value& operator[](const Key& key) const;
  Value* find(const Key& key) noexcept;
  const Value* find(const Key& key) const noexcept;
  bool contains(const Key& key) const noexcept;
  Iterator begin();
  ConstIterator begin() const;
  Iterator end();
  ConstIterator end() const;
  size_t size() const noexcept;
  bool is_empty() const noexcept;
  template <typename K, typename V>
  Value& insert(K&& key, V&& value);
  Value& insert(Key key, Value&& value);
  void update(OrderedDict&& other);
  void update(const OrderedDict& other);
  void erase(const Key& key);
  void clear();
  const std::vector<Item>& items() const noexcept;
  std::vector<Key> keys() const;
  std::vector<Value> values() const;
  std::vector<std::pair<Key, Value>> pairs() const;
};
template <typename Key, typename Value>
class OrderedDict<Key, Value>::Item {
 public:
  Item(Key key, Value value);
  Value& operator*();
  const Value& operator*() const;
  Value* operator->();
  const Value* operator->() const;
  const Key& key() const noexcept;
  Value& value() noexcept;
  const Value& value() const noexcept;
  const std::pair<Key, Value>& pair() const noexcept;
};

namespace nn {
class Module;
template <typename Contained>
class ModuleHolder;
}  // namespace nn

namespace detail {
// Stands for std::variant, which takes as long to read as a fifth of all this.
template <typename... Types>
class Variant {
 public:
  Variant();
  template <typename T, typename = std::enable_if_t<(std::is_convertible_v<T&&, Types> || ...)>>
  Variant(T&& t) {}
};

template <typename T>
struct has_forward {
  using yes = int8_t;
  using no = int16_t;
  template <typename U>
  static yes test(decltype(&U::forward));
  template <typename U>
  static no test(...);
  static constexpr bool value = (sizeof(test<T>(nullptr)) == sizeof(yes));
};
template <typename M>
using is_module = std::is_base_of<torch::nn::Module, std::decay_t<M>>;
template <typename M, typename T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;

struct ModuleHolderIndicator {};
template <typename T>
using is_module_holder = std::is_base_of<ModuleHolderIndicator, std::decay_t<T>>;
template <typename T>
using disable_if_module_holder_t = std::enable_if_t<!is_module_holder<T>::value>;
template <bool is_module_holder_value, typename T, typename C>
struct is_module_holder_of_impl;
template <typename T, typename C>
struct is_module_holder_of_impl<false, T, C> : std::false_type {};
template <typename T, typename C>
struct is_module_holder_of_impl<true, T, C> : std::is_same<typename T::ContainedType, C> {};
template <typename T, typename C>
struct is_module_holder_of : is_module_holder_of_impl<is_module_holder<T>::value, std::decay_t<T>, std::decay_t<C>> {};
template <bool has_forward_value, typename C, typename... Args>
struct return_type_of_forward_impl;
template <typename C, typename... Args>
struct return_type_of_forward_impl<true, C, Args...> {
  using type = decltype(::std::declval<C>().forward(::std::declval<Args>()...));
};
template <typename C, typename... Args>
struct return_type_of_forward_impl<false, C, Args...> {
  using type = void;
};
template <typename C, typename... Args>
using return_type_of_forward = return_type_of_forward_impl<torch::detail::has_forward<C>::value, C, Args...>;
template <typename C, typename... Args>
using return_type_of_forward_t = typename return_type_of_forward<C, Args...>::type;
}  // namespace detail

namespace nn {

class AnyValue {
 public:
  template <typename T, typename = std::enable_if_t<!std::is_same_v<T, AnyValue>>>
  explicit AnyValue(T&& value) {}
  template <typename T>
  T* try_get();
  template <typename T>
  T get();
};

#define FORWARD_HAS_DEFAULT_ARGS(...)                                                 \
  bool _forward_has_default_args() override { return true; }                          \
  unsigned int _forward_num_required_args() override {                                \
    std::vector<std::pair<unsigned int, torch::nn::AnyValue>> args_info{__VA_ARGS__}; \
    return std::begin(args_info)->first;                                              \
  }

class Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction = std::function<void(const std::string&, const std::shared_ptr<Module>&)>;
  explicit Module(std::string name);
  Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module() = default;
  const std::string& name() const noexcept;
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;
  void apply(const ModuleApplyFunction& function);
  void apply(const ConstModuleApplyFunction& function) const;
  void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = std::string());
  void apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix = std::string()) const;
  void apply(const ModulePointerApplyFunction& function) const;
  void apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix = std::string()) const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = std::string(),
                                                                  bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
  virtual void train(bool on = true);
  void eval();
  virtual bool is_training() const noexcept;
  virtual void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false);
  virtual void to(torch::Dtype dtype, bool non_blocking = false);
  virtual void to(torch::Device device, bool non_blocking = false);
  virtual void zero_grad(bool set_to_none = true);
  template <typename ModuleType>
  typename ModuleType::ContainedType* as() noexcept;
  template <typename ModuleType>
  const typename ModuleType::ContainedType* as() const noexcept;
  template <typename ModuleType, typename = torch::detail::disable_if_module_holder_t<ModuleType>>
  ModuleType* as() noexcept;
  template <typename ModuleType, typename = torch::detail::disable_if_module_holder_t<ModuleType>>
  const ModuleType* as() const noexcept;
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  virtual void pretty_print(std::ostream& stream) const;
  virtual bool is_serializable() const;
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, std::shared_ptr<ModuleType> module);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> register_module(std::string name, ModuleHolder<ModuleType> module_holder);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name, std::shared_ptr<ModuleType> module);
  template <typename ModuleType>
  std::shared_ptr<ModuleType> replace_module(const std::string& name, ModuleHolder<ModuleType> module_holder);
  void unregister_module(const std::string& name);

 protected:
  virtual bool _forward_has_default_args();
  virtual unsigned int _forward_num_required_args();
  OrderedDict<std::string, Tensor> parameters_;
};
std::ostream& operator<<(std::ostream& stream, const nn::Module& module);
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::shared_ptr<nn::Module>& module);
serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<nn::Module>& module);

template <typename Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
};

template <typename Contained>
class ModuleHolder : torch::detail::ModuleHolderIndicator {
 protected:
  std::shared_ptr<Contained> impl_;

 public:
  using ContainedType = Contained;
  ModuleHolder();
  ModuleHolder(std::nullptr_t);
  template <typename Head, typename... Tail,
            typename = std::enable_if_t<!(torch::detail::is_module_holder_of<Head, ContainedType>::value &&
                                          (sizeof...(Tail) == 0))>>
  explicit ModuleHolder(Head&& head, Tail&&... tail) {}  // a lambda as an argument wants a definition
  ModuleHolder(std::shared_ptr<Contained> module);
  explicit operator bool() const noexcept;
  Contained* operator->();
  const Contained* operator->() const;
  Contained& operator*();
  const Contained& operator*() const;
  const std::shared_ptr<Contained>& ptr() const;
  Contained* get();
  const Contained* get() const;
  template <typename... Args>
  auto operator()(Args&&... args) -> torch::detail::return_type_of_forward_t<Contained, Args...>;
  template <typename Arg>
  auto operator[](Arg&& arg) {
    return (*impl_)[::std::forward<Arg>(arg)];
  }
  bool is_empty() const noexcept;
};
template <typename ModuleType>
std::ostream& operator<<(std::ostream& stream, const nn::ModuleHolder<ModuleType>& module);
template <typename ModuleType>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const nn::ModuleHolder<ModuleType>& module);
template <typename ModuleType>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, nn::ModuleHolder<ModuleType>& module);

#define TORCH_MODULE_IMPL(Name, ImplType)                  \
  class Name : public torch::nn::ModuleHolder<ImplType> {  \
   public:                                                 \
    using torch::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

class AnyModule {
 public:
  AnyModule() = default;
  template <typename ModuleType>
  explicit AnyModule(std::shared_ptr<ModuleType> module);
  template <typename ModuleType, typename = torch::detail::enable_if_module_t<ModuleType>>
  explicit AnyModule(ModuleType&& module);
  template <typename ModuleType>
  explicit AnyModule(const ModuleHolder<ModuleType>& module_holder);
  AnyModule(AnyModule&&) = default;
  AnyModule& operator=(AnyModule&&) = default;
  AnyModule(const AnyModule& other);
  AnyModule& operator=(const AnyModule& other);
  AnyModule clone(std::optional<Device> device = std::nullopt) const;
  template <typename ModuleType>
  AnyModule& operator=(std::shared_ptr<ModuleType> module);
  template <typename... ArgumentTypes>
  AnyValue any_forward(ArgumentTypes&&... arguments);
  template <typename ReturnType = torch::Tensor, typename... ArgumentTypes>
  ReturnType forward(ArgumentTypes&&... arguments);
  template <typename T, typename = torch::detail::enable_if_module_t<T>>
  T& get();
  template <typename T, typename = torch::detail::enable_if_module_t<T>>
  const T& get() const;
  template <typename T, typename ContainedType = typename T::ContainedType>
  T get() const;
  std::shared_ptr<Module> ptr() const;
  template <typename T, typename = torch::detail::enable_if_module_t<T>>
  std::shared_ptr<T> ptr() const;
  bool is_empty() const noexcept;
};

class NamedAnyModule {
 public:
  template <typename ModuleType>
  NamedAnyModule(std::string name, std::shared_ptr<ModuleType> module_ptr);
  template <typename M, typename = torch::detail::enable_if_module_t<M>>
  NamedAnyModule(std::string name, M&& module);
  template <typename M>
  NamedAnyModule(std::string name, const ModuleHolder<M>& module_holder);
  NamedAnyModule(std::string name, AnyModule any_module);
};

class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;
  SequentialImpl() = default;
  template <typename... Modules>
  explicit SequentialImpl(Modules&&... modules);
  explicit SequentialImpl(torch::OrderedDict<std::string, AnyModule>&& ordered_dict);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> named_modules);
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  template <typename ReturnType = Tensor, typename... InputTypes>
  ReturnType forward(InputTypes&&... inputs);
  template <typename ModuleType>
  void push_back(std::shared_ptr<ModuleType> module_ptr);
  template <typename ModuleType>
  void push_back(std::string name, std::shared_ptr<ModuleType> module_ptr);
  template <typename M, typename = torch::detail::enable_if_module_t<M>>
  void push_back(M&& module);
  template <typename M, typename = torch::detail::enable_if_module_t<M>>
  void push_back(std::string name, M&& module);
  template <typename M>
  void push_back(const ModuleHolder<M>& module_holder);
  template <typename M>
  void push_back(std::string name, const ModuleHolder<M>& module_holder);
  template <typename Container>
  void extend(const Container& container);
  void push_back(AnyModule any_module);
  void push_back(std::string name, AnyModule any_module);
  Iterator begin();
  ConstIterator begin() const;
  Iterator end();
  ConstIterator end() const;
  template <typename T>
  T& at(size_t index);
  template <typename T>
  const T& at(size_t index) const;
  std::shared_ptr<Module> ptr(size_t index) const;
  template <typename T>
  std::shared_ptr<T> ptr(size_t index) const;
  std::shared_ptr<Module> operator[](size_t index) const;
  size_t size() const noexcept;
  bool is_empty() const noexcept;
};
class Sequential : public torch::nn::ModuleHolder<SequentialImpl> {
 public:
  using torch::nn::ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> named_modules);
};

class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;
  ModuleListImpl() = default;
  template <typename... Modules>
  explicit ModuleListImpl(Modules&&... modules);
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  void push_back(std::shared_ptr<Module> module);
  template <typename M, typename = torch::detail::enable_if_module_t<M>>
  void push_back(M&& module);
  template <typename M>
  void push_back(const ModuleHolder<M>& module_holder);
  template <typename Container>
  void extend(const Container& container);
  Iterator begin();
  ConstIterator begin() const;
  Iterator end();
  ConstIterator end() const;
  template <typename T>
  T& at(size_t index);
  template <typename T>
  const T& at(size_t index) const;
  std::shared_ptr<Module> ptr(size_t index) const;
  template <typename T>
  std::shared_ptr<T> ptr(size_t index) const;
  std::shared_ptr<Module> operator[](size_t index) const;
  size_t size() const noexcept;
  bool is_empty() const noexcept;
};
TORCH_MODULE(ModuleList);

class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Iterator = torch::OrderedDict<std::string, std::shared_ptr<Module>>::Iterator;
  using ConstIterator = torch::OrderedDict<std::string, std::shared_ptr<Module>>::ConstIterator;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  explicit ModuleDictImpl(const torch::OrderedDict<std::string, std::shared_ptr<Module>>& modules);
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const;
  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const;
  Iterator begin();
  ConstIterator begin() const;
  Iterator end();
  ConstIterator end() const;
  size_t size() const noexcept;
  bool contains(const std::string& key) const noexcept;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override;
  std::shared_ptr<Module> operator[](const std::string& key) const;
  template <typename T>
  T& at(const std::string& key);
  template <typename T>
  const T& at(const std::string& key) const;
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  template <typename Container>
  void update(const Container& container);
};
TORCH_MODULE(ModuleDict);

class FunctionalImpl : public torch::nn::Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function);
  template <typename SomeFunction, typename... Args, typename = std::enable_if_t<(sizeof...(Args) > 0)>>
  explicit FunctionalImpl(SomeFunction original_function, Args&&... args) {}
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
  Tensor operator()(Tensor input);
  bool is_serializable() const override;
};
TORCH_MODULE(Functional);

}  // namespace nn
}  // namespace torch
