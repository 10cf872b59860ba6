#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Where to find the MNIST dataset.
const char* kDataRoot = "./data";

// The batch size for training.
const int64_t kTrainBatchSize = 64;

// The batch size for testing.
const int64_t kTestBatchSize = 1000;

// After how many batches to log a new update with the loss value.
const size_t kLogInterval = 10;

struct Options {
  std::string data_root = kDataRoot;
  size_t epochs = 3;
  // How many batches of an epoch to train on, 0 for all.
  size_t max_batches = 0;
};

// LeNet-5, nearly: tanh and average pooling.
struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 6, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(6, 16, /*kernel_size=*/5)),
        fc1(16 * 4 * 4, 84),
        fc2(84, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::tanh(torch::avg_pool2d(conv1->forward(x), 2));
    x = torch::tanh(torch::avg_pool2d(conv2->forward(x), 2));
    x = x.view({-1, 16 * 4 * 4});
    x = torch::tanh(fc1->forward(x));
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(size_t epoch, size_t max_batches, Net& model, torch::Device device,
           DataLoader& data_loader, torch::optim::Optimizer& optimizer,
           size_t dataset_size) {
  model.train();
  size_t batch_idx = 0;
  for (auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();

    if (++batch_idx % kLogInterval == 0) {
      std::printf("\rTrain Epoch: %ld [%5ld/%5ld] Loss: %.6f", epoch,
                  batch_idx * batch.data.size(0), dataset_size,
                  loss.template item<float>());
    }
    if (batch_idx == max_batches) break;
  }
}

template <typename DataLoader>
void test(Net& model, torch::Device device, DataLoader& data_loader,
          size_t dataset_size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double test_loss = 0;
  int64_t correct = 0;
  for (const auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    test_loss +=
        torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum)
            .template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }

  test_loss /= dataset_size;
  std::printf("\nTest set: Average loss: %.6f | Accuracy: %.4f\n", test_loss,
              static_cast<double>(correct) / dataset_size);
}

Options parse_options(int argc, char* argv[]) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--epochs") == 0 && i + 1 < argc) {
      options.epochs = std::strtoul(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--max-batches") == 0 && i + 1 < argc) {
      options.max_batches = std::strtoul(argv[++i], nullptr, 10);
    } else if (argv[i][0] != '-') {
      options.data_root = argv[i];
    } else {
      std::fprintf(stderr,
                   "usage: %s [data folder] [--epochs N] [--max-batches N]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  return options;
}

int main(int argc, char* argv[]) {
  const Options options = parse_options(argc, argv);

  torch::manual_seed(1);

  torch::DeviceType device_type;
  if (torch::cuda::is_available()) {
    std::printf("CUDA available! Training on GPU.\n");
    device_type = torch::kCUDA;
  } else {
    std::printf("Training on CPU.\n");
    device_type = torch::kCPU;
  }
  torch::Device device(device_type);

  Net model;
  model.to(device);

  auto train_dataset =
      torch::data::datasets::MNIST(options.data_root)
          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
          .map(torch::data::transforms::Stack<>());
  const size_t train_dataset_size = train_dataset.size().value();
  auto train_loader =
      torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
          std::move(train_dataset), kTrainBatchSize);

  auto test_dataset =
      torch::data::datasets::MNIST(options.data_root,
                                   torch::data::datasets::MNIST::Mode::kTest)
          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
          .map(torch::data::transforms::Stack<>());
  const size_t test_dataset_size = test_dataset.size().value();
  auto test_loader =
      torch::data::make_data_loader(std::move(test_dataset), kTestBatchSize);

  torch::optim::SGD optimizer(model.parameters(),
                              torch::optim::SGDOptions(0.02).momentum(0.9));

  for (size_t epoch = 1; epoch <= options.epochs; ++epoch) {
    train(epoch, options.max_batches, model, device, *train_loader, optimizer,
          train_dataset_size);
    test(model, device, *test_loader, test_dataset_size);
  }

  torch::serialize::OutputArchive archive;
  model.save(archive);
  archive.save_to("mnist.pt");
}
