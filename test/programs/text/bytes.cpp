// Gemessene Längen, Größe 3×n: Kommentare und Texte sind nicht ASCII, Zeilen enden auf CR LF.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#define CHECK_DEFINED(tensor) TORCH_CHECK((tensor).defined(), #tensor " fehlt")
#define REPORT(format, ...) std::printf("• " format "\n", __VA_ARGS__)
#define ROWS(tensor) ((tensor).size(0))
#define LEARNING_RATE 0.05

// Eine Datei mit Umlauten: ä ö ü ß, “Anführungszeichen”, 数据, λ.
class Längen : public torch::data::datasets::Dataset<Längen> {
 public:
  explicit Längen(int64_t anzahl) {
    torch::manual_seed(171);
    längen_ = torch::rand({anzahl, 3}, torch::kDouble);
    gewichte_ = längen_.prod(1, true) * 2.5;
  }
  torch::data::Example<> get(size_t index) override { return {längen_[index], gewichte_[index]}; }
  torch::optional<size_t> size() const override { return längen_.size(0); }

 private:
  torch::Tensor längen_, gewichte_;
};

int main() {
  auto lader = torch::data::make_data_loader(Längen(58).map(torch::data::transforms::Stack<>()), 10);
  torch::manual_seed(172);
  torch::nn::Sequential netz(torch::nn::Linear(3, 9), torch::nn::Tanh(), torch::nn::Linear(9, 1));
  netz->to(torch::kDouble);
  torch::optim::SGD optimierer(netz->parameters(), torch::optim::SGDOptions(LEARNING_RATE).momentum(0.9));
  for (int runde = 1; runde <= 3; ++runde) {  // „Runde“ heißt Epoche
    double summe = 0; int64_t zeilen = 0;
    for (auto& stapel : *lader) {
      CHECK_DEFINED(stapel.data);
      auto fehler = torch::mse_loss(netz->forward(stapel.data), stapel.target);	// ein Tabulator davor
      optimierer.zero_grad(); fehler.backward(); optimierer.step();
      summe += fehler.item<double>() * ROWS(stapel.data);
      zeilen += ROWS(stapel.data);
    }
    REPORT("Runde %d: loss %.9f", runde, summe / zeilen);
  }
  torch::save(netz, "gewicht.pt");
}
