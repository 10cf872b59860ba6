/// A small training that something happens to: faulty_training FOLDER [WHERE WHAT RANK]. Run by faults.py and
/// hosts_test.py.
///   WHERE  start, forward, backward, metric, save, end (before the last collective), exit (behind it)
///   WHAT   kill (SIGKILL), stop (SIGSTOP), throw, exit (with 0), mismatch (a tensor of another shape)
/// Saves a checkpoint every three steps, goes on from the latest one, and leaves its weights in FOLDER/final. It
/// happens in the job's first life only; FOLDER/fault is made at that moment. FAULTY_STEPS and FAULTY_PAUSE_MS make it
/// longer.

#include <accelerate/accelerate.h>
#include <signal.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr int64_t kFaultStep = 7, kSaveEvery = 3, kFeatures = 6;

int64_t number(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

class Fault {
 public:
  Fault(int argc, char** argv) : folder_(argv[1]) {
    if (argc == 5 && number("TORCHELASTIC_RESTART_COUNT", 0) == 0 && std::atoll(argv[4]) == number("RANK", 0)) {
      where_ = argv[2];
      what_ = argv[3];
    }
  }

  /// What is to happen here happens; true if that is a mismatch, which is the caller's.
  bool at(const std::string& where) {
    if (where != where_) {
      return false;
    }
    std::ofstream(folder_ + "/fault").flush();
    where_.clear();  // once
    if (what_ == "kill") raise(SIGKILL);
    if (what_ == "stop") raise(SIGSTOP);
    if (what_ == "throw") throw std::runtime_error("the injected fault");
    if (what_ == "exit") std::exit(0);
    return what_ == "mismatch";
  }
  bool is(const std::string& what) const { return what == what_; }

 private:
  std::string folder_, where_, what_;
};

class Waves : public torch::data::Dataset<Waves> {
 public:
  torch::data::Example<> get(size_t index) override {
    const auto x = torch::sin(torch::arange(kFeatures) * 0.7 + static_cast<double>(index) * 0.31);
    return {x, torch::cos(x.sum()).reshape({1})};
  }
  torch::optional<size_t> size() const override { return 22; }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 5) {
    std::fprintf(stderr, "usage: faulty_training FOLDER [WHERE WHAT RANK]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int64_t steps = number("FAULTY_STEPS", 10);
  const std::chrono::milliseconds pause(number("FAULTY_PAUSE_MS", 0));
  Fault fault(argc, argv);
  const bool odd = fault.at("start");

  accelerate::Options options;
  options.project.project_dir = folder;
  options.project.automatic_checkpoint_naming = true;
  options.project.total_limit = 3;
  accelerate::Accelerator accelerator(options);
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(kFeatures, odd ? 9 : 8), torch::nn::Tanh(), torch::nn::Dropout(0.2),
                              torch::nn::Linear(odd ? 9 : 8, 1));
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = accelerate::make_data_loader(Waves().map(torch::data::transforms::Stack<>()), 6);
  accelerator.prepare(model, optimizer, loader);
  int64_t step = 0;
  bool in_save = false;
  accelerator.register_for_checkpointing(step);
  accelerator.register_for_checkpointing(
      [&](torch::serialize::OutputArchive&) {
        if (in_save) fault.at("save");
      },
      [](torch::serialize::InputArchive&) {});
  if (!accelerator.latest_checkpoint().empty()) {
    std::printf("going on from %s\n", accelerator.load_state().c_str());
  }

  while (step < steps) {
    for (auto& batch : *loader) {
      const bool now = step + 1 == kFaultStep;
      optimizer.zero_grad();
      torch::Tensor data = batch.data;
      if (now && fault.at("forward")) {
        data = data.narrow(1, 0, kFeatures - 1);
      }
      const auto output = model->forward(data);
      const auto loss = torch::mse_loss(output, batch.target);
      if (now) {
        output.register_hook(
            [&](const torch::Tensor& gradient) { return fault.at("backward") ? gradient.repeat({1, 2}) : gradient; });
      }
      accelerator.backward(loss);
      optimizer.step();
      const bool uneven = now && fault.at("metric");
      const auto metric = accelerator.reduce(torch::full({uneven ? 3 : 2}, loss.item<double>()));
      ++step;
      if (step % kSaveEvery == 0) {
        in_save = step == 2 * kSaveEvery;
        // On the main process in the middle of writing; else when the others are in it.
        if (in_save && (!accelerator.is_main_process() || fault.is("mismatch")) && fault.at("save")) {
          model->parameters()[0].set_data(torch::zeros({3, kFeatures}));
        }
        accelerator.save_state();
      }
      std::printf("step %lld: %.9g\n", static_cast<long long>(step), metric[0].item<double>());
      std::this_thread::sleep_for(pause);
      if (step == steps) {
        break;
      }
    }
  }
  const bool uneven = fault.at("end");
  accelerator.reduce(torch::ones({uneven ? 3 : 2}));
  accelerator.save_model(model, folder + "/final");
  fault.at("exit");
  return 0;
}
