#include "training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "explain.h"

namespace accelerate::launch {

namespace {

double Norm(const Prints& prints) {
  double squares = 0;
  for (const auto& [position, print] : prints) squares += print.norm * print.norm;
  return std::sqrt(squares);
}

void Apply(const Prints& changes, Prints& values) {
  for (const auto& [position, print] : changes) values[position] = print;
}

/// One row of the table, while it is found out.
struct Row {
  const char* name;
  std::string difference{};  // empty: none
  double worst = 0;          // relative
  double worst_part = 0;     // of the tolerance
  double previous = 0;       // the relative difference of the event before
  double current = 0;
};

class Comparison {
 public:
  Comparison(const Recording& original, const std::vector<Recording>& ranks, const Tolerance& tolerance,
             RunReport& report)
      : original_(original), ranks_(ranks), tolerance_(tolerance), report_(report), exact_(report.ranks <= 1) {
    rank_values_.resize(ranks.size());
    signal_.resize(original.tensors.size());
    has_steps_ = original.CountSteps() > 0;
  }

  TrainingScale Run() {
    std::size_t events = original_.events.size();
    for (const Recording& rank : ranks_) events = std::min(events, rank.events.size());
    if (CompareTensors()) {
      for (at_ = 0; at_ < events; ++at_) {
        if (!SameKind()) break;
        original_.events[at_].is_step ? CompareStep() : CompareBackward();
        for (Row* row : {&losses_, &gradients_, &parameters_}) row->previous = row->current;
      }
      if (at_ == events && report_.exit_code == 0 && !report_.timed_out) CompareCounts();
    }
    JudgeTurns();
    CheckSharing();
    AddChecks();
    TrainingScale scale;
    scale.values = value_scale_;
    scale.gradients = gradient_scale_;
    for (std::size_t i = 0; i < signal_.size(); ++i) scale.noise.push_back(IsNoise(i));
    return scale;
  }

 private:
  // --- What is recorded at all

  bool CompareTensors() {
    for (const Recording& rank : ranks_) {
      const auto leaf = [](const RecordedTensor& tensor) { return tensor.kind == "leaf"; };
      const std::size_t count = std::min(original_.tensors.size(), rank.tensors.size());
      for (std::size_t i = 0; i < count; ++i) {
        const RecordedTensor& a = original_.tensors[i];
        const RecordedTensor& b = rank.tensors[i];
        if ((a.kind == b.kind && a.shape == b.shape && a.dtype == b.dtype) || (leaf(a) && leaf(b))) continue;
        return OtherTensors(rank.rank, fmt::format("{} {} is {} here", a.Describe(i), a.dtype, b.Describe(i)));
      }
      if (original_.tensors.size() != rank.tensors.size() && original_.events.size() == rank.events.size()) {
        return OtherTensors(rank.rank, fmt::format("{} parameters and buffers, the original has {}",
                                                   rank.tensors.size(), original_.tensors.size()));
      }
    }
    return true;
  }

  bool OtherTensors(int rank, const std::string& what) {
    Difference difference;
    difference.where = "before the first step";
    difference.rank = rank;
    difference.what = what;
    difference.explanation = {"tensors", "these aren't the same models, or not made in the same order"};
    Add(parameters_, std::move(difference));
    return false;
  }

  bool SameKind() {
    for (const Recording& rank : ranks_) {
      if (rank.events[at_].is_step == original_.events[at_].is_step) continue;
      const auto name = [](bool step) { return step ? "an optimizer's step" : "a backward pass"; };
      return OtherSequence(rank.rank, fmt::format("{} where the original has {}", name(rank.events[at_].is_step),
                                                  name(original_.events[at_].is_step)));
    }
    return true;
  }

  void CompareCounts() {
    for (const Recording& rank : ranks_) {
      if (rank.events.size() == original_.events.size()) continue;
      OtherSequence(rank.rank,
                    fmt::format("{} backward passes and {} steps, the original has {} and {}", rank.CountBackwards(),
                                rank.CountSteps(), original_.CountBackwards(), original_.CountSteps()));
      return;
    }
  }

  bool OtherSequence(int rank, const std::string& what) {
    Difference difference;
    difference.where = Where();
    difference.step = steps_;
    difference.rank = rank;
    difference.what = what;
    difference.explanation = {"sequence",
                              "another number of batches or epochs: a loader that isn't shared by rows of the global "
                              "batch, or a decision (early stop, skipped step) on one rank's numbers"};
    Add(losses_, std::move(difference));
    return false;
  }

  // --- Events

