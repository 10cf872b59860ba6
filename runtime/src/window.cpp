#include "window.h"

namespace accelerate::detail {

void Window::Weighing::add(double weight) {
  if (first == 0) {
    first = weight == 0 ? 1 : weight;
  }
  current = weight;
  total += weight;
}

void Window::enter(int64_t steps, int64_t rows, bool last) {
  if (sync_) {
    ++number_;
    batches_ = 0;
    weighings_.clear();
  }
  inside_ = true;
  weighted_ = 0;
  weighings_[kRows].add(static_cast<double>(rows));
  sync_ = ++batches_ >= steps || last;
}

int Window::add_weight(double weight) {
  const int normaliser = kWeights + weighted_++;
  weighings_[normaliser].add(weight);
  return normaliser;
}

double Window::part(int normaliser) const {
  return normaliser == kNothing ? 1 : weighing(normaliser).current / weighing(normaliser).first;
}

double Window::final_factor(int normaliser) const {
  if (normaliser == kNothing) {
    return 1;
  }
  const Weighing& w = weighing(normaliser);
  return w.total == 0 ? 0 : w.first / w.total;
}

double Window::last_part(int normaliser) const {
  if (normaliser == kNothing) {
    return 1;
  }
  const Weighing& w = weighing(normaliser);
  return w.total == 0 ? 0 : w.current / w.total;
}

}  // namespace accelerate::detail
