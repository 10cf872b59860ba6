#include "recorder.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "../src/graph.h"

namespace accelerate::recorder {
namespace {

using json = nlohmann::json;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::string working_folder() {
  char* path = getcwd(nullptr, 0);
  std::string folder = path != nullptr ? path : "";
  std::free(path);
  return folder;
}

// JSON has no infinities.
json number(double x) {
  if (std::isfinite(x)) {
    return x;
  }
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

/// `id`: of a known tensor, or nothing.
json entry(const json& id, const Fingerprint& print) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(print.hash));
  json result = {id, hash, number(print.norm)};
  for (const double sum : print.sketch) {
    result.push_back(number(sum));
  }
  return result;
}

int open_record() {
  const std::string folder = variable("ACCELERATE_RECORD");
  // Programs that this one starts needn't use LibTorch, and couldn't be started with us.
  unsetenv("ACCELERATE_RECORD");
  const std::string before = variable("ACCELERATE_RECORD_LD_PRELOAD");
  unsetenv("ACCELERATE_RECORD_LD_PRELOAD");
  if (folder.empty()) {
    return -1;
  }
  before.empty() ? unsetenv("LD_PRELOAD") : setenv("LD_PRELOAD", before.c_str(), 1);
  const std::string rank = variable("RANK");
  const std::string path = folder + "/rank" + (rank.empty() ? "0" : rank) + ".jsonl";
  // Past our own open(), which would take it for one of the program's files.
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file < 0) {
    std::fprintf(stderr, "[accelerate] can't write %s; nothing is recorded\n", path.c_str());
  }
  return file;
}

// The tensor's operations are none of the program's profile.
class Unobserved {
  at::RecordFunctionGuard guard_{/*is_enabled=*/false};
};

}  // namespace

Recorder* Recorder::active() {
  static Recorder* const recorder = []() -> Recorder* {
    const int file = open_record();
    return file < 0 ? nullptr : new Recorder(file);  // outlives every static object of the program
  }();
  return recorder;
}

namespace {
// A program that is ended before it trains has a record as well, with the one line of the beginning.
__attribute__((constructor)) void begin() { Recorder::active(); }
}  // namespace

Recorder::Recorder(int file) : file_(file), folder_(working_folder()) {
  const std::string rank = variable("RANK");
  const std::string world = variable("WORLD_SIZE");
  write({{"event", "start"},
         {"version", 1},
         {"rank", rank.empty() ? 0 : std::atoi(rank.c_str())},
         {"world", world.empty() ? 1 : std::atoi(world.c_str())}});
}

void Recorder::write(const json& line) {
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  // One call a line: what was written before a crash is whole.
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file_, text.data() + done, text.size() - done);
    if (n <= 0) {
      return;  // the reader notices that the end is missing
    }
    done += static_cast<size_t>(n);
  }
}

void Recorder::know(const at::Tensor& tensor, const char* kind, const std::string& name) {
  if (!tensor.defined()) {
    return;
  }
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!index_.emplace(impl, known_.size()).second) {
    return;
  }
  known_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
                    static_cast<int64_t>(known_.size()), kind != std::string("buffer"), false, kind, name, 0, 0});
}

void Recorder::rename(const at::Tensor& tensor, const std::string& name) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto it = index_.find(tensor.unsafeGetTensorImpl());
  if (it == index_.end() || known_[it->second].name == name) {
    return;
  }
  Known& known = known_[it->second];
  known.name = name;
  if (known.shown) {
    write({{"event", "name"}, {"id", known.id}, {"name", name}});
  }
}

void Recorder::show(Known& known, const at::Tensor& tensor) {
  if (!known.shown) {
    known.shown = true;
    write({{"event", "tensor"},
           {"id", known.id},
           {"kind", known.kind},
           {"name", known.name},
           {"shape", tensor.sizes().vec()},
           {"dtype", c10::toString(tensor.scalar_type())}});
  }
}

json Recorder::changed_values() {
  json values = json::array();
  for (Known& known : known_) {
    const auto alive = known.tensor.lock();
    if (!alive) {
      continue;
    }
    const at::Tensor tensor{alive};
    const Fingerprint print = fingerprint(tensor);
    if (!known.shown || print.hash != known.last_value) {
      show(known, tensor);
      known.last_value = print.hash;
      values.push_back(entry(known.id, print));
    }
  }
  return values;
}

json Recorder::gradients(const std::vector<Known*>& of) {
  json gradients = json::array();
  for (Known* known : of) {
    const auto alive = known->tensor.lock();
    const at::Tensor gradient = alive ? at::Tensor{alive}.grad() : at::Tensor{};
    if (!gradient.defined()) {
      continue;
    }
    const Fingerprint print = fingerprint(gradient);
    // The same as last time is told by its number alone.
    gradients.push_back(print.hash == known->last_gradient ? json{known->id} : entry(known->id, print));
    known->last_gradient = print.hash;
  }
  return gradients;
}

