/// Accelerator::save_state() and load_state().

#include "save_state.h"

#include <accelerate/checkpoint.h>
#include <accelerate/version.h>
#include <c10/util/Type.h>
#include <torch/version.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <typeinfo>
#include <unordered_set>

#include "checkpoint_folder.h"
#include "model_files.h"
#include "outcome.h"
#include "random.h"
#include "same_on_all.h"
#include "schedulers.h"
#include "state.h"
#include "trackers.h"

namespace accelerate::detail {
namespace {

using nlohmann::json;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

std::vector<Checkpointable>& registered() {
  static auto* const objects = new std::vector<Checkpointable>;
  return *objects;
}

/// "optimizer.bin", "optimizer_1.bin", ...: Accelerate's names.
std::string numbered(const std::string& stem, size_t index, const char* ending) {
  return stem + (index == 0 ? "" : "_" + std::to_string(index)) + ending;
}

std::string class_of(const torch::optim::Optimizer& optimizer) { return c10::demangle(typeid(optimizer).name()); }

std::vector<size_t> group_sizes(const torch::optim::Optimizer& optimizer) {
  std::vector<size_t> sizes;
  for (const auto& group : optimizer.param_groups()) {
    sizes.push_back(group.params().size());
  }
  return sizes;
}

/// What a checkpoint is made of, in words, to be compared between ranks.
std::vector<std::string> description(const PreparedObjects& prepared) {
  std::vector<std::string> lines;
  for (const PreparedObjects::Model& model : prepared.models()) {
    lines.push_back("model " + model.name);
    for (const auto& [name, tensor] : model.named()) {
      lines.push_back(describe(name, tensor));
    }
  }
  for (const PreparedObjects::Optimizer& item : prepared.optimizers()) {
    lines.push_back("optimizer " + class_of(*item.optimizer));
  }
  lines.push_back(std::to_string(prepared.schedulers().size()) + " schedulers");
  lines.push_back(std::to_string(prepared.loaders().size()) + " loaders");
  lines.push_back(std::to_string(registered().size()) + " registered objects");
  return lines;
}

/// The living prepared objects, after checks that are the same for saving and loading. (collective)
const PreparedObjects& living(const char* operation) {
  State& s = state();
  s.models.forget_dead();
  s.models.begin_anew();
  s.prepared.forget_dead();
  together(operation, [&] {
    TORCH_CHECK(!s.prepared.has_foreign_loader(), "[accelerate] rank ", rank(), " of ", ranks(), ": ", operation,
                ": the position of a loader of torch::data::make_data_loader that can't be shared out in place isn't "
                "known; make it with accelerate::make_data_loader (same arguments)");
    (void)description(s.prepared);  // throws if a model has changed
  });
  if (!s.alone()) {
    check_same_on_all(*s.group, operation, description(s.prepared));
  }
  return s.prepared;
}

std::string bytes_of(OutputArchive& archive) {
  std::ostringstream bytes;
  archive.save_to(bytes);
  return bytes.str();
}

std::string own_random_streams() {
  OutputArchive archive;
  save_random_streams(archive);
  return bytes_of(archive);
}

/// Calls f(key, tensor) for each tensor of the prepared models; the key is the same on all ranks and in each run.
template <typename F>
void for_each_tensor(const PreparedObjects& prepared, F f) {
  int64_t number = 0;
  for (const PreparedObjects::Model& model : prepared.models()) {
    for (const auto& item : model.named()) {
      f("gradient_" + std::to_string(number++), item.second);
    }
  }
}

/// The gradients that no_sync() has kept on this rank, as an archive; nothing, if there are none on any. Alone nothing
/// tells them from others, and all that are there are taken. (collective)
std::vector<std::string> kept_gradients(const PreparedObjects& prepared) {
  State& s = state();
  if (!s.control.within_no_sync) {
    return {};  // no_sync() is called by all ranks alike
  }
  std::unordered_set<const c10::TensorImpl*> kept;
  for (const at::Tensor& parameter : s.models.with_local_gradients()) {
    kept.insert(parameter.unsafeGetTensorImpl());
  }
  OutputArchive archive;
  for_each_tensor(prepared, [&](const std::string& key, const at::Tensor& x) {
    if (x.is_leaf() && x.grad().defined() && (s.alone() || kept.count(x.unsafeGetTensorImpl()) > 0)) {
      const at::Tensor gradient = x.grad().detach();
      archive.write(key, gradient.is_sparse() ? gradient.to_dense() : gradient, /*is_buffer=*/true);
    }
  });
  const std::string mine = bytes_of(archive);
  // One after the other: together they are as large as the model times the ranks, which only the main process needs.
  std::vector<std::string> result;
  for (int64_t from = 0; from < ranks(); ++from) {
    std::string bytes = text_of_process(from, mine, "the gradients of no_sync()");
    if (rank() == 0) {
      result.push_back(std::move(bytes));
    }
  }
  return result;
}

/// Each rank's bytes, in rank order. (collective)
std::vector<std::string> gather_bytes(const std::string& mine, const std::string& what) {
  State& s = state();
  if (s.alone()) {
    return {mine};
  }
  const auto size = static_cast<int64_t>(mine.size());
  at::Tensor most = torch::scalar_tensor(size, torch::kInt64);
  s.group->maximum(most, what);
  at::Tensor padded = torch::zeros({static_cast<int64_t>(sizeof(size)) + most.item<int64_t>()}, torch::kUInt8);
  std::memcpy(padded.data_ptr(), &size, sizeof(size));
  std::memcpy(static_cast<char*>(padded.data_ptr()) + sizeof(size), mine.data(), mine.size());
  std::vector<std::string> result;
  for (const at::Tensor& x : s.group->gather(padded, what)) {
    int64_t length = 0;
    std::memcpy(&length, x.data_ptr(), sizeof(length));
    result.emplace_back(static_cast<const char*>(x.data_ptr()) + sizeof(length), static_cast<size_t>(length));
  }
  return result;
}

json scheduler_json(const SchedulerState& state) {
  char best[32];
  std::snprintf(best, sizeof(best), "%a", static_cast<double>(state.best));  // exact, also if infinite
  return {{"kind", state.kind}, {"counters", state.counters}, {"best", best}};
}

SchedulerState scheduler_state(const json& value) {
  return {value.at("kind"), value.at("counters").get<std::vector<int64_t>>(),
          static_cast<float>(std::strtod(value.at("best").get<std::string>().c_str(), nullptr))};
}

/// The loss scale of mixed precision; none without.
json scaler_json() {
  if (!state().control.scaler) {
    return nullptr;
  }
  const ScalerState scaler = scaler_state();
  return {{"scale", scaler.scale}, {"growth_tracker", scaler.growth_tracker}};
}

/// On the main process.
void write_checkpoint(const PreparedObjects& prepared, const std::vector<std::string>& random_streams,
                      const std::vector<std::string>& gradients, const std::string& folder) {
  CheckpointWriter writer(folder);
  json content = {{"library", ACCELERATE_VERSION}, {"torch", TORCH_VERSION}, {"num_processes", ranks()}};
  for (const char* list : {"models", "optimizers", "schedulers", "loaders", "registered"}) {
    content[list] = json::array();
  }
  for (const PreparedObjects::Model& model : prepared.models()) {
    const std::string file = numbered("model", content["models"].size(), ".safetensors");
    Untied untied = untie(model.named());
    untied.metadata["format"] = "pt";
    writer.add(file, untied.tensors, untied.metadata);
    content["models"].push_back({{"file", file}, {"class", model.name}});
  }
  for (const PreparedObjects::Optimizer& item : prepared.optimizers()) {
    const std::string file = numbered("optimizer", content["optimizers"].size(), ".bin");
    OutputArchive archive;
    item.optimizer->save(archive);
    writer.add(file, archive);
    content["optimizers"].push_back(
        {{"file", file}, {"class", class_of(*item.optimizer)}, {"groups", group_sizes(*item.optimizer)}});
  }
  for (const PreparedObjects::BoundScheduler& bound : prepared.schedulers()) {
    content["schedulers"].push_back(scheduler_json(save_scheduler(bound.scheduler)));
  }
  for (const LoaderControl* loader : prepared.loaders()) {
    const std::string file = numbered("sampler", content["loaders"].size(), ".bin");
    OutputArchive archive;
    loader->save_position(archive);
    writer.add(file, archive);
    content["loaders"].push_back({{"file", file}});
  }
  content["step"] = state().steps;
  content["log_step"] = next_log_step();
  content["scaler"] = scaler_json();
  for (const Checkpointable& object : registered()) {
    const std::string file = "custom_checkpoint_" + std::to_string(content["registered"].size()) + ".bin";
    OutputArchive archive;
    object.save(archive);
    writer.add(file, archive);
    content["registered"].push_back({{"file", file}});
  }
  for (size_t i = 0; i < random_streams.size(); ++i) {
    writer.add("random_states_" + std::to_string(i) + ".bin", random_streams[i]);
  }
  content["gradients"] = json::array();
  for (const std::string& bytes : gradients) {
    const std::string file = "gradients_" + std::to_string(content["gradients"].size()) + ".bin";
    writer.add(file, bytes);
    content["gradients"].push_back({{"file", file}});
  }
  writer.commit(std::move(content));
}

const ProjectConfiguration& project() { return state().options.project; }

CheckpointSeries series(const char* operation) {
  TORCH_CHECK(!project().project_dir.empty(), "[accelerate] ", operation,
              " was given no folder, and there is no ProjectConfiguration::project_dir");
  return CheckpointSeries(project().project_dir);
}

/// On the main process, where alone the numbers are counted.
std::string next_automatic_name() {
  TORCH_CHECK(project().automatic_checkpoint_naming,
              "[accelerate] save_state() was given no folder; name one, or set "
              "ProjectConfiguration::automatic_checkpoint_naming");
  TORCH_CHECK(!project().total_limit || *project().total_limit > 0,
              "[accelerate] ProjectConfiguration::total_limit has to be 1 or more");
  const CheckpointSeries all = series("save_state()");
  static int64_t next = project().iteration;
  next = all.next(next);  // an older number would be the first to be removed, and the last to be found
  return all.path(next++);
}

/// What a checkpoint holds, read and found to fit the program.
struct Content {
  Copies weights;
  std::vector<InputArchive> optimizers, positions, registered;
  std::vector<SchedulerState> schedulers;
  InputArchive random_streams;
  std::vector<InputArchive> gradients;  // this rank's, or of all ranks of a job of another size
  std::optional<ScalerState> scaler;
  bool same_ranks = false;
  int64_t steps = 0;
  std::optional<int64_t> log_step;
};

void check_count(const json& manifest, const char* list, size_t expected) {
  TORCH_CHECK(manifest.at(list).size() == expected, "[accelerate] checkpoint ",
              manifest.at("folder").get<std::string>(), " has ", manifest.at(list).size(), " ", list,
              ", and the program has ", expected,
              "; prepare and register the same objects, in the same order, before load_state()");
}

Content read_content(const PreparedObjects& prepared, const std::string& given) {
  const json manifest = read_checkpoint(given);
  const auto folder = manifest.at("folder").get<std::string>();
  const auto path = [&](const json& item) { return folder + "/" + item.at("file").get<std::string>(); };
  check_count(manifest, "models", prepared.models().size());
  check_count(manifest, "optimizers", prepared.optimizers().size());
  check_count(manifest, "schedulers", prepared.schedulers().size());
  check_count(manifest, "loaders", prepared.loaders().size());
  check_count(manifest, "registered", registered().size());
  Content content;
  for (size_t i = 0; i < prepared.models().size(); ++i) {
    const std::string file = path(manifest["models"][i]);
    const Copies copies = match(prepared.models()[i].named(), load_safetensors(file), file);
    content.weights.insert(content.weights.end(), copies.begin(), copies.end());
  }
  for (size_t i = 0; i < prepared.optimizers().size(); ++i) {
    const json& item = manifest["optimizers"][i];
    torch::optim::Optimizer& optimizer = *prepared.optimizers()[i].optimizer;
    TORCH_CHECK(item.at("class") == class_of(optimizer) &&
                    item.at("groups").get<std::vector<size_t>>() == group_sizes(optimizer),
                "[accelerate] ", path(item), " is the state of a ", item.at("class").get<std::string>(),
                " with groups of ", item.at("groups").dump(), " parameters, and the program has a ",
                class_of(optimizer), " with groups of ", json(group_sizes(optimizer)).dump());
    std::optional<torch::Device> device;
    if (!optimizer.param_groups().empty() && !optimizer.param_groups()[0].params().empty()) {
      device = optimizer.param_groups()[0].params()[0].device();
    }
    content.optimizers.emplace_back();
    content.optimizers.back().load_from(path(item), device);
  }
  for (size_t i = 0; i < prepared.schedulers().size(); ++i) {
    content.schedulers.push_back(scheduler_state(manifest["schedulers"][i]));
    const SchedulerState now = save_scheduler(prepared.schedulers()[i].scheduler);
    TORCH_CHECK(now.kind == content.schedulers[i].kind, "[accelerate] scheduler ", i, " of checkpoint ", folder,
                " is a ", content.schedulers[i].kind, ", and the program has a ", now.kind);
  }
  for (const json& item : manifest["loaders"]) {
    content.positions.emplace_back();
    content.positions.back().load_from(path(item));
  }
  for (const json& item : manifest["registered"]) {
    content.registered.emplace_back();
    content.registered.back().load_from(path(item));
  }
  content.steps = manifest.at("step");
  if (manifest.contains("log_step")) {
    content.log_step = manifest.at("log_step").get<int64_t>();
  }
  if (const json& scaler = manifest.at("scaler"); !scaler.is_null()) {
    content.scaler = ScalerState{scaler.at("scale"), scaler.at("growth_tracker")};
  }
  content.same_ranks = manifest.at("num_processes").get<int64_t>() == ranks();
  const json gradients = manifest.value("gradients", json::array());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!content.same_ranks || static_cast<int64_t>(i) == rank()) {
      content.gradients.emplace_back();
      content.gradients.back().load_from(path(gradients[i]));
    }
  }
  content.random_streams.load_from(folder + "/random_states_" + std::to_string(content.same_ranks ? rank() : 0) +
                                   ".bin");
  return content;
}

