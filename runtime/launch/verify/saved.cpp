#include "saved.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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
    if (count == 0) return {"saved", Outcome::kSame, "no tensor is"};
    const std::string tensors = fmt::format("{} tensor{}", count, count == 1 ? "" : "s");
    return {
        "saved", Outcome::kSame,
        exact_ ? tensors + ", the same bits" : fmt::format("{}, relative differences up to {:.1e}", tensors, worst_)};
  }

 private:
  /// Errors come from the largest numbers, which tensors that are saved together have in common.
  void MeasureArchives() {
    std::size_t begin = 0;
    while (begin < original_.saved.size()) {
      std::size_t end = begin;
      double squares = 0;
      for (;
           end < original_.saved.size() && original_.saved[end].archive_number == original_.saved[begin].archive_number;
           ++end) {
        const SavedTensor& saved = original_.saved[end];
        if (!saved.position && IsFloating(saved) && std::isfinite(saved.print.norm)) {
          squares += saved.print.norm * saved.print.norm;
        }
      }
      archive_scales_.resize(end, std::sqrt(squares));
      begin = end;
    }
  }

  std::optional<Difference> CompareOne(std::size_t i) {
    const SavedTensor& a = original_.saved[i];
    const SavedTensor& b = migrated_.saved[i];
    if (a.key != b.key || a.shape != b.shape || a.dtype != b.dtype) {
      return Make(i, fmt::format("{} [{}] {} is saved where the original saves {} [{}] {}", b.key,
                                 fmt::join(b.shape, ", "), b.dtype, a.key, fmt::join(a.shape, ", "), a.dtype));
    }
    if (a.print.hash == b.print.hash) return std::nullopt;
    const bool noise = a.position && *a.position < scale_.noise.size() && scale_.noise[*a.position];
    if (!exact_ && noise) return std::nullopt;
    const double tolerance = exact_ || !IsFloating(a) ? 0 : tolerance_.At(a.dtype, a.steps);
    const double relative = Relative(Distance(a.print, b.print), Scale(i));
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

  double Scale(std::size_t i) const {
    const SavedTensor& saved = original_.saved[i];
    if (!saved.position) return archive_scales_[i];
    return original_.tensors[*saved.position].kind == "buffer" ? saved.print.norm : scale_.values;
  }

  Difference OtherCount(std::size_t count) const {
    const auto& longer = original_.saved.size() > count ? original_ : migrated_;
    const SavedTensor& saved = longer.saved[count];
    Difference difference;
    difference.where = Where(saved);
    difference.step = saved.steps;
    difference.tensor = Name(saved);
    difference.what = fmt::format("{} tensors are saved on the main process, the original saves {}",
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
    return fmt::format("{} [{}]", saved.key, fmt::join(saved.shape, ", "));
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
  std::vector<double> archive_scales_;  // of each saved tensor
  double worst_ = 0;
};

}  // namespace

Check CompareSaved(const Recording& original, const Recording& migrated, int ranks, const TrainingScale& scale,
                   const Tolerance& tolerance, std::optional<Difference>& first) {
  return SavedComparison(original, migrated, ranks <= 1, scale, tolerance).Compare(first);
}

}  // namespace accelerate::launch
