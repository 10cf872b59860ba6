#pragma once

/// The values behind Accelerator::reduce, share, mine, gather and broadcast. Numbers travel in tensors;
/// what is here packs and unpacks them with their types kept.

#include <accelerate/batch.h>
#include <accelerate/dispatch.h>
#include <accelerate/export.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accelerate::detail {

ACCELERATE_API bool alone();

/// Replaces each tensor by the sum over the ranks (fresh, same type), in as few all-reduces as types allow.
ACCELERATE_API void reduce_tensors(std::vector<torch::Tensor>& tensors);
/// Throws on all ranks unless all of them reduce maps with the same keys. (collective)
ACCELERATE_API void check_same_keys(const std::vector<std::string>& keys);
/// Writes `value` over `target`, whatever graph it is part of.
ACCELERATE_API void overwrite(const torch::Tensor& target, const torch::Tensor& value);
ACCELERATE_API torch::Tensor gather(const torch::Tensor& rows, bool drop_ghosts);
ACCELERATE_API torch::Tensor broadcast_tensor(const torch::Tensor& x, int64_t from_process);
ACCELERATE_API void wait_for_everyone();

/// Local rows / global rows of the training batch in hand, 1/N without one; 0 on a ghost.
ACCELERATE_API double row_share();
ACCELERATE_API int64_t global_rows(int64_t local_rows);
ACCELERATE_API torch::Tensor own_rows(const torch::Tensor& whole, int64_t for_each);
/// While there is one, values are brought together with nobody's: every rank has them whole.
class ACCELERATE_API Whole {
 public:
  Whole();
  ~Whole();
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;
};
ACCELERATE_API torch::Tensor global_like(const torch::Tensor& x);
ACCELERATE_API torch::Tensor squeeze(const torch::Tensor& x);
ACCELERATE_API torch::Tensor gradient(const torch::Tensor& x);
/// Whether the training batch in hand is a ghost.
ACCELERATE_API bool holds_ghost();
ACCELERATE_API torch::Tensor share_tensor(const torch::Tensor& x);
/// x * weight / the ranks' weights.
ACCELERATE_API torch::Tensor share_tensor(const torch::Tensor& x, double weight);
/// The largest value over the ranks, or the smallest; fresh, same type.
ACCELERATE_API torch::Tensor extreme(const torch::Tensor& x, bool largest);
/// The sum over the ranks without ghosts, with a gradient.
ACCELERATE_API torch::Tensor all_reduce(const torch::Tensor& x);
/// All ranks' rows without ghosts, with a gradient.
ACCELERATE_API torch::Tensor all_gather(const torch::Tensor& rows);

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T>;

/// Packing: a value becomes tensors (fresh or not), and is made again from the reduced ones.
template <typename T, typename = void>
struct Pack {
  static_assert(
      !std::is_same_v<T, T>,
      "accelerate: reduce() takes tensors, numbers, and std::array, std::vector, std::pair, std::tuple, std::map or "
      "std::unordered_map of them");
  // So that this is all that the compiler says.
  static void put(std::vector<torch::Tensor>& out, const T& x);
  static T take(const torch::Tensor*& in, const T& x);
  static void take_in_place(const torch::Tensor*& in, T& x);
};

template <>
struct Pack<torch::Tensor> {
  static void put(std::vector<torch::Tensor>& out, const torch::Tensor& x) { out.push_back(x); }
  static torch::Tensor take(const torch::Tensor*& in, const torch::Tensor&) { return *in++; }
  static void take_in_place(const torch::Tensor*& in, torch::Tensor& x) { overwrite(x, *in++); }
};

/// Integers travel as 64 bits (sums wrap as their unsigned twins do), everything else as double.
template <typename T>
struct Pack<T, std::enable_if_t<is_number<T>>> {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  static void put(std::vector<torch::Tensor>& out, const T& x) {
    out.push_back(torch::scalar_tensor(static_cast<Wide>(x), torch::CppTypeToScalarType<Wide>::value));
  }
  static T take(const torch::Tensor*& in, const T&) { return static_cast<T>((in++)->item<Wide>()); }
  static void take_in_place(const torch::Tensor*& in, T& x) { x = take(in, x); }
};

