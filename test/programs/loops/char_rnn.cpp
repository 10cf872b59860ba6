// Learns to write a rhyme, letter by letter. The text is cut into streams, and the state of the
// network is carried from one window of time to the next.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <tuple>
#include <vector>

struct WriterImpl : torch::nn::Module {
  WriterImpl(int64_t letters, int64_t hidden) {
    embed = register_module("embed", torch::nn::Embedding(letters, 8));
    rnn = register_module("rnn", torch::nn::GRU(torch::nn::GRUOptions(8, hidden).num_layers(2)));
    output = register_module("output", torch::nn::Linear(hidden, letters));
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& letters,
                                                   const torch::Tensor& state) {
    auto [all, last] = rnn(embed(letters), state);
    return {output(all), last};
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::GRU rnn{nullptr};
  torch::nn::Linear output{nullptr};
};
TORCH_MODULE(Writer);

int main() {
  std::string text;
  for (int verse = 10; verse > 0; --verse) {
    text += std::to_string(verse) +
            " green bottles hanging on the wall, and if one green bottle should fall\n";
  }
  const std::set<char> distinct(text.begin(), text.end());
  const std::string letters(distinct.begin(), distinct.end());
  std::vector<int64_t> numbers;
  for (char letter : text) numbers.push_back(static_cast<int64_t>(letters.find(letter)));

  constexpr int64_t kStreams = 7, kWindow = 12, kHidden = 16;
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  const int64_t length = static_cast<int64_t>(numbers.size()) / kStreams;
  // Time runs along the first dimension, streams along the second.
  auto data = torch::tensor(numbers)
                  .narrow(0, 0, length * kStreams)
                  .view({kStreams, length})
                  .t()
                  .contiguous()
                  .to(device);

  torch::manual_seed(111);
  Writer model(static_cast<int64_t>(letters.size()), kHidden);
  model->to(device, torch::kDouble);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));

  for (int epoch = 1; epoch <= 3; ++epoch) {
    auto state = torch::zeros({2, kStreams, kHidden}, torch::dtype(torch::kDouble).device(device));
    double total = 0;
    int windows = 0;
    for (int64_t t = 0; t + 1 < length; t += kWindow) {
      const int64_t size = std::min(kWindow, length - 1 - t);
      auto input = data.narrow(0, t, size);
      auto target = data.narrow(0, t + 1, size);
      state = state.detach();
      torch::Tensor output;
      std::tie(output, state) = model->forward(input, state);
      auto loss = torch::cross_entropy_loss(output.flatten(0, 1), target.flatten());
      optimizer.zero_grad();
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      total += loss.item<double>();
      ++windows;
    }
    std::printf("epoch %d: loss %.9f\n", epoch, total / windows);
  }
  torch::save(model, "writer.pt");
}