/// Parameters that belong to no module and no optimizer. Inputs that ask for a gradient are leaves as well, and live no
/// longer than their batch: only what comes a second time is known.
void Recorder::know_leaves(const std::vector<at::Tensor>& roots) {
  for (auto it = seen_once_.begin(); it != seen_once_.end();) {
    it = it->second.expired() ? seen_once_.erase(it) : std::next(it);
  }
  for (const at::Tensor& root : roots) {
    if (!root.defined() || !root.grad_fn()) {
      continue;
    }
    detail::visit_leaves(root, [&](const at::Tensor& leaf) {
      c10::TensorImpl* impl = leaf.unsafeGetTensorImpl();
      if (index_.count(impl) != 0) {
        return;
      }
      if (seen_once_.erase(impl) != 0) {
        know(leaf, "leaf", "");
      } else {
        seen_once_.emplace(impl, c10::weak_intrusive_ptr<c10::TensorImpl>(leaf.getIntrusivePtr()));
      }
    });
  }
}

bool Recorder::begin_backward(const std::vector<at::Tensor>& roots) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (depth_++ > 0) {
    return false;
  }
  const Unobserved unobserved;
  know_leaves(roots);
  json values = changed_values();
  if (!values.empty()) {
    write({{"event", "values"}, {"values", std::move(values)}});
  }
  return true;
}

void Recorder::end_backward(const Backward& backward, bool completed) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (--depth_ > 0 || !completed) {
    return;
  }
  const Unobserved unobserved;
  std::vector<Known*> of;
  for (Known& known : known_) {
    if (known.has_gradient) {
      of.push_back(&known);
    }
  }
  json line = {{"event", "backward"}, {"n", backwards_++}, {"loss", number(backward.loss)}, {"dtype", backward.dtype}};
  if (backward.weight) {
    line["weight"] = number(*backward.weight);
  }
  if (backward.global_rows >= 0) {
    line["rows"] = backward.rows;
    line["global_rows"] = backward.global_rows;
  }
  line["gradients"] = gradients(of);
  write(line);
}

void Recorder::begin_step(const torch::optim::Optimizer& optimizer, const char* kind) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Unobserved unobserved;
  std::vector<Known*> of;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      know(parameter, "parameter", "");
    }
  }
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      Known& known = known_[index_.at(parameter.unsafeGetTensorImpl())];
      show(known, parameter);
      of.push_back(&known);
    }
  }
  const size_t index = optimizers_.emplace(&optimizer, optimizers_.size()).first->second;
  write({{"event", "step"}, {"n", steps_++}, {"optimizer", index}, {"kind", kind}, {"gradients", gradients(of)}});
}

void Recorder::end_step() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Unobserved unobserved;
  write({{"event", "stepped"}, {"values", changed_values()}});
}

/// Only some ranks save, and they all have to show the same tensors: so what hasn't been shown isn't now.
const Recorder::Known* Recorder::shown(const void* tensor) const {
  const auto it = index_.find(static_cast<const c10::TensorImpl*>(tensor));
  return it != index_.end() && known_[it->second].shown ? &known_[it->second] : nullptr;
}

json Recorder::saved(const std::string& key, const at::Tensor& tensor) const {
  const Known* const known = shown(tensor.unsafeGetTensorImpl());
  return {{"event", "saved"},
          {"key", key},
          {"shape", tensor.sizes().vec()},
          {"dtype", c10::toString(tensor.scalar_type())},
          {"value", entry(known != nullptr ? json(known->id) : json(), fingerprint(tensor))}};
}

void Recorder::write_values(const torch::serialize::OutputArchive& archive, const Known* state_of) {
  const auto it = values_.find(&archive);
  if (it == values_.end()) {
    return;
  }
  for (json& line : it->second) {
    if (state_of != nullptr) {
      line["state_of"] = state_of->id;
    }
    write(line);
  }
  values_.erase(it);
}

void Recorder::save(const std::string& key, const at::Tensor& tensor) {
  if (tensor.defined()) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    const Unobserved unobserved;
    write(saved(key, tensor));
  }
}

void Recorder::save(const torch::serialize::OutputArchive& archive, const std::string& key, const c10::IValue& value) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Unobserved unobserved;
  if (value.isTensor() && value.toTensor().defined()) {
    values_[&archive].push_back(saved(key, value.toTensor()));
  } else if (value.isDouble() || value.isInt() || value.isBool()) {
    const at::ScalarType type = value.isDouble() ? at::kDouble : value.isInt() ? at::kLong : at::kBool;
    const at::Tensor number = at::scalar_tensor(value.toScalar(), at::device(at::kCPU).dtype(type));
    values_[&archive].push_back(saved(key, number));
  }
}

void Recorder::save(const std::string& key, const torch::serialize::OutputArchive& nested) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Unobserved unobserved;
  // Optimizers name the state of a parameter by its address, and write these states in the order of a hash table.
  const bool address = !key.empty() && key.size() < 20 && key.find_first_not_of("0123456789") == std::string::npos;
  write_values(nested, address ? shown(reinterpret_cast<const void*>(std::stoull(key))) : nullptr);
}

void Recorder::end_archive(const torch::serialize::OutputArchive& archive, const std::string& path) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Unobserved unobserved;
  write_values(archive, nullptr);
  values_.clear();
  // The library writes to a temporary folder first: the name alone is the user's.
  write({{"event", "archive"}, {"name", path.substr(path.rfind('/') + 1)}});
}

void Recorder::wrote(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  std::string name = path;
  if (!name.empty() && name[0] == '/') {
    if (name.compare(0, folder_.size() + 1, folder_ + "/") != 0) {
      return;  // not of the working folder
    }
    name.erase(0, folder_.size() + 1);
  }
  if (written_.insert(name).second) {
    write({{"event", "file"}, {"path", name}});
  }
}

}  // namespace accelerate::recorder