template <typename List>
struct PackList {
  static_assert(!is_map<typename List::value_type>, "accelerate: reduce() takes no lists of maps; reduce each map");
  static void put(std::vector<torch::Tensor>& out, const List& list) {
    for (const auto& x : list) {
      Pack<typename List::value_type>::put(out, x);
    }
  }
  static List take(const torch::Tensor*& in, const List& list) {
    List result(list);
    take_in_place(in, result, [](auto& x, auto&& value) { x = std::forward<decltype(value)>(value); });
    return result;
  }
  static void take_in_place(const torch::Tensor*& in, List& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if constexpr (std::is_same_v<typename List::value_type, torch::Tensor>) {
        overwrite(list[i], *in++);
      } else {
        list[i] = Pack<typename List::value_type>::take(in, list[i]);
      }
    }
  }

 private:
  template <typename Assign>
  static void take_in_place(const torch::Tensor*& in, List& list, Assign assign) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      typename List::value_type x = list[i];  // by value: std::vector<bool> hands out proxies
      assign(x, Pack<typename List::value_type>::take(in, x));
      list[i] = std::move(x);
    }
  }
};

template <typename T, typename A>
struct Pack<std::vector<T, A>> : PackList<std::vector<T, A>> {};
template <typename T, std::size_t N>
struct Pack<std::array<T, N>> : PackList<std::array<T, N>> {};

/// Pairs and tuples, part by part.
template <typename Parts>
struct PackParts {
  static void put(std::vector<torch::Tensor>& out, const Parts& parts) {
    std::apply([&](const auto&... part) { (Pack<std::decay_t<decltype(part)>>::put(out, part), ...); }, parts);
  }
  static Parts take(const torch::Tensor*& in, const Parts& parts) {
    return std::apply(
        [&](const auto&... part) {
          return Parts{Pack<std::decay_t<decltype(part)>>::take(in, part)...};  // braces: left to right
        },
        parts);
  }
  static void take_in_place(const torch::Tensor*& in, Parts& parts) {
    std::apply([&](auto&... part) { (Pack<std::decay_t<decltype(part)>>::take_in_place(in, part), ...); }, parts);
  }
};

template <typename A, typename B>
struct Pack<std::pair<A, B>> : PackParts<std::pair<A, B>> {
  static_assert(!is_map<A> && !is_map<B>, "accelerate: reduce() takes no pairs of maps; reduce each map");
};
template <typename... T>
struct Pack<std::tuple<T...>> : PackParts<std::tuple<T...>> {
  static_assert(!(is_map<T> || ...), "accelerate: reduce() takes no tuples of maps; reduce each map");
};

/// `double sums[10]`: in place only, as no function returns one.
template <typename T, std::size_t N>
struct Pack<T[N]> {
  static void put(std::vector<torch::Tensor>& out, const T (&array)[N]) {
    for (const T& x : array) {
      Pack<T>::put(out, x);
    }
  }
  static void take_in_place(const torch::Tensor*& in, T (&array)[N]) {
    for (T& x : array) {
      if constexpr (std::is_array_v<T> || std::is_same_v<T, torch::Tensor>) {
        Pack<T>::take_in_place(in, x);
      } else {
        x = Pack<T>::take(in, x);
      }
    }
  }
};