/// Gives parameters the gradients that no_sync() had kept. Those of a job of another size come as their mean, which is
/// what their ranks would have made of them.
void apply_gradients(const PreparedObjects& prepared, std::vector<InputArchive>& archives) {
  State& s = state();
  s.models.forget_local_gradients();
  for_each_tensor(prepared, [&](const std::string& key, const at::Tensor& x) {
    at::Tensor sum;
    for (InputArchive& archive : archives) {
      at::Tensor gradient;
      if (archive.try_read(key, gradient, /*is_buffer=*/true)) {
        sum = sum.defined() ? sum + gradient : gradient;
      }
    }
    if (sum.defined()) {
      sum = archives.size() > 1 ? sum / static_cast<double>(archives.size()) : sum;
      s.models.set_local_gradient(x, sum.to(x.device()));
    }
  });
  s.control.within_no_sync = s.control.within_no_sync || !archives.empty();
}

/// What may still be refused: positions, which are only looked at, and then what the program's objects load.
void apply_to_registered(const PreparedObjects& prepared, Content& content, const std::string& operation) {
  together(operation, [&] {
    for (size_t i = 0; i < content.positions.size(); ++i) {
      prepared.loaders()[i]->check_position(content.positions[i]);
    }
  });
  together(operation, [&] {
    for (size_t i = 0; i < content.registered.size(); ++i) {
      registered()[i].load(content.registered[i]);
    }
  });
}

