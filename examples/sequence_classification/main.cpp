#include <torch/torch.h>

#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "data.h"
#include "model.h"
#include "progress.h"
#include "scheduler.h"

struct Options {
  std::string data = "data";
  std::string output = "best.pt";
  int epochs = 4;
  size_t limit = 0;
  size_t batch_size = 32;
  double learning_rate = 2e-3;
  uint64_t seed = 42;
};

struct Metrics {
  double loss = 0;
  double accuracy = 0;
};

[[noreturn]] void usage(int code) {
  (code == 0 ? std::cout : std::cerr)
      << "options, with their defaults:\n"
         "  --data FOLDER      data     folder with train.tsv and test.tsv\n"
         "  --output FILE      best.pt  where to save the best model\n"
         "  --epochs N         4\n"
         "  --limit N          0        lines to train on, 0 for all\n"
         "  --batch-size N     32\n"
         "  --learning-rate X  0.002\n"
         "  --seed N           42\n";
  std::exit(code);
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--help") usage(0);
    if (i + 1 == argc) usage(2);
    const std::string value = argv[i + 1];
    if (name == "--data") {
      options.data = value;
    } else if (name == "--output") {
      options.output = value;
    } else if (name == "--epochs") {
      options.epochs = std::stoi(value);
    } else if (name == "--limit") {
      options.limit = std::stoul(value);
    } else if (name == "--batch-size") {
      options.batch_size = std::stoul(value);
    } else if (name == "--learning-rate") {
      options.learning_rate = std::stod(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else {
      usage(2);
    }
  }
  return options;
}

// Trains for one epoch and returns the mean loss of its batches.
template <typename Loader>
double train(SequenceClassifier& model, Loader& loader,
             torch::optim::Optimizer& optimizer,
             torch::optim::LRScheduler& scheduler, torch::Device device,
             ProgressBar bar) {
  model->train();
  double total_loss = 0;
  int64_t batches = 0;
  for (auto& batch : loader) {
    auto tokens = batch.data.to(device);
    auto labels = batch.target.to(device);
    auto loss = torch::cross_entropy_loss(model(tokens), labels);
    optimizer.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    scheduler.step();

    const double value = loss.template item<double>();
    bar.advance(value);
    total_loss += value;
    ++batches;
  }
  return total_loss / batches;
}

template <typename Loader>
Metrics evaluate(SequenceClassifier& model, Loader& loader,
                 torch::Device device) {
  torch::NoGradGuard no_grad;
  model->eval();
  double total_loss = 0;
  int64_t batches = 0, correct = 0, samples = 0;
  for (auto& batch : loader) {
    auto tokens = batch.data.to(device);
    auto labels = batch.target.to(device);
    auto logits = model(tokens);
    total_loss +=
        torch::cross_entropy_loss(logits, labels).template item<double>();
    correct += logits.argmax(-1).eq(labels).sum().template item<int64_t>();
    samples += labels.size(0);
    ++batches;
  }
  return {total_loss / batches, static_cast<double>(correct) / samples};
}

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);

  torch::manual_seed(options.seed);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA
                                                   : torch::kCPU);

  std::vector<std::string> labels;
  auto train_set =
      SentenceDataset(options.data + "/train.tsv", options.limit, labels)
          .map(torch::data::transforms::Stack<>());
  auto eval_set = SentenceDataset(options.data + "/test.tsv", 0, labels)
                      .map(torch::data::transforms::Stack<>());
  const size_t train_size = *train_set.size();
  const size_t steps_per_epoch =
      (train_size + options.batch_size - 1) / options.batch_size;
  std::cout << train_size << " sentences to train on, " << *eval_set.size()
            << " to evaluate on, " << labels.size() << " languages"
            << std::endl;

  auto train_loader =
      torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
          std::move(train_set), torch::data::DataLoaderOptions()
                                    .batch_size(options.batch_size)
                                    .workers(2));
  auto eval_loader =
      torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
          std::move(eval_set), 64);

  ModelOptions model_options;
  model_options.vocabulary_size = kVocabularySize;
  model_options.max_length = kMaxLength;
  model_options.num_labels = static_cast<int64_t>(labels.size());
  SequenceClassifier model(model_options);
  model->to(device);

  torch::optim::AdamW optimizer(
      model->parameters(),
      torch::optim::AdamWOptions(options.learning_rate).weight_decay(0.01));
  const size_t total_steps = options.epochs * steps_per_epoch;
  LinearWarmupScheduler scheduler(optimizer, total_steps / 10, total_steps);

  double best_accuracy = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const double train_loss =
        train(model, *train_loader, optimizer, scheduler, device,
              ProgressBar("epoch " + std::to_string(epoch), steps_per_epoch));
    const Metrics metrics = evaluate(model, *eval_loader, device);
    std::cout << std::fixed << std::setprecision(6) << "epoch " << epoch
              << ": train loss " << train_loss << ", eval loss " << metrics.loss
              << ", accuracy " << metrics.accuracy << std::endl;
    if (metrics.accuracy > best_accuracy) {
      best_accuracy = metrics.accuracy;
      torch::save(model, options.output);
    }
  }
  std::cout << "best accuracy: " << best_accuracy << std::endl;
}
