#pragma once

/// The trackers that write files. Every log() is in the file when it returns.

#include <accelerate/tracking.h>

#include <memory>
#include <string>

namespace accelerate::detail {

/// metrics.csv: a column `step`, and one for each name. Files that are there are continued.
std::shared_ptr<Tracker> make_csv_tracker(const std::string& folder);
/// metrics.jsonl: an object a line. A file that is there is continued.
std::shared_ptr<Tracker> make_jsonl_tracker(const std::string& folder);
/// events.out.tfevents.*: scalars as TensorBoard reads them, and hparams.yml with the configuration.
std::shared_ptr<Tracker> make_tensorboard_tracker(const std::string& folder);

/// The step that log() takes next by itself, in this run of the trackers, or in that which init_trackers() begins.
void set_log_step(int64_t step);

}  // namespace accelerate::detail
