/// What one rank can't read: reading WHAT RANK [uncaught]. Run by reading_test.sh on some ranks.
///   WHAT  row (the data set throws), transform (what is mapped over it does), worker (on a thread of one),
///         evaluation, in_place (in a loader that torch made), in_place_worker (on a thread of such a one), alike (a
///         stream that all ranks read),
///         reset (of a stream that the main process reads), user (the program's own code, between two batches),
///         checkpoint (a file of it is missing)
/// Every rank prints what it caught, and then what an operation with the others comes to.

#include <accelerate/accelerate.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "toys.h"

namespace {

/// Whether something is to fail now: on one rank, at the third batch.
struct Fault {
  bool here = false;
  void strike() const {
    if (here) throw std::runtime_error("row 17 is unreadable");
  }
};

class Rows : public torch::data::Dataset<Rows> {
 public:
  explicit Rows(Fault fault) : fault_(fault) {}
  torch::data::Example<> get(size_t index) override {
    if (index >= 12) fault_.strike();
    return {torch::ones({4}), torch::ones({1})};
  }
  torch::optional<size_t> size() const override { return 48; }

 private:
  Fault fault_;
};

class Stream : public torch::data::datasets::StatefulDataset<Stream, torch::data::Example<>> {
 public:
  Stream(Fault read, Fault reset) : read_(read), reset_(reset) {}
  std::optional<torch::data::Example<>> get_batch(size_t size) override {
    if (++batch_ == 3) read_.strike();
    if (batch_ > 8) return std::nullopt;
    const auto rows = static_cast<int64_t>(size);
    return torch::data::Example<>(torch::ones({rows, 4}), torch::ones({rows, 1}));
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override {
    reset_.strike();
    batch_ = 0;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  Fault read_, reset_;
  int batch_ = 0;
};

void run(const std::string& what, int64_t victim) {
  accelerate::Options options;
  if (what == "alike") options.dataloader.dispatch_batches = false;
  accelerate::Accelerator accelerator(options);
  const Fault fault{accelerator.process_index() == victim};
  torch::nn::Linear model(4, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  accelerator.prepare(model, optimizer);
  if (what == "checkpoint") {
    const std::string folder =
        accelerator.broadcast(std::string(std::getenv("TMPDIR")) + "/" + std::to_string(getpid()));
    accelerator.save_state(folder + "/here/c");
    // Where a rank stands in another folder, as on another host, it finds another checkpoint.
    accelerator.once([&] {
      const std::string copy = "cd " + folder + " && cp -r here there && rm there/c/model.safetensors";
      TORCH_CHECK(std::system(copy.c_str()) == 0, copy);
    });
    TORCH_CHECK(chdir((folder + (fault.here ? "/there" : "/here")).c_str()) == 0);
    accelerator.load_state("c");
    return;
  }
  const auto train = [&](auto& loader) {
    int64_t step = 0;
    for (auto& batch : *loader) {
      if (what == "user" && ++step == 3) fault.strike();
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model(batch.data), batch.target));
      optimizer.step();
    }
  };
  const auto stack = torch::data::transforms::Stack<>();
  const torch::data::DataLoaderOptions batches =
      torch::data::DataLoaderOptions(6).workers(what.find("worker") != std::string::npos ? 2 : 0);
  using Order = torch::data::samplers::SequentialSampler;
  if (what == "alike" || what == "reset") {
    auto loader = accelerate::make_data_loader(
        Stream(what == "alike" ? fault : Fault{}, what == "reset" ? fault : Fault{}), batches);
    accelerator.prepare(loader);
    train(loader);
  } else if (what == "transform") {
    auto fragile =
        torch::data::transforms::Lambda<torch::data::Example<>>([fault, rows = 0](torch::data::Example<> row) mutable {
          if (++rows == 7) fault.strike();
          return row;
        });
    auto loader = accelerate::make_data_loader<Order>(Rows(Fault{}).map(fragile).map(stack), batches);
    accelerator.prepare(loader);
    train(loader);
  } else if (what == "evaluation") {
    auto loader = accelerate::make_evaluation_data_loader<Order>(Rows(fault).map(stack), batches);
    accelerator.prepare(loader);
    double sum = 0;
    for (auto& batch : *loader) sum += model(batch.data).sum().item<double>();
    accelerator.reduce(sum);
  } else if (what.rfind("in_place", 0) == 0) {
    auto loader = torch::data::make_data_loader<Order>(Rows(fault).map(stack), batches);
    accelerator.prepare(loader);
    train(loader);
  } else {
    auto loader = accelerate::make_data_loader<Order>(Rows(what == "user" ? Fault{} : fault).map(stack), batches);
    accelerator.prepare(loader);
    train(loader);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argv[1];
  const int64_t victim = std::stoll(argv[2]);
  if (argc > 3) {
    run(what, victim);
    return 0;
  }
  std::printf("caught: %s\n", toys::error_of([&] { run(what, victim); }).c_str());
  std::printf("then: %s\n", toys::error_of([] { accelerate::Accelerator().reduce(1); }).c_str());
  return 7;
}
