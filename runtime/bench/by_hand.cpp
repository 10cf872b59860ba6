#include "by_hand.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>

#include "../src/c10d_compat.h"

namespace bench::by_hand {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  TORCH_CHECK(value, name, " isn't set; start this with torchrun's variables");
  return value;
}

c10::intrusive_ptr<c10d::ProcessGroup> make_group() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(variable("MASTER_PORT")));
  options.isServer = rank() == 0;
  options.numWorkers = static_cast<std::size_t>(ranks());
  const auto store = c10::make_intrusive<c10d::TCPStore>(variable("MASTER_ADDR"), options);
  auto gloo_options = c10d::ProcessGroupGloo::Options::create();
  gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  const auto size = static_cast<int>(ranks());
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(rank()), size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store),
                                                                static_cast<int>(rank()), size, gloo_options));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setGroupName("by_hand");
  return group;
}

}  // namespace

int64_t rank() { return std::stoll(variable("RANK")); }
int64_t ranks() { return std::stoll(variable("WORLD_SIZE")); }

Backward reducer(const std::vector<torch::Tensor>& parameters) {
  accelerate::detail::ReducerArguments arguments;
  arguments.parameters = parameters;
  arguments.group = make_group();
  arguments.sparse.assign(parameters.size(), false);
  arguments.find_unused = false;
  arguments.bucket_bytes = c10d::kDefaultBucketBytesCap;
  for (size_t i = 0; i < parameters.size(); ++i) {
    arguments.names[i] = "parameter " + std::to_string(i);
  }
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters,
      {static_cast<size_t>(c10d::kDefaultFirstBucketBytes), static_cast<size_t>(c10d::kDefaultBucketBytesCap)}));
  arguments.buckets.assign(buckets.rbegin(), buckets.rend());
  const auto reducer = accelerate::detail::make_reducer(std::move(arguments));
  const auto logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  logger->set_construction_data_and_log("model", {}, -1, false, false, false);
  return [reducer, logger](const torch::Tensor& loss) {
    reducer->rebuild_buckets();
    reducer->prepare_for_forward();
    reducer->prepare_for_backward({});
    loss.backward();
  };
}

Backward per_parameter(const std::vector<torch::Tensor>& parameters) {
  return [parameters, group = make_group()](const torch::Tensor& loss) {
    loss.backward();
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (const torch::Tensor& parameter : parameters) {
      std::vector<torch::Tensor> gradients{parameter.grad()};
      works.push_back(group->allreduce(gradients));
    }
    for (const auto& work : works) {
      work->wait();
    }
    for (const torch::Tensor& parameter : parameters) {
      parameter.grad().div_(group->getSize());
    }
  };
}

}  // namespace bench::by_hand
