#pragma once

/// Moves a batch to a device, whatever it is made of: tensors, torch::data examples, and the standard
/// containers of such. Anything else in it is left where it is.

#include <torch/data/example.h>
#include <torch/types.h>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accelerate::detail {

template <typename T>
struct Deliver {
  static void to(T& x, const torch::Device& device) {
    if constexpr (std::is_same_v<T, torch::Tensor>) {
      if (x.defined()) {
        x = x.to(device);
      }
    }
  }
};

template <typename T>
void deliver(T& x, const torch::Device& device) {
  Deliver<T>::to(x, device);
}

template <typename Data, typename Target>
struct Deliver<torch::data::Example<Data, Target>> {
  static void to(torch::data::Example<Data, Target>& x, const torch::Device& device) {
    deliver(x.data, device);
    deliver(x.target, device);
  }
};

template <typename Data>
struct Deliver<torch::data::Example<Data, torch::data::example::NoTarget>> {
  static void to(torch::data::Example<Data, torch::data::example::NoTarget>& x, const torch::Device& device) {
    deliver(x.data, device);
  }
};

template <typename List>
struct DeliverList {
  static void to(List& list, const torch::Device& device) {
    for (auto& x : list) {
      deliver(x, device);
    }
  }
};
template <typename T, typename A>
struct Deliver<std::vector<T, A>> : DeliverList<std::vector<T, A>> {};
template <typename A>
struct Deliver<std::vector<bool, A>> {
  static void to(std::vector<bool, A>&, const torch::Device&) {}
};
template <typename T, std::size_t N>
struct Deliver<std::array<T, N>> : DeliverList<std::array<T, N>> {};

template <typename Map>
struct DeliverMap {
  static void to(Map& map, const torch::Device& device) {
    for (auto& [key, x] : map) {
      deliver(x, device);
    }
  }
};
template <typename... T>
struct Deliver<std::map<T...>> : DeliverMap<std::map<T...>> {};
template <typename... T>
struct Deliver<std::unordered_map<T...>> : DeliverMap<std::unordered_map<T...>> {};

template <typename Tuple>
struct DeliverTuple {
  static void to(Tuple& tuple, const torch::Device& device) {
    std::apply([&](auto&... x) { (deliver(x, device), ...); }, tuple);
  }
};
template <typename... T>
struct Deliver<std::tuple<T...>> : DeliverTuple<std::tuple<T...>> {};
template <typename A, typename B>
struct Deliver<std::pair<A, B>> : DeliverTuple<std::pair<A, B>> {};

template <typename T>
struct Deliver<std::optional<T>> {
  static void to(std::optional<T>& x, const torch::Device& device) {
    if (x) {
      deliver(*x, device);
    }
  }
};

}  // namespace accelerate::detail
