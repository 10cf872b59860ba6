// Saves model, optimizer and counters in one archive, and goes on from it in the next run.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

class Springs : public torch::data::datasets::Dataset<Springs> {
 public:
  explicit Springs(int64_t count) {
    torch::manual_seed(141);
    auto time = torch::rand({count, 1}, torch::kDouble) * 4;
    inputs_ = torch::cat({time, time.pow(2)}, 1);
    targets_ = torch::exp(-0.3 * time) * torch::cos(2 * time);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(2, 14))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(14, 1))};
};
TORCH_MODULE(Net);

void save_all(const std::string& path, const Net& net, const torch::optim::Adam& optimizer,
              int64_t epoch, double best) {
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive weights, moments;
  net->save(weights);
  optimizer.save(moments);
  archive.write("net", weights);
  archive.write("optimizer", moments);
  archive.write("epoch", torch::tensor(epoch), /*is_buffer=*/true);
  archive.write("best", torch::tensor(best, torch::kDouble), /*is_buffer=*/true);
  archive.save_to(path);
}

bool load_all(const std::string& path, Net& net, torch::optim::Adam& optimizer, int64_t& epoch,
              double& best) {
  if (!std::ifstream(path).good()) return false;
  torch::serialize::InputArchive archive, weights, moments;
  archive.load_from(path);
  archive.read("net", weights);
  net->load(weights);
  archive.read("optimizer", moments);
  optimizer.load(moments);
  torch::Tensor number;
  archive.read("epoch", number, /*is_buffer=*/true);
  epoch = number.item<int64_t>();
  archive.read("best", number, /*is_buffer=*/true);
  best = number.item<double>();
  return true;
}

int main() {
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Springs(73).map(torch::data::transforms::Stack<>()), 12);
  torch::manual_seed(142);
  Net net;
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.02));

  int64_t done = 0;
  double best = 1e9;
  if (load_all("archive.pt", net, optimizer, done, best)) {
    std::printf("%d epochs done, best loss %.9f\n", static_cast<int>(done), best);
  }
  for (int64_t epoch = done + 1; epoch <= done + 3; ++epoch) {
    double total = 0;
    int64_t rows = 0;
    for (auto& batch : *loader) {
      auto loss = torch::mse_loss(net(batch.data), batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * batch.data.size(0);
      rows += batch.data.size(0);
    }
    best = std::min(best, total / rows);
    std::printf("epoch %d: loss %.9f\n", static_cast<int>(epoch), total / rows);
    save_all("archive.pt", net, optimizer, epoch, best);
  }
  torch::save(net, "net.pt");
}
