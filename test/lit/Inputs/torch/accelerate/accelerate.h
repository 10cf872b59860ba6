#pragma once

// The interface of the runtime, as declarations: its own headers read more of LibTorch than the mock beside this file.
// The tests run with the runtime's headers and LibTorch's too, so nothing here can drift.

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace accelerate {

enum class Reduction { Mean, Sum };

struct Weight {
  explicit Weight(double weight);
  explicit Weight(const torch::Tensor& weight);
  double value;
};

Weight class_weight(const torch::Tensor& target, const std::optional<torch::Tensor>& weight, int64_t reduction = 1,
                    int64_t ignore_index = -100, double label_smoothing = 0);
template <typename Options>
auto class_weight(const torch::Tensor& target, const Options& options)
    -> std::enable_if_t<std::is_convertible_v<decltype(options.ignore_index()), int64_t>, Weight>;
template <typename Module>
auto class_weight(const torch::Tensor& target, const Module& criterion)
    -> std::enable_if_t<std::is_convertible_v<decltype(criterion->options.ignore_index()), int64_t>, Weight>;

struct Options {};

class Accelerator {
 public:
  Accelerator();
  explicit Accelerator(const Options& options);
  torch::Device device() const;
  torch::Device device(torch::Device original) const;
  int64_t process_index() const;
  int64_t num_processes() const;
  int64_t local_process_index() const;
  bool is_main_process() const;
  bool is_local_main_process() const;
  bool is_last_process() const;

  template <typename... Args>
  void prepare(Args&&... args) const;

  void backward(const torch::Tensor& loss, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const;
  template <typename R, std::enable_if_t<std::is_same_v<R, Reduction>, int> = 0>
  void backward(const torch::Tensor& loss, R reduction, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const;
  void backward(const torch::Tensor& loss, const Weight& weight, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const;

  template <typename Value, typename... Values>
  std::conditional_t<sizeof...(Values) == 0, Value, std::tuple<Value, Values...>> reduce(
      const Value& value, const Values&... values) const;
  template <typename... Values>
  void reduce_(Values&... values) const;
  template <typename Value>
  Value share(const Value& x) const;
  template <typename Value>
  Value mine(const Value& x) const;
  template <typename Value, typename... Values>
  std::conditional_t<sizeof...(Values) == 0, Value, std::tuple<Value, Values...>> mean(const Value& value,
                                                                                      const Values&... values) const;
  template <typename Value, typename... Values>
  std::conditional_t<sizeof...(Values) == 0, Value, std::tuple<Value, Values...>> sum(const Value& value,
                                                                                     const Values&... values) const;

  int64_t global_rows(int64_t local_rows) const;
  std::vector<int64_t> global_rows(at::IntArrayRef local_sizes) const;
  torch::Tensor own_rows(const torch::Tensor& whole, int64_t for_each = 1) const;
  torch::Tensor global_like(const torch::Tensor& x) const;
  torch::Tensor squeeze(const torch::Tensor& x) const;
  torch::Tensor gradient(const torch::Tensor& x) const;
  template <typename Compute>
  decltype(auto) whole(Compute&& compute) const {
    return compute();
  }
  torch::Tensor share(const torch::Tensor& x, const Weight& weight) const;
  template <typename Value>
  Value max(const Value& x) const;
  template <typename Value>
  Value min(const Value& x) const;
  template <typename Function>
  std::invoke_result_t<Function> once(Function&& function) const {
    return function();
  }
  torch::Tensor all_reduce(const torch::Tensor& x) const;
  torch::Tensor all_gather(const torch::Tensor& rows) const;
  template <typename Value>
  Value broadcast(const Value& x, int64_t from_process = 0) const;
  template <typename Batch>
  std::decay_t<Batch> shard(Batch&& batch, int64_t dim = 0) const;
  torch::Tensor gather(const torch::Tensor& rows) const;
  torch::Tensor gather_for_metrics(const torch::Tensor& rows) const;
  torch::Tensor pad_across_processes(const torch::Tensor& x, int64_t dim = 0, double pad_index = 0,
                                     bool pad_first = false) const;
  void wait_for_everyone() const;
  template <typename Function, typename... Args>
  void on_main_process(Function&& function, Args&&... args) const {
    function(args...);
  }

  template <typename Value, typename... Target>
  void save(const Value& value, Target&&... target) const {}
  std::string main_process_file(const std::string& path) const;
  template <typename Path>
  Path wait_for_file(Path path) const;
};

template <typename D, typename S>
std::enable_if_t<!D::is_stateful, std::unique_ptr<torch::data::StatelessDataLoader<D, S>>> make_data_loader(
    D dataset, S sampler, torch::data::DataLoaderOptions options);
template <typename S = torch::data::samplers::RandomSampler, typename D>
std::enable_if_t<!D::is_stateful && std::is_constructible_v<S, size_t>,
                 std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_data_loader(D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions());

template <typename D, typename S>
std::enable_if_t<!D::is_stateful, std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_evaluation_data_loader(D dataset, S sampler, torch::data::DataLoaderOptions options);
template <typename S = torch::data::samplers::RandomSampler, typename D>
std::enable_if_t<!D::is_stateful && std::is_constructible_v<S, size_t>,
                 std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_evaluation_data_loader(D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions());

}  // namespace accelerate
