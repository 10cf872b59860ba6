#include "steps.h"

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <cstdlib>
#include <sstream>

namespace accelerate::self_check {

namespace {

constexpr int64_t kRows = 37, kBatch = 8, kFeatures = 6;  // rows that don't divide by anything
constexpr double kTolerance = 1e-10;                      // of doubles, added up in another order

/// Row i is made of i alone, so that every rank knows all of them. The target is i.
class Rows : public torch::data::datasets::Dataset<Rows> {
 public:
  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<double>(index);
    return {torch::sin(torch::arange(kFeatures, torch::kFloat64) * 0.7 + i), torch::tensor(i, torch::kFloat64)};
  }
  torch::optional<size_t> size() const override { return kRows; }
};

auto stacked_rows() { return Rows().map(torch::data::transforms::Stack<>()); }

torch::nn::Sequential new_model() {
  torch::manual_seed(17);
  torch::nn::Sequential model(torch::nn::Linear(kFeatures, 5), torch::nn::Tanh(), torch::nn::Linear(5, 1));
  model->to(torch::kFloat64);
  return model;
}

torch::Tensor loss_of(torch::nn::Sequential& model, const torch::Tensor& rows, const torch::Tensor& targets) {
  return torch::mse_loss(model->forward(rows).squeeze(1), targets / kRows);
}

/// For the tests of this program: what is compared on the last rank comes out wrong in that step.
bool spoiled(const std::string& step) {
  const char* wanted = std::getenv("ACCELERATE_SELF_CHECK_SPOIL");
  return wanted && step == wanted && Accelerator().is_last_process();
}

/// Throws on all ranks if any of them found something wrong.
void agree(bool right, const std::string& what) {
  const torch::Tensor wrong = torch::tensor({right ? int64_t{0} : int64_t{1}});
  const torch::Tensor all = Accelerator().gather(wrong);
  std::string ranks;
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    if (all[rank].item<int64_t>() != 0) {
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  TORCH_CHECK(ranks.empty(), what, " on rank ", ranks);
}

std::string rendezvous(const std::string& /*checkpoint_folder*/) {
  const Accelerator accelerator;
  std::ostringstream out;
  out << accelerator.num_processes() << (accelerator.num_processes() == 1 ? " rank, on " : " ranks, rank 0 on ")
      << accelerator.device();
  return out.str();
}

std::string collectives(const std::string& /*checkpoint_folder*/) {
  const Accelerator accelerator;
  const int64_t rank = accelerator.process_index(), ranks = accelerator.num_processes();
  const auto options = torch::TensorOptions(accelerator.device()).dtype(torch::kFloat64);

  torch::Tensor sum = accelerator.reduce(torch::full({3}, static_cast<double>(rank + 1), options));
  if (spoiled("collectives")) {
    sum += 1;
  }
  const auto expected = static_cast<double>(ranks * (ranks + 1)) / 2;
  agree(sum.eq(expected).all().item<bool>(), "a sum over ranks is wrong");

  const torch::Tensor sent = accelerator.broadcast(torch::full({2}, static_cast<double>(rank), options));
  agree(sent.eq(0).all().item<bool>(), "what rank 0 sends isn't what arrives");

  // Rank r gives r + 1 rows with its number.
  const torch::Tensor rows = accelerator.gather(torch::full({rank + 1, 2}, static_cast<double>(rank), options));
  bool right = rows.size(0) == ranks * (ranks + 1) / 2;
  for (int64_t other = 0, row = 0; right && other < ranks; row += ++other) {
    right = rows.narrow(0, row, other + 1).eq(static_cast<double>(other)).all().item<bool>();
  }
  agree(right, "gathered rows are wrong");
  return "";
}

std::string sharding(const std::string& /*checkpoint_folder*/) {
  const Accelerator accelerator;
  accelerator.device();  // batches are to arrive there
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(stacked_rows(), kBatch);
  accelerator.prepare(loader);
  std::vector<torch::Tensor> seen;
  for (auto& batch : *loader) {
    agree(batch.data.device().type() == accelerator.device().type(), "a batch isn't on the device");
    seen.push_back(accelerator.gather_for_metrics(batch.target).cpu());
  }
  torch::Tensor all = torch::cat(seen);
  if (spoiled("sharding")) {
    all = all.narrow(0, 1, all.size(0) - 1);
  }
  agree(torch::equal(all, torch::arange(kRows, torch::kFloat64)), "the ranks together don't see each row once");
  return "";
}

std::string gradient_parity(const std::string& /*checkpoint_folder*/) {
  const Accelerator accelerator;
  const torch::Device device = accelerator.device();
  auto reference = new_model();
  auto model = new_model();
  reference->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(stacked_rows(), kBatch);
  accelerator.prepare(model, optimizer, loader);
  int64_t first = 0;
  double worst = 0;
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    accelerator.backward(loss_of(model, batch.data, batch.target));

    // The same rows at once, by LibTorch alone.
    std::vector<torch::Tensor> rows, targets;
    for (int64_t i = first; i < std::min(first + kBatch, kRows); ++i) {
      const auto example = Rows().get(static_cast<size_t>(i));
      rows.push_back(example.data);
      targets.push_back(example.target);
    }
    first += kBatch;
    reference->zero_grad();
    loss_of(reference, torch::stack(rows).to(device), torch::stack(targets).to(device)).backward();

    const auto own = model->parameters(), expected = reference->parameters();
    for (size_t i = 0; i < own.size(); ++i) {
      const double scale = expected[i].grad().abs().max().item<double>() + 1e-3;
      worst = std::max(worst, (own[i].grad() - expected[i].grad()).abs().max().item<double>() / scale);
    }
  }
  if (spoiled("gradient parity")) {
    worst += 1e-6;
  }
  std::ostringstream what;
  what << "gradients differ from those of one process by " << worst << " (tolerance " << kTolerance << ")";
  agree(worst <= kTolerance, what.str());
  std::ostringstream out;
  out << "largest relative difference to one process " << worst;
  return out.str();
}

std::string checkpoint_round_trip(const std::string& checkpoint_folder) {
  const Accelerator accelerator;
  auto model = new_model();
  model->to(accelerator.device());
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = accelerate::make_data_loader(stacked_rows(), kBatch);  // shuffled
  accelerator.prepare(model, optimizer, loader);
  constexpr int kSaveAt = 3, kSteps = 7;  // in the middle of epochs of 5 steps
  const auto train = [&](int step) {
    while (step < kSteps) {
      for (auto& batch : *loader) {
        optimizer.zero_grad();
        accelerator.backward(loss_of(model, batch.data, batch.target));
        optimizer.step();
        if (++step == kSaveAt) {
          accelerator.save_state(checkpoint_folder);
        }
        if (step == kSteps) {
          break;
        }
      }
    }
    std::vector<torch::Tensor> weights;
    for (const torch::Tensor& parameter : model->parameters()) {
      weights.push_back(parameter.detach().reshape({-1}).clone());
    }
    return torch::cat(weights);
  };
  const torch::Tensor through = train(0);
  accelerator.load_state(checkpoint_folder);
  torch::Tensor resumed = train(kSaveAt);
  if (spoiled("checkpoint round trip")) {
    resumed[0] += 1e-12;
  }
  agree(torch::equal(through, resumed), "training that goes on from a checkpoint takes another way");
  return "bit-identical";
}

}  // namespace

const std::vector<Step>& steps() {
  static const std::vector<Step> all = {
      {"rendezvous", rendezvous},
      {"collectives", collectives},
      {"sharding", sharding},
      {"gradient parity", gradient_parity},
      {"checkpoint round trip", checkpoint_round_trip},
  };
  return all;
}

}  // namespace accelerate::self_check
