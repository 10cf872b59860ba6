#pragma once

/// Where a training loop stands in a window of gradient accumulation, and how much each batch in it weighs.

#include <cstdint>
#include <unordered_map>

namespace accelerate::detail {

/// What a loss is divided by over a window.
enum Normaliser : int {
  kRows = 0,     // a mean over rows: the window's rows
  kNothing = 1,  // a sum
  kWeights = 2,  // kWeights + k: the weights of the k-th weighted loss of each batch
};

class Window {
 public:
  /// Begins with the next batch; `rows` are those of all ranks, and 1 where they aren't known. `last`: no other comes
  /// before the end of the loader.
  void enter(int64_t steps, int64_t rows, bool last);
  void leave() { inside_ = false; }
  /// The next batch begins another window, whatever this one lacks.
  void abandon() { sync_ = true; }

  bool inside() const { return inside_; }
  /// Whether the window ends with the batch in hand. True outside of any.
  bool sync() const { return sync_; }
  /// Counts windows; 0 before the first.
  int64_t number() const { return number_; }

  /// Takes a loss of weight `weight` over all ranks into account; returns its normaliser.
  int add_weight(double weight);

  /// What a gradient of this batch is multiplied with as long as the window's total isn't known.
  double part(int normaliser) const;
  /// What the sum of such gradients is multiplied with at the end.
  double final_factor(int normaliser) const;
  /// What a gradient of the window's last batch is multiplied with: both together.
  double last_part(int normaliser) const;

 private:
  /// Batches are weighed against the window's first, so that equal ones need no multiplication.
  struct Weighing {
    double first = 0, current = 0, total = 0;
    void add(double weight);
  };
  const Weighing& weighing(int normaliser) const { return weighings_.at(normaliser); }

  bool inside_ = false, sync_ = true;
  int64_t number_ = 0, batches_ = 0;
  int weighted_ = 0;  // losses of this batch
  std::unordered_map<int, Weighing> weighings_;
};

}  // namespace accelerate::detail
