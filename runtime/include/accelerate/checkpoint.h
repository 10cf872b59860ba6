#pragma once

/// Accelerator::save(), and what Accelerator::register_for_checkpointing() takes.

#include <accelerate/export.h>
#include <torch/serialize.h>

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace accelerate::detail {

ACCELERATE_API bool alone();

/// Calls `write` with the name of something to be written to once, from begin to end, and puts what came into the file
/// `path`; with other ranks on the main process, and the file gets its name when it is whole. Returns when all ranks
/// may read it; throws on all of them if it failed, also where the disk is full (LibTorch's writer would end the
/// process).
ACCELERATE_API void save_file(const std::string& path, const std::function<void(const std::string&)>& write);

/// An archive is written by its own save_to().
inline void save_file_of(const torch::serialize::OutputArchive& archive, const std::string& file) {
  const_cast<torch::serialize::OutputArchive&>(archive).save_to(file);  // writing doesn't change what it holds
}
template <typename Value>
void save_file_of(const Value& value, const std::string& file) {
  torch::save(value, file);
}

template <typename Value, typename... Target>
void save(const Value& value, Target&&... target) {
  if constexpr (sizeof...(Target) == 1 && (std::is_convertible_v<Target, std::string> && ...)) {
    save_file(std::string(target...), [&](const std::string& file) { save_file_of(value, file); });
  } else {
    torch::save(value, std::forward<Target>(target)...);
  }
}

/// A registered object: how its state gets into an archive and back.
struct Checkpointable {
  std::function<void(torch::serialize::OutputArchive&)> save;
  std::function<void(torch::serialize::InputArchive&)> load;
};

ACCELERATE_API void register_for_checkpointing(Checkpointable object);
ACCELERATE_API std::string save_state(const std::string& output_dir);
ACCELERATE_API std::string load_state(const std::string& input_dir);
ACCELERATE_API std::string latest_checkpoint();

template <typename T, typename = void>
struct saves_itself : std::false_type {};
template <typename T>
struct saves_itself<
    T, std::void_t<decltype(std::declval<const T&>().save(std::declval<torch::serialize::OutputArchive&>())),
                   decltype(std::declval<T&>().load(std::declval<torch::serialize::InputArchive&>()))>>
    : std::true_type {};

template <typename>
inline constexpr bool no_checkpointable = false;

template <typename T>
Checkpointable checkpointable(T& object) {
  using torch::serialize::InputArchive;
  using torch::serialize::OutputArchive;
  if constexpr (std::is_base_of_v<torch::Tensor, T>) {
    return {[tensor = torch::Tensor(object)](OutputArchive& archive) { archive.write("value", tensor.detach()); },
            [tensor = torch::Tensor(object)](InputArchive& archive) {
              torch::Tensor value;
              archive.read("value", value);
              TORCH_CHECK(value.sizes() == tensor.sizes(), "[accelerate] a registered tensor was ", value.sizes(),
                          " when it was saved and is ", tensor.sizes(), " now");
              torch::NoGradGuard no_grad;
              tensor.detach().copy_(value);
            }};
  } else if constexpr (std::is_arithmetic_v<T>) {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    return {[&object](OutputArchive& archive) { archive.write("value", c10::IValue(static_cast<Wide>(object))); },
            [&object](InputArchive& archive) {
              c10::IValue value;
              archive.read("value", value);
              object = static_cast<T>(value.to<Wide>());
            }};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {[&object](OutputArchive& archive) { archive.write("value", c10::IValue(object)); },
            [&object](InputArchive& archive) {
              c10::IValue value;
              archive.read("value", value);
              object = value.toStringRef();
            }};
  } else if constexpr (saves_itself<T>::value) {
    return {[&object](OutputArchive& archive) { object.save(archive); },
            [&object](InputArchive& archive) { object.load(archive); }};
  } else {
    static_assert(
        no_checkpointable<T>,
        "accelerate: register_for_checkpointing() takes objects with save(torch::serialize::OutputArchive&) "
        "const and load(torch::serialize::InputArchive&), tensors, numbers and strings, or two functions that "
        "save into and load from an archive; this argument is none of these");
  }
}

template <typename... Objects>
void register_all(Objects&&... objects) {
  if constexpr (sizeof...(Objects) == 2) {
    using Pair = std::tuple<std::remove_reference_t<Objects>...>;
    if constexpr (std::is_invocable_v<std::tuple_element_t<0, Pair>&, torch::serialize::OutputArchive&> &&
                  std::is_invocable_v<std::tuple_element_t<1, Pair>&, torch::serialize::InputArchive&>) {
      register_for_checkpointing(Checkpointable{std::forward<Objects>(objects)...});
      return;
    } else {
      (register_for_checkpointing(checkpointable(objects)), ...);
    }
  } else {
    (register_for_checkpointing(checkpointable(objects)), ...);
  }
  static_assert((std::is_lvalue_reference_v<Objects> && ...) || sizeof...(Objects) == 2,
                "accelerate: register_for_checkpointing() refers to its arguments later; they can't be temporary");
}

}  // namespace accelerate::detail
