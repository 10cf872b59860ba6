#include "saved.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace accelerate::launch {

namespace {

constexpr const char* kUsually =
    "the training agrees and what is saved of it doesn't: a tensor that was made of one rank's rows and isn't reduced, "
    "or the state of another step";

/// Numbers with a rounding of their own. Others are counts, which have to be equal.
bool IsFloating(const SavedTensor& saved) {
  return saved.dtype.find("Float") != std::string::npos || saved.dtype.find("Double") != std::string::npos ||
         saved.dtype.find("Half") != std::string::npos;
}

class SavedComparison {
 public:
  SavedComparison(const Recording& original, const Recording& migrated, bool exact, const TrainingScale& scale,
                  const Tolerance& tolerance)
      : original_(original), migrated_(migrated), exact_(exact), scale_(scale), tolerance_(tolerance) {
    MeasureArchives();
  }

  Check Compare(std::optional<Difference>& first) {
    const std::size_t count = std::min(original_.saved.size(), migrated_.saved.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (auto difference = CompareOne(i)) return Differ(std::move(*difference), first);
    }
    if (original_.saved.size() != migrated_.saved.size()) return Differ(OtherCount(count), first);
    if (count == 0) return {"saved", Outcome::kSame, "nothing is"};
    const std::string values =
        fmt::format("{} tensor{} or number{}", count, count == 1 ? "" : "s", count == 1 ? "" : "s");
    return {"saved", Outcome::kSame,
            exact_ ? values + ", the same bits" : fmt::format("{}, relative differences up to {:.1e}", values, worst_)};
  }

 private:
  /// Errors come from the largest numbers, which tensors that are saved together have in common; an optimizer's, those
  /// of one kind. Numbers stand for themselves.
  void MeasureArchives() {
    for (const SavedTensor& saved : original_.saved) {
      if (saved.position || saved.shape.empty() || !IsFloating(saved) || !std::isfinite(saved.print.norm)) continue;
      squares_[Group(saved)] += saved.print.norm * saved.print.norm;
    }
  }

  static std::pair<std::size_t, std::string> Group(const SavedTensor& saved) {
    return {saved.archive_number, saved.state_of ? saved.key : ""};
  }

  std::optional<Difference> CompareOne(std::size_t i) {
    const SavedTensor& a = original_.saved[i];
    const SavedTensor& b = migrated_.saved[i];
    if (a.key != b.key || a.shape != b.shape || a.dtype != b.dtype) {
      return Make(i, fmt::format("{} [{}] {} is saved where the original saves {} [{}] {}", b.key,
                                 fmt::join(b.shape, ", "), b.dtype, a.key, fmt::join(a.shape, ", "), a.dtype));
    }
    if (a.print.hash == b.print.hash) return std::nullopt;
    const std::optional<std::size_t> parameter = a.position ? a.position : a.state_of;
    if (!exact_ && parameter && *parameter < scale_.noise.size() && scale_.noise[*parameter]) return std::nullopt;
    // A double may come from floats.
    const double tolerance = exact_ || !IsFloating(a)
                                 ? 0
                                 : std::max(tolerance_.At(a.dtype, a.steps), tolerance_.At(TrainingType(), a.steps));
    const double relative = Relative(Distance(a.print, b.print), Scale(a));
    worst_ = std::max(worst_, relative);
    if (tolerance > 0 && relative <= tolerance) return std::nullopt;
    std::string what = fmt::format("its norm is {:.9g}, the original's {:.9g}", b.print.norm, a.print.norm);
    if (a.steps != b.steps) {
      what += fmt::format("; it is saved after {} steps, the original's after {}", b.steps, a.steps);
    }
    Difference difference = Make(i, what);
    difference.difference = relative;
    difference.tolerance = tolerance;
    return difference;
  }

  double Scale(const SavedTensor& saved) const {
    if (saved.position) {
      return original_.tensors[*saved.position].kind == "buffer" ? saved.print.norm : scale_.values;
    }
    const auto squares = squares_.find(Group(saved));
    if (saved.shape.empty() || squares == squares_.end()) return saved.print.norm;
    const double group = std::sqrt(squares->second);
    // States are sums of gradients or, as their names say, of squares, and keep the errors of those that were large.
    const bool squared = saved.key.find("sq") != std::string::npos || saved.key == "sum";
    const double gradients = squared ? scale_.gradients * scale_.gradients : scale_.gradients;
    return saved.state_of ? std::max(group, gradients) : group;
  }

  std::string TrainingType() const { return original_.events.empty() ? "Float" : original_.events.front().dtype; }

  Difference OtherCount(std::size_t count) const {
    const auto& longer = original_.saved.size() > count ? original_ : migrated_;
    const SavedTensor& saved = longer.saved[count];
    Difference difference;
    difference.where = Where(saved);
    difference.step = saved.steps;
    difference.tensor = Name(saved);
    difference.what = fmt::format("{} tensors or numbers are saved on the main process, the original saves {}",
                                  migrated_.saved.size(), original_.saved.size());
    return difference;
  }

  Difference Make(std::size_t i, std::string what) const {
    const SavedTensor& saved = original_.saved[i];
    Difference difference;
    difference.where = Where(saved);
    difference.step = saved.steps;
    difference.tensor = Name(saved);
    difference.what = std::move(what);
    return difference;
  }

  static std::string Where(const SavedTensor& saved) {
    return fmt::format("{} (after {} steps)", saved.archive.empty() ? "an archive" : saved.archive, saved.steps);
  }

  /// Prepared models give their parameters better names than a key has.
  std::string Name(const SavedTensor& saved) const {
    if (saved.position && *saved.position < migrated_.tensors.size()) {
      return migrated_.tensors[*saved.position].Describe(*saved.position);
    }
    const std::string name = fmt::format("{} [{}]", saved.key, fmt::join(saved.shape, ", "));
    if (!saved.state_of || *saved.state_of >= migrated_.tensors.size()) return name;
    return fmt::format("{} of {}", name, migrated_.tensors[*saved.state_of].Describe(*saved.state_of));
  }

  static Check Differ(Difference difference, std::optional<Difference>& first) {
    difference.check = "saved";
    difference.explanation = {"saved", kUsually};
    Check check = {"saved", Outcome::kDiffers,
                   fmt::format("{}: {}: {}", difference.where, difference.tensor, difference.what)};
    if (!first) first = std::move(difference);
    return check;
  }

  const Recording& original_;
  const Recording& migrated_;
  const bool exact_;
  const TrainingScale& scale_;
  const Tolerance& tolerance_;
  std::map<std::pair<std::size_t, std::string>, double> squares_;  // of norms, by group
  double worst_ = 0;
};

}  // namespace

bool SavesOptimizer(const Recording& recording, const std::string& archive) {
  return std::any_of(recording.saved.begin(), recording.saved.end(), [&](const SavedTensor& saved) {
    return saved.archive == archive && saved.key == "param_groups/size";  // as LibTorch's optimizers write
  });
}

Check CompareSaved(const Recording& original, const Recording& migrated, int ranks, const TrainingScale& scale,
                   const Tolerance& tolerance, std::optional<Difference>& first) {
  return SavedComparison(original, migrated, ranks <= 1, scale, tolerance).Compare(first);
}

}  // namespace accelerate::launch
