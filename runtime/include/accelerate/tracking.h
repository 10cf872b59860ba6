#pragma once

/// Trackers: where Accelerator::log() sends the numbers of a training.

#include <accelerate/export.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace accelerate {

/// A project's settings, e.g. {{"batch_size", 64}, {"learning_rate", 0.1}, {"optimizer", "adam"}}.
using TrackerConfig = std::map<std::string, std::variant<bool, int64_t, double, std::string>>;

/// Where numbers are logged to. Derive from it for a service of one's own (Accelerate: GeneralTracker); its members are
/// called on the main process only.
class ACCELERATE_API Tracker {
 public:
  virtual ~Tracker();
  /// By which get_tracker() finds it.
  virtual std::string name() const = 0;
  virtual void store_init_configuration(const TrackerConfig& config) = 0;
  virtual void log(const std::map<std::string, double>& values, int64_t step) = 0;
  virtual void finish() {}
};

namespace detail {

ACCELERATE_API void init_trackers(const std::string& project_name, const TrackerConfig& config,
                                  const std::vector<std::shared_ptr<Tracker>>& own);
ACCELERATE_API void log(const std::map<std::string, double>& values, int64_t step);
ACCELERATE_API int64_t next_log_step();
ACCELERATE_API Tracker& get_tracker(const std::string& name);
ACCELERATE_API void end_training();

}  // namespace detail
}  // namespace accelerate
