#pragma once

/// What is done to batches, whatever they are made of: moving them to a device, counting and slicing their rows,
/// joining them, sending them to other ranks.
///
/// Known are tensors; torch::data examples, tuples, pairs and arrays of what is known, whose parts all have the
/// batch's rows; maps, whose values have them; optionals; vectors. A vector of tensors has the rows in each of its
/// tensors (as in Accelerate); any other vector (of examples, numbers, strings, ...) has one row an element. Tensors
/// of no dimensions, and anything else, belong to the batch as a whole: batches that are joined
/// (BatchPolicy::PerProcess where one process reads for all) must have equal ones, or the join throws.

#include <accelerate/export.h>
#include <torch/data/example.h>
#include <torch/types.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accelerate {

/// The parts of a batch type of your own, the one place where the library learns of them:
///
///   struct Batch { torch::Tensor image, label; std::vector<std::string> names; int64_t number; };
///   template <>
///   struct accelerate::BatchFields<Batch> {
///     static auto of(Batch& batch) { return std::tie(batch.image, batch.label, batch.names); }
///   };
///
/// A field that isn't tied stays as it is, and isn't sent to other ranks.
template <typename T>
struct BatchFields {};

template <typename Data, typename Target>
struct BatchFields<torch::data::Example<Data, Target>> {
  static auto of(torch::data::Example<Data, Target>& x) { return std::tie(x.data, x.target); }
};
template <typename Data>
struct BatchFields<torch::data::Example<Data, torch::data::example::NoTarget>> {
  static auto of(torch::data::Example<Data, torch::data::example::NoTarget>& x) { return std::tie(x.data); }
};
template <typename... T>
struct BatchFields<std::tuple<T...>> {
  static auto of(std::tuple<T...>& x) {
    return std::apply([](auto&... part) { return std::tie(part...); }, x);
  }
};
template <typename A, typename B>
struct BatchFields<std::pair<A, B>> {
  static auto of(std::pair<A, B>& x) { return std::tie(x.first, x.second); }
};
template <typename T, std::size_t N>
struct BatchFields<std::array<T, N>> {
  static auto of(std::array<T, N>& x) {
    return std::apply([](auto&... part) { return std::tie(part...); }, x);
  }
};

namespace detail {

template <typename T>
inline constexpr bool is_tensor = std::is_same_v<T, torch::Tensor>;

template <typename T, typename = void>
inline constexpr bool has_fields = false;
template <typename T>
inline constexpr bool has_fields<T, std::void_t<decltype(BatchFields<T>::of(std::declval<T&>()))>> = true;

template <typename T>
inline constexpr bool is_vector = false;
template <typename T, typename A>
inline constexpr bool is_vector<std::vector<T, A>> = true;

template <typename T>
inline constexpr bool is_map = false;
template <typename... T>
inline constexpr bool is_map<std::map<T...>> = true;
template <typename... T>
inline constexpr bool is_map<std::unordered_map<T...>> = true;

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Vectors that have the batch's rows in each element, not one row an element.
template <typename T>
inline constexpr bool has_columns = false;
template <typename T, typename A>
inline constexpr bool has_columns<std::vector<T, A>> = is_tensor<T> || has_columns<T>;

/// BatchFields<T>::of for reading.
template <typename T>
auto fields_of(const T& x) {
  return BatchFields<T>::of(const_cast<T&>(x));
}

/// Calls f with every tensor.
template <typename T, typename F>
void for_each_tensor(T& x, const F& f) {
  if constexpr (is_tensor<T>) {
    f(x);
  } else if constexpr (has_fields<T>) {
    std::apply([&](auto&... field) { (for_each_tensor(field, f), ...); }, BatchFields<T>::of(x));
  } else if constexpr (is_vector<T>) {
    if constexpr (!std::is_same_v<typename T::value_type, bool>) {
      for (auto& element : x) {
        for_each_tensor(element, f);
      }
    }
  } else if constexpr (is_map<T>) {
    for (auto& [key, value] : x) {
      for_each_tensor(value, f);
    }
  } else if constexpr (is_optional<T>) {
    if (x) {
      for_each_tensor(*x, f);
    }
  }
}

/// The number of rows of a batch, which all its parts have to agree on.
class ACCELERATE_API RowCount {
 public:
  explicit RowCount(int64_t dim) : dim_(dim) {}
  void see(const torch::Tensor& x);
  void see_list(std::size_t size);
  /// Throws if nothing with rows was seen.
  int64_t rows() const;