void apply(const PreparedObjects& prepared, Content& content) {
  for (size_t i = 0; i < content.positions.size(); ++i) {
    prepared.loaders()[i]->load_position(content.positions[i]);
  }
  copy(content.weights);
  for (size_t i = 0; i < content.optimizers.size(); ++i) {
    prepared.optimizers()[i].optimizer->load(content.optimizers[i]);
  }
  for (size_t i = 0; i < content.schedulers.size(); ++i) {
    load_scheduler(prepared.schedulers()[i].scheduler, content.schedulers[i]);
  }
  state().steps = content.steps;
  for (auto& item : state().control.local_sgds) {
    item.second = content.steps;  // all have read the same weights
  }
  if (content.log_step) {
    set_log_step(*content.log_step);
  }
  state().control.window.abandon();
  state().control.gradients.forget();
  apply_gradients(prepared, content.gradients);
  if (content.scaler) {
    set_scaler_state(*content.scaler);
  }
  load_random_streams(content.random_streams, !content.same_ranks);  // last: what came before may have drawn
}

}  // namespace

void register_for_checkpointing(Checkpointable object) { registered().push_back(std::move(object)); }

std::size_t registered_for_checkpointing() { return registered().size(); }

void forget_registered(std::size_t keep) {
  if (keep < registered().size()) {
    registered().erase(registered().begin() + static_cast<std::ptrdiff_t>(keep), registered().end());
  }
}

