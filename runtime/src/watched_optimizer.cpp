#include "watched_optimizer.h"

#include <torch/optim.h>

#include <typeinfo>
#include <utility>

namespace accelerate::detail {
namespace {

struct Token {
  std::shared_ptr<void> life = std::make_shared<char>();
};

/// Options with the token in them. An optimizer's default options end with it and nobody can replace them; they are
/// copied into groups that are added later, without the token.
template <typename Options>
struct Watched final : Options, Token {
  Watched(const Options& options, std::unique_ptr<torch::optim::OptimizerOptions> replaced)
      : Options(options), original(std::move(replaced)) {}
  std::unique_ptr<torch::optim::OptimizerOptions> clone() const override {
    return std::make_unique<Options>(static_cast<const Options&>(*this));
  }
  std::unique_ptr<torch::optim::OptimizerOptions> original;  // to which the program may have a reference
};

struct Access : torch::optim::Optimizer {
  static std::unique_ptr<torch::optim::OptimizerOptions>& defaults_of(torch::optim::Optimizer& optimizer) {
    return optimizer.*(&Access::defaults_);
  }
};

template <typename Options>
bool watch_as(std::unique_ptr<torch::optim::OptimizerOptions>& defaults) {
  if (typeid(*defaults) != typeid(Options)) {
    return false;
  }
  const auto options = static_cast<const Options&>(*defaults);
  defaults = std::make_unique<Watched<Options>>(options, std::move(defaults));
  return true;
}

}  // namespace

std::shared_ptr<void> watch(torch::optim::Optimizer& optimizer) {
  auto& defaults = Access::defaults_of(optimizer);
  if (!defaults) {
    return nullptr;
  }
  if (!dynamic_cast<Token*>(defaults.get())) {
    (void)(watch_as<torch::optim::SGDOptions>(defaults) || watch_as<torch::optim::AdamOptions>(defaults) ||
           watch_as<torch::optim::AdamWOptions>(defaults) || watch_as<torch::optim::RMSpropOptions>(defaults) ||
           watch_as<torch::optim::AdagradOptions>(defaults) || watch_as<torch::optim::LBFGSOptions>(defaults));
  }
  const auto* token = dynamic_cast<const Token*>(defaults.get());
  return token ? token->life : nullptr;
}

}  // namespace accelerate::detail