  void CompareBackward() {
    CompareValues(TakeValues());
    CompareLosses();
    CompareRows();
    if (exact_ || !has_steps_) CompareGradients();
    ++backwards_;
  }

  void CompareStep() {
    CompareGradients();
    behind_step_ = true;
    CompareValues(TakeValues());
    behind_step_ = false;
    ++steps_;
    loss_agrees_ = true;
  }

  /// Applies the event's changes; returns what changed anywhere.
  Prints TakeValues() {
    Prints changed = original_.events[at_].values;
    Apply(original_.events[at_].values, original_values_);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Prints& values = ranks_[r].events[at_].values;
      Apply(values, rank_values_[r]);
      changed.insert(values.begin(), values.end());
    }
    Prints parameters;
    for (const auto& [position, print] : original_values_) {
      if (!IsBuffer(position)) parameters.insert({position, print});
    }
    value_scale_ = std::max(value_scale_, Norm(parameters));
    return changed;
  }

  void CompareLosses() {
    const RecordedEvent& event = original_.events[at_];
    double loss = 0;
    bool equal_on_ranks = true;
    for (const Recording& rank : ranks_) {
      const RecordedEvent& other = rank.events[at_];
      plain_backward_ = plain_backward_ || !other.weight;
      loss += other.loss * other.weight.value_or(1.0 / static_cast<double>(ranks_.size()));
      equal_on_ranks = equal_on_ranks && other.loss == ranks_[0].events[at_].loss;
      // A rank that has all rows knows no batch in hand, or believes that it is its share.
      equal_on_ranks = equal_on_ranks && (!other.global_rows || other.rows == other.global_rows);
    }
    if (exact_) loss = ranks_[0].events[at_].loss;  // times 1, but not to the last bit of what isn't a number
    all_whole_ = all_whole_ && equal_on_ranks;
    loss_scale_ = std::max(loss_scale_, std::isfinite(event.loss) ? std::abs(event.loss) : 0);
    const bool same = loss == event.loss || (std::isnan(loss) && std::isnan(event.loss));
    const double relative = same ? 0 : Relative(std::abs(loss - event.loss), loss_scale_);
    const double tolerance = exact_ ? 0 : tolerance_.At(event.dtype, steps_);
    report_.losses.push_back(loss);
    report_.differences.push_back(relative);
    report_.tolerances.push_back(tolerance);
    Measure(losses_, relative, tolerance);
    if (relative <= tolerance) return;
    loss_agrees_ = false;
    Difference difference;
    difference.where = Where();
    difference.step = steps_;
    difference.what = fmt::format("the loss is {:.9g}, the original's {:.9g}", loss, event.loss);
    difference.difference = relative;
    difference.tolerance = tolerance;
    Evidence evidence = MakeEvidence(losses_);
    evidence.loss_ratio = loss / event.loss;
    difference.explanation = ExplainTraining(evidence);
    Add(losses_, std::move(difference));
  }

  void CompareRows() {
    long long sum = 0;
    long long global = -1;
    std::vector<long long> each;
    for (const Recording& rank : ranks_) {
      const RecordedEvent& event = rank.events[at_];
      if (!event.global_rows) {
        rows_known_ = false;
        report_.rows.push_back(-1);
        report_.rank_rows.emplace_back();
        return;
      }
      each.push_back(*event.rows);
      sum += *event.rows;
      global = *event.global_rows;
    }
    report_.rows.push_back(global);
    report_.rank_rows.push_back(std::move(each));
    if (sum == global) return;
    Difference difference;
    difference.where = Where();
    difference.step = steps_;
    difference.what = fmt::format("the ranks have {} rows, the global batch {}", sum, global);
    difference.explanation = {"rows", "rows are left out, or counted on several ranks"};
    Add(rows_, std::move(difference));
  }