 private:
  void see(int64_t rows);
  int64_t dim_;
  std::optional<int64_t> rows_;
};

template <typename T>
void count_rows(const T& x, RowCount& count) {
  if constexpr (is_tensor<T>) {
    count.see(x);
  } else if constexpr (has_fields<T>) {
    std::apply([&](const auto&... field) { (count_rows(field, count), ...); }, fields_of(x));
  } else if constexpr (has_columns<T>) {
    for (const auto& element : x) {
      count_rows(element, count);
    }
  } else if constexpr (is_vector<T>) {
    count.see_list(x.size());
  } else if constexpr (is_map<T>) {
    for (const auto& [key, value] : x) {
      count_rows(value, count);
    }
  } else if constexpr (is_optional<T>) {
    if (x) {
      count_rows(*x, count);
    }
  }
}

template <typename List>
void slice_list(List& list, int64_t begin, int64_t rows) {
  list = List(list.begin() + begin, list.begin() + begin + rows);
}

/// Keeps `rows` rows from `begin` on, which have been counted.
template <typename T>
void slice_rows(T& x, int64_t begin, int64_t rows, int64_t dim) {
  if constexpr (is_tensor<T>) {
    if (x.defined() && x.dim() > 0) {
      x = x.is_contiguous() ? x.narrow(dim, begin, rows).contiguous() : x.narrow(dim, begin, rows);
    }
  } else if constexpr (has_fields<T>) {
    std::apply([&](auto&... field) { (slice_rows(field, begin, rows, dim), ...); }, BatchFields<T>::of(x));
  } else if constexpr (has_columns<T>) {
    for (auto& element : x) {
      slice_rows(element, begin, rows, dim);
    }
  } else if constexpr (is_vector<T>) {
    slice_list(x, begin, rows);
  } else if constexpr (is_map<T>) {
    for (auto& [key, value] : x) {
      slice_rows(value, begin, rows, dim);
    }
  } else if constexpr (is_optional<T>) {
    if (x) {
      slice_rows(*x, begin, rows, dim);
    }
  }
}

template <typename T, typename = void>
inline constexpr bool is_comparable = false;
template <typename T>
inline constexpr bool is_comparable<
    T, std::enable_if_t<std::is_convertible_v<decltype(std::declval<const T&>() == std::declval<const T&>()), bool>>> =
    true;

/// Whether two values are equal; a not-a-number is as another.
template <typename T>
bool same_value(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else {
    return a == b;
  }
}

ACCELERATE_API torch::Tensor join_tensors(const std::vector<torch::Tensor*>& parts);
[[noreturn]] ACCELERATE_API void throw_unlike_parts(const char* what);

template <typename T>
void join(const std::vector<T*>& parts);

/// Joins what `part_of` finds in each of the parts.
template <typename T, typename PartOf>
void join_each(const std::vector<T*>& parts, PartOf part_of) {
  std::vector<decltype(part_of(*parts[0]))> found;
  for (T* part : parts) {
    found.push_back(part_of(*part));
  }
  join(found);
}

template <typename T, std::size_t... I>
void join_fields(const std::vector<T*>& parts, std::index_sequence<I...>) {
  (join_each(parts, [](T& part) { return &std::get<I>(BatchFields<T>::of(part)); }), ...);
}

/// Joins batches of like structure along dimension 0, into the first.
template <typename T>
void join(const std::vector<T*>& parts) {
  T& first = *parts[0];
  const auto check_alike = [&parts](const char* what, auto property) {
    for (const T* part : parts) {
      if (property(*part) != property(*parts[0])) {
        throw_unlike_parts(what);
      }
    }
  };
  if constexpr (is_tensor<T>) {
    first = join_tensors(parts);
  } else if constexpr (has_fields<T>) {
    join_fields(parts, std::make_index_sequence<std::tuple_size_v<decltype(BatchFields<T>::of(first))>>());
  } else if constexpr (has_columns<T>) {
    check_alike("numbers of tensors in a vector", [](const T& x) { return x.size(); });
    for (std::size_t i = 0; i < first.size(); ++i) {
      join_each(parts, [i](T& part) { return &part[i]; });
    }
  } else if constexpr (is_vector<T>) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      first.insert(first.end(), parts[i]->begin(), parts[i]->end());
    }
  } else if constexpr (is_map<T>) {
    check_alike("numbers of keys in a map", [](const T& x) { return x.size(); });
    for (auto& [key, value] : first) {
      const auto& wanted = key;  // lambdas can't capture structured bindings
      check_alike("keys of a map", [&wanted](const T& x) { return x.count(wanted); });
      join_each(parts, [&wanted](T& part) { return &part.at(wanted); });
    }
  } else if constexpr (is_optional<T>) {
    check_alike("optional parts", [](const T& x) { return x.has_value(); });
    if (first) {
      join_each(parts, [](T& part) { return &*part; });
    }
  } else if constexpr (is_comparable<T>) {
    for (const T* part : parts) {
      if (!same_value(*part, first)) {
        throw_unlike_parts("values of a field that isn't of its rows");
      }
    }
  }
}

}  // namespace detail
}  // namespace accelerate