std::string save_state(const std::string& output_dir) {
  const PreparedObjects& prepared = living("save_state()");
  std::string folder = output_dir;
  together("save_state()", [&] {
    TORCH_CHECK(state().control.window.sync(), "[accelerate] rank ", rank(), " of ", ranks(),
                ": save_state() within a window of accumulate(), whose gradients aren't complete, and no part of a "
                "checkpoint; save where sync_gradients() is true");
    for (const auto& [local_sgd, steps] : state().control.local_sgds) {
      TORCH_CHECK(steps == state().steps, "[accelerate] rank ", rank(), " of ", ranks(),
                  ": save_state() while every rank has a model of its own, of which a checkpoint would keep the main "
                  "process's only: there was a backward() since LocalSGD averaged it; save where "
                  "LocalSGD::averaged() is true, behind its step()");
    }
    if (rank() == 0 && output_dir.empty()) {
      folder = next_automatic_name();
    }
  });
  folder = text_of_main_process(folder, "the checkpoint's name");
  const std::vector<std::string> random_streams = gather_bytes(own_random_streams(), "the random states");
  const std::vector<std::string> gradients = kept_gradients(prepared);
  together("save_state(" + folder + ")", [&] {
    if (rank() == 0) {
      write_checkpoint(prepared, random_streams, gradients, folder);
      if (output_dir.empty() && project().total_limit) {
        series("save_state()").remove_beyond(*project().total_limit);
      }
    }
  });
  return folder;
}

