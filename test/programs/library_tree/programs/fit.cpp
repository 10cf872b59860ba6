// Trains the library's model and writes it.
#include <cstdio>

#include "curves/training.h"

int main() {
  auto data = curves::sample(110, 1);
  torch::manual_seed(2);
  curves::Model model(12);
  int epoch = 0;
  for (double loss : curves::train(model, data, curves::Settings())) {
    std::printf("epoch %d: loss %.9f\n", ++epoch, loss);
  }
  std::printf("on other points: %.9f\n", curves::evaluate(model, curves::sample(50, 3)));
  torch::save(model, "curve.pt");
}