  void CompareGradients() {
    const RecordedEvent& event = original_.events[at_];
    if (!exact_ && has_steps_) {
      for (std::size_t r = 1; r < ranks_.size(); ++r) {
        if (!SameGradients(ranks_[r])) return;
      }
    }
    const Prints& gradients = ranks_[0].events[at_].gradients;
    const double norm = Norm(event.gradients);
    if (std::isfinite(norm)) gradient_scale_ = std::max(gradient_scale_, norm);
    const double tolerance = exact_ ? 0 : tolerance_.At(event.dtype.empty() ? Dtype() : event.dtype, steps_);
    double largest = 0;
    std::size_t which = 0;
    for (const auto& [position, print] : event.gradients) {
      if (IsInput(position)) continue;
      if (norm > 0) signal_[position] = std::max(signal_[position], print.norm / norm);
      const auto other = gradients.find(position);
      const double relative = other == gradients.end() ? Relative(print.norm, gradient_scale_)
                                                       : Relative(Distance(print, other->second), gradient_scale_);
      const bool bits = exact_ && (other == gradients.end() || other->second.hash != print.hash);
      if (relative > largest || (bits && largest == 0)) {
        largest = std::max(relative, bits ? std::numeric_limits<double>::min() : 0);
        which = position;
      }
    }
    Measure(gradients_, largest, tolerance);
    if (largest <= tolerance) return;
    Difference difference;
    difference.where = Where();
    difference.step = steps_;
    difference.tensor = Describe(which);
    const auto other = gradients.find(which);
    difference.what = fmt::format("the gradient's norm is {}, the original's {:.9g}",
                                  other == gradients.end() ? "undefined" : fmt::format("{:.9g}", other->second.norm),
                                  event.gradients.at(which).norm);
    difference.difference = largest;
    difference.tolerance = tolerance;
    difference.explanation = ExplainTraining(MakeEvidence(gradients_));
    if (!exact_ && largest <= kTurn && loss_agrees_) {
      ++turns_;
      if (!first_turn_) first_turn_ = std::move(difference);
      return;
    }
    Add(gradients_, std::move(difference));
  }

  /// Single gradients may differ by what one row adds to them: a ReLU or max-pooling that turned over by rounding. They
  /// are that if they stay few and nothing comes of them, in losses or parameters.
  void JudgeTurns() {
    if (!first_turn_) return;
    const bool follows = !losses_.difference.empty() || !parameters_.difference.empty();
    if (!follows && turns_ * 5 <= std::max<std::size_t>(steps_, 5) && gradients_.difference.empty()) return;
    if (report_.first && report_.first->step >= first_turn_->step) report_.first.reset();
    gradients_.difference.clear();
    Add(gradients_, *std::exchange(first_turn_, std::nullopt));
  }

  bool SameGradients(const Recording& rank) {
    const Prints& first = ranks_[0].events[at_].gradients;
    for (const auto& [position, print] : rank.events[at_].gradients) {
      if (IsInput(position)) continue;
      const auto other = first.find(position);
      if (other != first.end() && other->second.hash == print.hash) continue;
      Difference difference;
      difference.where = Where();
      difference.step = steps_;
      difference.rank = rank.rank;
      difference.tensor = Describe(position);
      difference.what = "the gradient isn't rank 0's";
      difference.explanation = {"not-reduced",
                                "this gradient was not averaged over the ranks: its model or optimizer isn't prepared, "
                                "loss.backward() was called instead of accelerator.backward(loss), or the gradient was "
                                "changed on one rank"};
      if (plain_backward_) difference.explanation = ExplainTraining(MakeEvidence(gradients_));
      Add(agreement_, std::move(difference));
      return false;
    }
    return true;
  }

  void CompareValues(const Prints& changed) {
    double largest = 0;
    for (const auto& [position, unused] : changed) {
      const auto original = original_values_.find(position);
      if (original == original_values_.end() || IsInput(position)) continue;
      const bool buffer = IsBuffer(position);
      // Buffers are the rank's own until backward() has made them rank 0's.
      if (buffer && !behind_step_ && !exact_) continue;
      if (!exact_ && !SameValues(position)) continue;
      const auto migrated = rank_values_[0].find(position);
      if (migrated == rank_values_[0].end() || migrated->second.hash == original->second.hash) continue;
      if (!exact_ && IsNoise(position)) continue;
      const double scale = buffer ? original->second.norm : value_scale_;
      double relative = Relative(Distance(original->second, migrated->second), scale);
      if (exact_ && relative == 0) relative = std::numeric_limits<double>::min();
      largest = std::max(largest, buffer ? 0 : relative);
      const double tolerance =
          exact_ ? 0 : tolerance_.At(original_.tensors[position].dtype, steps_ + (behind_step_ ? 1 : 0));
      Measure(parameters_, relative, tolerance);
      if (relative > tolerance) OtherValues(position, buffer, relative, tolerance);
    }
    parameters_.current = largest;
  }