std::string latest_checkpoint() {
  std::string folder;
  together("latest_checkpoint()", [&] {
    if (rank() == 0) {
      const CheckpointSeries all = series("latest_checkpoint()");
      const auto latest = all.latest();
      folder = latest ? all.path(*latest) : "";
    }
  });
  return text_of_main_process(folder, "the checkpoint's name");
}

std::string load_state(const std::string& input_dir) {
  const PreparedObjects& prepared = living("load_state()");
  std::string folder = input_dir;
  together("load_state()", [&] {
    if (rank() == 0 && input_dir.empty()) {
      const CheckpointSeries all = series("load_state()");
      const auto latest = all.latest();
      TORCH_CHECK(latest, "[accelerate] load_state(): there is no checkpoint in ", project().project_dir,
                  "/checkpoints");
      folder = all.path(*latest);
    }
  });
  folder = text_of_main_process(folder, "the checkpoint's name");
  Content content;
  together("load_state(" + folder + ")", [&] {
    try {
      content = read_content(prepared, folder);
    } catch (const json::exception& error) {
      TORCH_CHECK(false, "[accelerate] ", folder, "/manifest.json lacks what a checkpoint has: ", error.what());
    }
  });
  apply_to_registered(prepared, content, "load_state(" + folder + ")");
  together("load_state(" + folder + ")", [&] { apply(prepared, content); });
  return folder;
}

}  // namespace accelerate::detail