/// The entries of a map in the order of their keys, which is the same on all ranks.
template <typename Map>
auto in_key_order(Map& map) {
  std::vector<decltype(&*map.begin())> entries;
  for (auto& entry : map) {
    entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  return entries;
}

template <typename Map>
struct PackMap {
  using Value = typename Map::mapped_type;
  static void put(std::vector<torch::Tensor>& out, const Map& map) {
    for (const auto* entry : in_key_order(map)) {
      Pack<Value>::put(out, entry->second);
    }
  }
  static Map take(const torch::Tensor*& in, const Map& map) {
    Map result(map);
    for (auto* entry : in_key_order(result)) {
      entry->second = Pack<Value>::take(in, entry->second);
    }
    return result;
  }
  static void take_in_place(const torch::Tensor*& in, Map& map) {
    for (auto* entry : in_key_order(map)) {
      Pack<Value>::take_in_place(in, entry->second);
    }
  }
};

template <typename... T>
struct Pack<std::map<T...>> : PackMap<std::map<T...>> {};
template <typename... T>
struct Pack<std::unordered_map<T...>> : PackMap<std::unordered_map<T...>> {};

template <typename Key>
std::string key_in_words(const Key& key) {
  if constexpr (std::is_convertible_v<const Key&, std::string>) {
    return key;
  } else if constexpr (std::is_enum_v<Key>) {
    return std::to_string(static_cast<std::underlying_type_t<Key>>(key));
  } else {
    static_assert(is_number<Key>, "accelerate: reduce() takes maps whose keys are strings, numbers or enumerators");
    return std::to_string(key);
  }
}

template <typename Value>
void put_keys([[maybe_unused]] std::vector<std::string>& out, [[maybe_unused]] const Value& value) {
  if constexpr (is_map<Value>) {
    out.push_back("a map of " + std::to_string(value.size()));
    for (const auto* entry : in_key_order(value)) {
      out.push_back("the key " + key_in_words(entry->first));
      put_keys(out, entry->second);
    }
  }
}

/// Values as tensors, summed over the ranks.
template <typename... Values>
std::vector<torch::Tensor> reduced(const Values&... values) {
  if constexpr ((is_map<Values> || ...)) {
    std::vector<std::string> keys;
    (put_keys(keys, values), ...);
    check_same_keys(keys);
  }
  std::vector<torch::Tensor> tensors;
  (Pack<Values>::put(tensors, values), ...);
  reduce_tensors(tensors);
  return tensors;
}

template <typename Value, typename... Values>
auto reduce(const Value& value, const Values&... values) {
  if constexpr (sizeof...(Values) == 0) {
    if (alone()) {
      return Value(value);
    }
    const std::vector<torch::Tensor> tensors = reduced(value);
    const torch::Tensor* in = tensors.data();
    return Pack<Value>::take(in, value);
  } else {
    using Result = std::tuple<Value, Values...>;
    if (alone()) {
      return Result(value, values...);
    }
    const std::vector<torch::Tensor> tensors = reduced(value, values...);
    const torch::Tensor* in = tensors.data();
    return Result{Pack<Value>::take(in, value), Pack<Values>::take(in, values)...};  // braces: left to right
  }
}

template <typename... Values>
void reduce_in_place(Values&... values) {
  static_assert(sizeof...(Values) > 0, "accelerate: reduce_() takes at least one argument");
  if (alone()) {
    return;
  }
  const std::vector<torch::Tensor> tensors = reduced(values...);
  const torch::Tensor* in = tensors.data();
  (Pack<Values>::take_in_place(in, values), ...);
}

template <typename Value>
Value share(const Value& x) {
  if constexpr (std::is_base_of_v<torch::Tensor, Value>) {
    return share_tensor(x);
  } else {
    static_assert(is_number<Value>, "accelerate: share() and mean() take tensors and floating-point numbers");
    static_assert(!std::is_integral_v<Value>,
                  "accelerate: a share of an integer isn't an integer; convert the argument to double");
    return alone() ? x : static_cast<Value>(holds_ghost() ? 0.0 : x * row_share());
  }
}

template <typename Value>
Value mine(const Value& x) {
  if constexpr (std::is_base_of_v<torch::Tensor, Value>) {
    return holds_ghost() ? torch::zeros_like(x) : x;
  } else {
    static_assert(is_number<Value>, "accelerate: mine() and sum() take tensors and numbers");
    return holds_ghost() ? Value{} : x;
  }
}

template <typename Value>
Value extreme_of(const Value& x, bool largest) {
  if constexpr (std::is_base_of_v<torch::Tensor, Value>) {
    return extreme(x, largest);
  } else if constexpr (!is_number<Value>) {
    static_assert(!std::is_same_v<Value, Value>, "accelerate: max() and min() take tensors and numbers");
    return x;
  } else {
    using Wide = typename Pack<Value>::Wide;
    if (alone()) {
      return x;
    }
    const auto one = torch::scalar_tensor(static_cast<Wide>(x), torch::CppTypeToScalarType<Wide>::value);
    return static_cast<Value>(extreme(one, largest).template item<Wide>());
  }
}

template <typename Value>
Value broadcast(const Value& x, int64_t from_process) {
  if constexpr (std::is_base_of_v<torch::Tensor, Value>) {
    return broadcast_tensor(x, from_process);
  } else {
    static_assert(is_sendable<Value>(),
                  "accelerate: broadcast() takes tensors, numbers, enumerators and strings, and tuples, vectors, maps, "
                  "optionals and structures with accelerate::BatchFields of them (default-constructible)");
    if (alone()) {
      return x;
    }
    if constexpr (!is_number<Value>) {
      PackedBatch packed;
      if (rank() == from_process) {
        pack(x, packed);
      }
      broadcast_packed(packed, from_process);
      Value result(x);  // with what isn't tied
      BatchReader reader(packed);
      unpack(result, reader);
      return result;
    } else {
      auto bytes = torch::empty({static_cast<int64_t>(sizeof(Value))}, torch::kUInt8);
      std::memcpy(bytes.data_ptr(), &x, sizeof(Value));
      bytes = broadcast_tensor(bytes, from_process);
      Value result;
      std::memcpy(&result, bytes.data_ptr(), sizeof(Value));
      return result;
    }
  }
}

}  // namespace accelerate::detail