  void OtherValues(std::size_t position, bool buffer, double relative, double tolerance) {
    Difference difference;
    difference.where = Where();
    difference.step = steps_;
    difference.tensor = Describe(position);
    difference.what = fmt::format("its norm is {:.9g}, the original's {:.9g}", rank_values_[0].at(position).norm,
                                  original_values_.at(position).norm);
    difference.difference = relative;
    difference.tolerance = tolerance;
    if (backwards_ == 0) {
      difference.explanation = {"initial-values",
                                "it differs before any training: generators are seeded elsewhere or asked more often "
                                "before the model is made, or not seeded at all"};
    } else if (buffer) {
      difference.explanation = {"batch-statistics",
                                "a buffer that the forward pass writes: it holds statistics of one rank's rows"};
    } else if (parameters_.previous > 0.1 * relative) {
      difference.explanation = ExplainTraining(MakeEvidence(parameters_));
    } else {
      difference.explanation = {
          "update",
          "the gradients agree and the step's result doesn't: another learning rate, schedule, or "
          "state of the optimizer"};
    }
    Add(parameters_, std::move(difference));
  }

  bool SameValues(std::size_t position) {
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      const auto first = rank_values_[0].find(position);
      const auto other = rank_values_[r].find(position);
      if (first == rank_values_[0].end() || other == rank_values_[r].end()) continue;
      if (first->second.hash == other->second.hash) continue;
      Difference difference;
      difference.where = Where();
      difference.step = steps_;
      difference.rank = ranks_[r].rank;
      difference.tensor = Describe(position);
      difference.what = "it isn't rank 0's";
      if (IsBuffer(position)) {
        difference.explanation = {"buffers-not-synchronised",
                                  "a buffer holds statistics of each rank's own rows, so that ranks evaluate and save "
                                  "different models: its model isn't prepared"};
      } else if (backwards_ == 0) {
        difference.explanation = {"ranks-start-apart",
                                  "ranks begin with different parameters: the model isn't prepared, and its "
                                  "initialisation isn't seeded alike"};
      } else {
        difference.explanation = {"ranks-drift",
                                  "ranks no longer have the same parameters: gradients that aren't averaged, or an "
                                  "update from one rank's numbers"};
      }
      Add(agreement_, std::move(difference));
      return false;
    }
    return true;
  }

  // --- At the end

  /// Every rank computes the same from the same rows: right, and of no use.
  void CheckSharing() {
    if (exact_ || ranks_.size() < 2 || backwards_ == 0 || !all_whole_) return;
    Difference difference;
    difference.where = "in every step";
    difference.what = "all ranks have the same loss, of all the rows";
    difference.explanation = {"not-sharded",
                              "every rank trains on the whole batch: the loader isn't shared out "
                              "(accelerate::make_data_loader, accelerator.prepare(), accelerator.shard())"};
    Add(rows_, std::move(difference));
  }

  void AddChecks() {
    AddCheck(losses_, fmt::format("{} backward passes", backwards_));
    AddCheck(gradients_,
             fmt::format("{} steps", steps_) +
                 (first_turn_ ? fmt::format(" ({} with a unit that turned over by rounding)", turns_) : ""));
    std::size_t noise = 0;
    for (std::size_t i = 0; i < signal_.size(); ++i) noise += !exact_ && IsNoise(i) ? 1 : 0;
    AddCheck(parameters_,
             fmt::format("{} tensors", original_.tensors.size()) +
                 (noise > 0 ? fmt::format(" ({} not compared: their gradients are rounding)", noise) : ""));
    if (exact_) return;
    AddCheck(agreement_, "gradients, parameters and buffers are the same bits on all ranks");
    if (rows_.difference.empty() && (!rows_known_ || backwards_ == 0)) {
      report_.checks.push_back(
          {"rows", Outcome::kUnknown, "the batches come from no loader of the library, so that nobody counts them"});
      return;
    }
    long long total = 0;
    for (const long long rows : report_.rows) total += rows;
    AddCheck(rows_, fmt::format("{} in all, each on one rank", total));
  }

  void AddCheck(const Row& row, const std::string& detail) {
    if (!row.difference.empty()) {
      report_.checks.push_back({row.name, Outcome::kDiffers, row.difference});
    } else if (exact_) {
      report_.checks.push_back({row.name, Outcome::kSame, detail + ", the same bits"});
    } else if (&row == &agreement_ || &row == &rows_) {
      report_.checks.push_back({row.name, Outcome::kSame, detail});
    } else {
      report_.checks.push_back({row.name, Outcome::kSame,
                                fmt::format("{}, relative differences up to {:.1e}, {:.2g} of the tolerance", detail,
                                            row.worst, row.worst_part)});
    }
  }

  // --- Helpers

  bool IsBuffer(std::size_t position) const { return original_.tensors[position].kind == "buffer"; }

