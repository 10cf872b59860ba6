// Classifies points by a trainer class that keeps everything in members: model, optimizer, schedule, sums.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

constexpr int64_t kClasses = 3;

// Points in four dimensions; the class depends on a product of two of them.
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    inputs_ = torch::randn({count, 4});
    auto score = inputs_.select(1, 0) + inputs_.select(1, 1) * inputs_.select(1, 2);
    labels_ = (score > -0.4).to(torch::kLong) + (score > 0.5).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override {
    return {inputs_[index], labels_[index]};
  }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, labels_;
};

// Attention over the four coordinates, with two heads.
struct ClassifierImpl : torch::nn::Module {
  ClassifierImpl() {
    embed = register_module("embed", torch::nn::Linear(1, 8));
    query = register_module("query", torch::nn::Linear(8, 8));
    // Softmax doesn't see a bias of the keys.
    key = register_module("key", torch::nn::Linear(torch::nn::LinearOptions(8, 8).bias(false)));
    value = register_module("value", torch::nn::Linear(8, 8));
    norm = register_module("norm",
                           torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
    head = register_module("head", torch::nn::Linear(8, kClasses));
  }

  torch::Tensor forward(torch::Tensor x) {
    const auto rows = x.size(0), length = x.size(1);
    auto hidden = torch::tanh(embed(x.unsqueeze(-1)));
    auto split = [&](const torch::Tensor& t) {
      return t.view({rows, length, 2, 4}).transpose(1, 2);
    };
    auto scores =
        torch::matmul(split(query(hidden)), split(key(hidden)).transpose(-2, -1)) / 2;
    auto mixed = torch::matmul(torch::softmax(scores, -1), split(value(hidden)));
    mixed = mixed.transpose(1, 2).contiguous().view({rows, length, 8});
    return head(norm(hidden + mixed).mean(1));
  }

  torch::nn::Linear embed{nullptr}, query{nullptr}, key{nullptr}, value{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Classifier);

struct Options {
  int epochs = 6;
  double learning_rate = 0.02;
  double clip = 0.5;
  int patience = 3;
};

class Trainer {
 public:
  Trainer(Classifier model, const Options& options)
      : options_(options),
        model_(model),
        optimizer_(model_->parameters(),
                   torch::optim::AdamOptions(options.learning_rate).weight_decay(1e-4)) {}

  template <typename TrainingLoader, typename ValidationLoader>
  void run(TrainingLoader& training, ValidationLoader& validation) {
    double best = std::numeric_limits<double>::max();
    int bad_epochs = 0;
    for (int epoch = 1; epoch <= options_.epochs; ++epoch) {
      train_epoch(training);
      std::printf("epoch %d: loss %.6f, accuracy %.4f, average %.6f\n", epoch,
                  loss_sum_ / seen_, static_cast<double>(correct_) / seen_, mean_loss_);
      for (int64_t c = 0; c < kClasses; ++c) {
        std::printf("  class %d: %d of %d\n", static_cast<int>(c), hits_[c], totals_[c]);
      }

      auto [loss, accuracy] = evaluate(validation);
      std::printf("  validation loss %.6f, accuracy %.4f\n", loss, accuracy);
      if (loss < best - 1e-3) {
        best = loss;
        bad_epochs = 0;
        torch::save(model_, "best.pt");
      } else if (++bad_epochs >= options_.patience) {
        std::printf("no progress, stopping\n");
        break;
      }
      if (epoch == 3) set_learning_rate(options_.learning_rate / 2);
    }
    std::printf("%d steps, best validation loss %.6f\n", static_cast<int>(steps_), best);
    torch::save(model_, "last.pt");
  }

 private:
  template <typename Loader>
  void train_epoch(Loader& loader) {
    model_->train();
    loss_sum_ = 0;
    mean_loss_ = 0;
    seen_ = 0;
    correct_ = 0;
    std::vector<int> hits(kClasses, 0), totals(kClasses, 0);
    for (auto& batch : loader) {
      auto output = model_->forward(batch.data);
      auto loss = torch::cross_entropy_loss(output, batch.target);
      optimizer_.zero_grad();
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model_->parameters(), options_.clip);
      optimizer_.step();
      ++steps_;

      const double value = loss.template item<double>();
      mean_loss_ = mean_loss_ == 0 ? value : 0.9 * mean_loss_ + 0.1 * value;
      loss_sum_ += value * batch.data.size(0);
      seen_ += batch.data.size(0);
      auto predicted = output.argmax(1);
      correct_ += predicted.eq(batch.target).sum().template item<int64_t>();
      for (int64_t c = 0; c < kClasses; ++c) {
        auto is_class = batch.target.eq(c);
        totals[c] += is_class.sum().template item<int>();
        hits[c] += (predicted.eq(c) & is_class).sum().template item<int>();
      }
    }
    hits_ = hits;
    totals_ = totals;
  }

  template <typename Loader>
  std::tuple<double, double> evaluate(Loader& loader) {
    torch::NoGradGuard no_grad;
    model_->eval();
    double loss = 0;
    int64_t correct = 0, rows = 0;
    for (auto& batch : loader) {
      auto output = model_->forward(batch.data);
      loss += torch::cross_entropy_loss(output, batch.target, {}, at::Reduction::Sum)
                  .template item<double>();
      correct += output.argmax(1).eq(batch.target).sum().template item<int64_t>();
      rows += batch.target.size(0);
    }
    return {loss / rows, static_cast<double>(correct) / rows};
  }

  void set_learning_rate(double rate) {
    for (auto& group : optimizer_.param_groups()) {
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
    }
  }

  Options options_;
  Classifier model_;
  torch::optim::Adam optimizer_;
  double loss_sum_ = 0, mean_loss_ = 0;
  int64_t seen_ = 0, correct_ = 0, steps_ = 0;
  std::vector<int> hits_, totals_;
};

int main() {
  // 145 rows in batches of 12: the last batch has one row.
  auto training = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Points(145, 1).map(torch::data::transforms::Stack<>()), 12);
  auto validation = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Points(58, 2).map(torch::data::transforms::Stack<>()), 16);

  torch::manual_seed(3);
  Trainer trainer{Classifier(), Options()};
  trainer.run(*training, *validation);
}
