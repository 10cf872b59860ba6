#pragma once

/// What a program's runs leave behind and go on from: weights, checkpoints, logs, traces.

#include <accelerate/checkpoint.h>
#include <accelerate/profile.h>
#include <accelerate/safetensors.h>
#include <accelerate/tracking.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accelerate {

/// These members of an Accelerator, configured by Options::project.
class Project {
 public:
  /// Writes a model's weights (a module, holder or pointer) into a folder that every program can read them from:
  /// model.safetensors, with the names of named_parameters() and named_buffers(). If they are larger than
  /// `max_shard_size` ("10GB", "500MiB"; Accelerate's default), model-00001-of-00003.safetensors and so on with an
  /// index. Tied weights are written once. load_checkpoint_in_model() reads them. (collective)
  template <typename Model>
  void save_model(const Model& model, const std::string& save_directory,
                  const std::string& max_shard_size = "10GB") const {
    detail::save_model(detail::module_of(model), save_directory, max_shard_size);
  }

  /// Writes a checkpoint into a folder, from which load_state() goes on as if nothing had happened: the weights of all
  /// prepared models (safetensors), the optimizers, schedulers and registered objects, where the loaders stand, the
  /// loss scale of mixed precision, every rank's random generators, and the gradients that no_sync() has kept on it.
  /// Returns the folder's name. (collective)
  ///
  /// `output_dir`: by default, with ProjectConfiguration::automatic_checkpoint_naming, the next of
  /// project_dir/checkpoints/checkpoint_0, checkpoint_1, ... An older checkpoint of the same name is replaced. The main
  /// process writes, to a folder that gets its name when all is on the disk: whenever the program ends, what has a name
  /// is whole, and older checkpoints are as they were. If it can't be written, all ranks throw, and nothing is left.
  /// Saving leaves the training as it was, except that from three ranks on the gradients of the step that follows may
  /// be summed up in another order, which is the order of a job that goes on from here.
  ///
  /// What wasn't prepared isn't kept, loaders included. Prepared objects must be there; those that ended are left out,
  /// which is recognised, except for a scheduler that ends before its optimizer and an optimizer of the program's own
  /// class that ends before its parameters do. Loaders must be accelerate::make_data_loader's; one of
  /// torch::data::make_data_loader that prepare() could share out will do between its epochs. Registered objects have
  /// to be equal on all ranks. In the middle of an epoch, save when the step is complete; within a window of
  /// accumulate() that isn't, it throws; and while a LocalSGD lives, where its model isn't averaged(). (Optimizers' own
  /// state, which LocalSGD leaves to each rank, is the main process's.) What isn't part of this is the program's: loop
  /// counters and running sums, generators of its own: register_for_checkpointing().
  std::string save_state(const std::string& output_dir = "") const { return detail::save_state(output_dir); }

  /// Reads a checkpoint into the prepared and registered objects, which must be the same, in the same order, as when it
  /// was saved; by default the latest one of project_dir/checkpoints. Returns the folder's name. (collective)
  ///
  /// If the checkpoint was made in the middle of a loader's epoch, the next loop over that loader hands out the rest of
  /// that epoch. (A training loop that was left by `break` counts as one that goes on, an evaluation loop as
  /// one that has ended. A loader goes on where its sampler's save() tells; a sampler that saves nothing is reset as
  /// often as it was.) On as many ranks as saved, the training
  /// that follows is bit for bit the one that would have followed; with workers that draw random numbers it isn't,
  /// since these aren't in order even without a checkpoint. On another number of ranks it's the same up to the order of
  /// summation; dropout's masks differ there. All ranks must be able to read the folder.
  ///
  /// A loader whose data set has another length now begins its next epoch with all of the new rows; in the middle of an
  /// epoch that can't be, and throws.
  ///
  /// Every file's checksum is compared first. If anything is missing, damaged or doesn't fit, all ranks throw, naming
  /// it, and nothing has changed. Registered objects are asked last: if one refuses what it is given, those that were
  /// registered before it have loaded theirs, and all that was prepared is as it was.
  std::string load_state(const std::string& input_dir = "") const { return detail::load_state(input_dir); }

  /// The folder that load_state() would read: the latest of project_dir/checkpoints; empty if there is none. (Folders
  /// without a manifest are no checkpoints, whatever their names.)
  /// (collective)
  std::string latest_checkpoint() const { return detail::latest_checkpoint(); }

  /// Makes objects part of checkpoints, in the order of registration: anything with save(OutputArchive&) const and
  /// load(InputArchive&), tensors (which are overwritten in place), numbers and strings; or two functions, which save
  /// into a torch::serialize::OutputArchive and load from an InputArchive. They are referred to: they must be there
  /// whenever a checkpoint is saved or loaded.
  template <typename... Objects>
  void register_for_checkpointing(Objects&&... objects) const {
    detail::register_all(std::forward<Objects>(objects)...);
  }

  /// Starts the trackers that ProjectConfiguration::log_with or ACCELERATE_LOG_WITH names, and the program's own, on
  /// the main process. Files go to logging_dir/project_name: metrics.csv, metrics.jsonl, TensorBoard's events. Trackers
  /// that were started before are finished. Throws on all ranks if a name is unknown or a file can't be written.
  /// (collective)
  void init_trackers(const std::string& project_name, const TrackerConfig& config = {},
                     const std::vector<std::shared_ptr<Tracker>>& own = {}) const {
    detail::init_trackers(project_name, config, own);
  }

  /// Gives the values to all trackers, which have them in their files when it returns. `step`: by default one more
  /// than the last, beginning at 0, or where the checkpoint stood that load_state() has read, before init_trackers() or
  /// since. Not collective: what is logged is the main process's, so reduce it first.
  void log(const std::map<std::string, double>& values, std::optional<int64_t> step = std::nullopt) const {
    detail::log(values, step ? *step : detail::next_log_step());
  }

  /// The tracker of that name ("csv", "jsonl", "tensorboard", or an own one's); on other processes, one that ignores
  /// what it is given. Throws on the main process if there is none.
  Tracker& get_tracker(const std::string& name) const { return detail::get_tracker(name); }

  /// Finishes the trackers.
  void end_training() const { detail::end_training(); }

  /// Profiles from here to the end of the returned object, and writes a trace for chrome://tracing or Perfetto, a file
  /// per rank: `auto profile = accelerator.profile({"traces"});`. Not collective.
  [[nodiscard]] Profile profile(const ProfileOptions& options = {}) const { return Profile(options); }
};

}  // namespace accelerate