  /// A leaf of which each rank has rows of its own: points at which a program takes derivatives, no parameter.
  bool IsInput(std::size_t position) const {
    const std::vector<int64_t>& whole = original_.tensors[position].shape;
    int64_t rows = 0;
    for (const Recording& rank : ranks_) {
      if (position >= rank.tensors.size() || rank.tensors[position].kind != "leaf") return false;
      const std::vector<int64_t>& shape = rank.tensors[position].shape;
      if (shape.empty() || shape.size() != whole.size() ||
          !std::equal(shape.begin() + 1, shape.end(), whole.begin() + 1)) {
        return false;
      }
      rows += shape[0];
    }
    return ranks_.size() > 1 && original_.tensors[position].kind == "leaf" &&
           rows == std::max<int64_t>(whole[0], static_cast<int64_t>(ranks_.size()));
  }

  /// Its gradient never was more than rounding (a bias before a batch normalisation, say), which optimizers with a
  /// scale of their own turn into steps of full length in any direction.
  bool IsNoise(std::size_t position) const {
    return signal_[position] > 0 && signal_[position] < tolerance_.At(original_.tensors[position].dtype, 0);
  }

  std::string Dtype() const { return original_.tensors.empty() ? "Float" : original_.tensors.front().dtype; }

  std::string Describe(std::size_t position) const {
    const RecordedTensor& ours = original_.tensors[position];
    RecordedTensor named = ours;
    if (position < ranks_[0].tensors.size()) named.name = ranks_[0].tensors[position].name;
    return named.Describe(position);
  }

  std::string Where() const {
    const bool step = at_ < original_.events.size() && original_.events[at_].is_step;
    return step ? fmt::format("{} step {} ({})", behind_step_ ? "behind" : "before", steps_,
                              original_.events[at_].optimizer)
                : fmt::format("backward pass {} (after {} steps)", backwards_, steps_);
  }

  Evidence MakeEvidence(const Row& row) {
    Evidence evidence;
    evidence.ranks = static_cast<int>(ranks_.size());
    evidence.steps_before = steps_;
    evidence.loss_agrees = &row != &losses_ && loss_agrees_;
    evidence.plain_backward = plain_backward_;
    evidence.previous_share = row.current > 0 ? row.previous / row.current : 0;
    evidence.original = &original_.events[at_].gradients;
    evidence.migrated = &ranks_[0].events[at_].gradients;
    evidence.values = &original_values_;
    for (std::size_t i = 1; i < original_.events.size() && !evidence.buffers_change; ++i) {
      const RecordedEvent& event = original_.events[i];
      evidence.buffers_change = !event.is_step && std::any_of(event.values.begin(), event.values.end(),
                                                              [&](const auto& v) { return IsBuffer(v.first); });
    }
    return evidence;
  }

  static void Measure(Row& row, double relative, double tolerance) {
    row.current = relative;
    row.worst = std::max(row.worst, relative);
    if (tolerance > 0) row.worst_part = std::max(row.worst_part, relative / tolerance);
  }

  void Add(Row& row, Difference difference) {
    difference.check = row.name;
    if (row.difference.empty()) {
      row.difference = fmt::format("{}: {}{}", difference.where,
                                   difference.tensor.empty() ? "" : difference.tensor + ": ", difference.what);
    }
    if (!report_.first) report_.first = std::move(difference);
  }

  const Recording& original_;
  const std::vector<Recording>& ranks_;
  const Tolerance& tolerance_;
  RunReport& report_;
  const bool exact_;
  bool has_steps_ = false;

  Row losses_{"losses"};
  Row gradients_{"gradients"};
  Row parameters_{"parameters"};
  Row agreement_{"agreement"};
  Row rows_{"rows"};

  // Gradients beyond the tolerance that may be rounding.
  static constexpr double kTurn = 2e-3;
  std::size_t turns_ = 0;
  std::optional<Difference> first_turn_;

  std::size_t at_ = 0;  // the event
  std::size_t steps_ = 0;
  std::size_t backwards_ = 0;
  bool behind_step_ = false;
  Prints original_values_;
  std::vector<Prints> rank_values_;
  // The largest so far: rounding errors come from the largest numbers and stay when those have become small.
  double loss_scale_ = 0;
  double gradient_scale_ = 0;
  double value_scale_ = 0;
  std::vector<double> signal_;  // the largest part of the whole gradient that a tensor's gradient had
  bool loss_agrees_ = true;     // since the last step
  bool plain_backward_ = false;
  bool all_whole_ = true;
  bool rows_known_ = true;
};

}  // namespace

TrainingScale CompareTraining(const Recording& original, const std::vector<Recording>& ranks,
                              const Tolerance& tolerance, RunReport& report) {
  return Comparison(original, ranks, tolerance, report).Run();
}

}  // namespace accelerate::launch
