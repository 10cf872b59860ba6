/// A data race of the kind that ThreadSanitizer is run for: race. The copies of a data set that a loader's workers read
/// share a counter without a lock. race_test.sh expects the report, from the build and with the options that the other
/// tests under ThreadSanitizer have, which would find nothing if this weren't found.

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

namespace {

class Counting : public torch::data::Dataset<Counting> {
 public:
  torch::data::Example<> get(size_t index) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the other worker is at work as well
    ++*read_;
    return {torch::full({1}, static_cast<double>(index)), torch::zeros({1})};
  }
  torch::optional<size_t> size() const override { return 64; }

 private:
  std::shared_ptr<int> read_ = std::make_shared<int>(0);
};

}  // namespace

int main() {
  auto loader = accelerate::make_data_loader(Counting().map(torch::data::transforms::Stack<>()),
                                             torch::data::DataLoaderOptions(4).workers(2));
  int64_t rows = 0;
  for (auto& batch : *loader) {
    rows += batch.data.size(0);
  }
  std::printf("%d rows\n", static_cast<int>(rows));
  return 0;
}
