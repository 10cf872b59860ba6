// Reads a model of the library and scores it on new points; it trains nothing.
#include <cstdio>

#include "curves/training.h"

int main(int argc, char** argv) {
  curves::Model model(12);
  torch::load(model, argc > 1 ? argv[1] : "curve.pt");
  std::printf("error %.9f\n", curves::evaluate(model, curves::sample(200, 4)));
}
