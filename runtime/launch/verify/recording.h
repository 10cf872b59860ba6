#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace accelerate::launch {

/// What the recorder kept of a tensor's values; runtime/recorder/fingerprint.h tells what `sketch` is.
struct Print {
  std::string hash;
  double norm = 0;
  std::array<double, 8> sketch{};
};
using Prints = std::map<std::size_t, Print>;  // by the tensor's position in Recording::tensors

/// An estimate of the distance between two tensors of one shape; 0 for equal bits.
double Distance(const Print& a, const Print& b);

/// A difference as a part of `scale`; infinite where that can't be said.
double Relative(double difference, double scale);

struct RecordedTensor {
  std::string kind;  // parameter, buffer, leaf
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;

  /// "fc1.weight [84, 256]"; without a name "parameter 5 [84, 256]".
  std::string Describe(std::size_t position) const;
};

/// A backward pass or an optimizer's step.
struct RecordedEvent {
  bool is_step = false;
  double loss = 0;
  std::string dtype;
  std::optional<double> weight;  // of this rank's loss in the global one; none where LibTorch's backward() was called
  std::optional<int64_t> rows;   // this rank's, of global_rows
  std::optional<int64_t> global_rows;
  std::string optimizer;
  Prints gradients;  // all that there are: behind a backward pass, before a step of those that it reads
  Prints values;     // those that have changed: before a backward pass, behind a step
};

/// A tensor or number that was written to an archive of LibTorch.
struct SavedTensor {
  std::string key;
  std::string archive;  // its file's name; empty if it has none
  std::size_t archive_number = 0;
  std::optional<std::size_t> position;  // in Recording::tensors, if it belongs to the training
  std::optional<std::size_t> state_of;  // of this parameter an optimizer's state
  std::string dtype;
  std::vector<int64_t> shape;
  Print print;
  std::size_t steps = 0;  // before it
};

/// What one process trained.
struct Recording {
  int rank = 0;
  int world = 1;
  std::vector<RecordedTensor> tensors;
  std::vector<RecordedEvent> events;
  std::vector<SavedTensor> saved;
  std::vector<std::string> files;  // of the working folder that it opened to write
  bool cut_off = false;            // the last line isn't whole: the process was ended while it wrote

  std::size_t CountSteps() const;
  std::size_t CountBackwards() const { return events.size() - CountSteps(); }
};

/// Throws std::runtime_error with the file and line that it can't understand. None if there is no such file.
std::optional<Recording> ReadRecording(const std::string& path);

}  // namespace accelerate::launch
