#include "explain.h"

#include <fmt/format.h>

#include <cmath>

namespace accelerate::launch {

namespace {

// Directions that two random tensors share by chance, and batches that don't divide evenly, stay below these.
constexpr double kParallel = 0.05;
constexpr double kRatio = 0.02;

struct Products {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  std::size_t dimensions = 0;  // tensors of one element have but one

  void Add(const Print& x, const Print& y) {
    const auto size = x.sketch.size();
    bool spread = false;
    for (std::size_t i = 0; i < size; ++i) {
      xx += x.sketch[i] * x.sketch[i] / static_cast<double>(size);
      xy += x.sketch[i] * y.sketch[i] / static_cast<double>(size);
      yy += y.sketch[i] * y.sketch[i] / static_cast<double>(size);
      spread = spread || std::abs(x.sketch[i]) != std::abs(x.sketch[0]);
    }
    dimensions += spread ? size : 1;
  }

  /// The part of y that isn't along x.
  double residue() const { return std::sqrt(std::max(0.0, yy - xy * xy / xx) / yy); }
};

bool Near(double a, double b) { return std::abs(a - b) <= kRatio * std::abs(b); }

Explanation ExplainFactor(double factor, int ranks, const char* of) {
  const double n = ranks;
  if (ranks > 1 && Near(factor, n)) {
    return {"times-ranks",
            fmt::format("{} is {} times the original's, once for each rank: a mean over rows is added up over ranks "
                        "(Reduction::Sum on a mean), or a part of it that doesn't depend on rows counts on every rank",
                        of, ranks)};
  }
  if (ranks > 1 && Near(factor * n, 1)) {
    return {"divided-by-ranks", fmt::format("{} is 1/{} of the original's: a sum over rows is averaged over ranks; "
                                            "accelerator.backward(loss, Reduction::Sum) is for sums",
                                            of, ranks)};
  }
  return {
      "constant-factor",
      fmt::format("{} is {:.4g} times the original's in all tensors alike: weights of the ranks' or windows' parts, "
                  "a clip, or a loss scale",
                  of, factor)};
}

std::string AfterSteps(std::size_t steps) {
  if (steps == 0) return "";
  return fmt::format(
      "; the {} step{} before agree, so look at what is new here: another epoch's order, a shorter last "
      "batch, a schedule, a branch",
      steps, steps == 1 ? "" : "s");
}

}  // namespace

double CommonFactor(const Prints& original, const Prints& migrated) {
  Products all;
  for (const auto& [position, print] : original) {
    const auto other = migrated.find(position);
    if (other != migrated.end()) all.Add(print, other->second);
  }
  if (!(all.xx > 0) || !(all.yy > 0) || all.residue() > kParallel) return 0;
  return all.xy / all.xx;
}

bool IsPenalty(const Prints& original, const Prints& migrated, const Prints& values) {
  Products all;
  for (const auto& [position, print] : original) {
    const auto other = migrated.find(position);
    const auto value = values.find(position);
    if (other == migrated.end() || value == values.end()) continue;
    Print difference = other->second;
    for (std::size_t i = 0; i < difference.sketch.size(); ++i) difference.sketch[i] -= print.sketch[i];
    all.Add(value->second, difference);
  }
  return all.dimensions >= 4 && all.xx > 0 && all.yy > 0 && all.residue() <= kParallel;
}

Explanation ExplainTraining(const Evidence& evidence) {
  const bool gradients = evidence.original != nullptr && evidence.migrated != nullptr;
  const double factor = gradients ? CommonFactor(*evidence.original, *evidence.migrated) : 0;
  const double n = evidence.ranks;
  if (evidence.ranks > 1 && evidence.plain_backward) {
    return {"plain-backward",
            "loss.backward() is called where accelerator.backward(loss) is needed: these gradients stay on their rank"};
  }
  if (factor != 0 && (Near(factor, n) || Near(factor * n, 1)) && evidence.ranks > 1) {
    return ExplainFactor(factor, evidence.ranks, "the gradient");
  }
  if (evidence.ranks > 1 && gradients && evidence.values != nullptr &&
      IsPenalty(*evidence.original, *evidence.migrated, *evidence.values)) {
    return {
        "penalty",
        "the gradient differs by a multiple of the parameters: a weight penalty counts on every rank; it belongs in "
        "the loss once, so divided by the number of ranks where losses are summed"};
  }
  if (evidence.previous_share > 0.1) {
    return {
        "rounding-grows",
        "the difference has grown from rounding without a jump: training can amplify it (ReLU, max-pooling and argmax "
        "turn over, large learning rates do the rest), and then ranks can't follow the original; compare in double, "
        "with a smaller learning rate, or with a larger --tolerance"};
  }
  if (evidence.loss_agrees) {
    if (factor != 0 && !Near(factor, 1)) {
      Explanation explanation = ExplainFactor(factor, evidence.ranks, "the gradient");
      explanation.text += AfterSteps(evidence.steps_before);
      return explanation;
    }
    return {"gradient-only",
            "the losses agree and the gradients don't: what happens between backward() and step() differs (clipping or "
            "scaling before the ranks' gradients are averaged), or a window's parts have the wrong weights" +
                AfterSteps(evidence.steps_before)};
  }
  if (factor != 0 && !Near(factor, 1) && std::abs(evidence.loss_ratio - factor) <= kParallel * std::abs(factor)) {
    Explanation explanation = ExplainFactor(factor, evidence.ranks, "the loss, and the gradient with it,");
    explanation.text += AfterSteps(evidence.steps_before);
    return explanation;
  }
  if (evidence.loss_ratio != 0 && evidence.ranks > 1 &&
      (Near(evidence.loss_ratio, n) || Near(evidence.loss_ratio * n, 1))) {
    return ExplainFactor(evidence.loss_ratio, evidence.ranks, "the loss");
  }
  if (evidence.ranks > 1 && evidence.buffers_change) {
    return {
        "batch-statistics",
        "the forward pass keeps statistics of its batch in buffers (batch normalisation): each rank normalises by its "
        "own rows, the usual practice, which is not the single process's training"};
  }
  return {
      "other-rows-or-draws",
      "parameters agree and the loss doesn't: the ranks' rows aren't the batch's (a loader that isn't shared, or is "
      "shuffled differently), random draws differ (noise, dropout), or parts of the loss have the wrong weights" +
          AfterSteps(evidence.steps_before)};
}

Explanation ExplainNumber(double ratio, int ranks) {
  const double n = ranks;
  // Rows needn't divide evenly, and ranks needn't count equally much.
  if (ranks > 1 && ratio > 0 && std::abs(ratio * n - 1) < 0.35) {
    return {"metric-partial", fmt::format("about 1/{} of the original's: one rank's part of a sum; "
                                          "accelerator.reduce_() is missing before it is used",
                                          ranks)};
  }
  if (ranks > 1 && Near(ratio, n)) {
    return {"metric-counted-again",
            fmt::format("{} times the original's: what is equal on all ranks was added up over them, or reduced twice",
                        ranks)};
  }
  return {"metric",
          "the training agrees and this doesn't: it is computed from one rank's rows (a mean, a maximum, a "
          "count), or from random draws"};
}

}  // namespace accelerate::launch
