#include "model_files.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <unordered_map>

#include "files.h"
#include "outcome.h"
#include "state.h"

namespace accelerate {
namespace detail {
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// "10GB" and "5GiB" in bytes, by the rule of Hugging Face's hub.
int64_t size_in_bytes(const std::string& text) {
  static const std::map<std::string, double> kUnits = {
      {"B", 1},     {"", 1},         {"KB", 1e3},        {"MB", 1e6},          {"GB", 1e9},
      {"TB", 1e12}, {"KIB", 1024.0}, {"MIB", 1048576.0}, {"GIB", 1073741824.0}};
  size_t digits = 0;
  double number = 0;
  try {
    number = std::stod(text, &digits);
  } catch (const std::exception&) {
    digits = 0;
  }
  std::string unit = text.substr(digits);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto found = kUnits.find(unit);
  TORCH_CHECK(digits > 0 && found != kUnits.end() && number * found->second >= 1 && number * found->second < 9e18,
              "[accelerate] save_model(): max_shard_size `", text, "` isn't a size such as 10GB or 500MiB");
  return static_cast<int64_t>(number * found->second);
}

std::string shard_name(size_t number, size_t count) {
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

bool is_shard(const std::string& name) {
  return name.size() == shard_name(1, 1).size() && name.compare(0, 6, "model-") == 0 &&
         name.compare(11, 4, "-of-") == 0 && name.compare(20, std::string::npos, ".safetensors") == 0;
}

/// In the order given; a tensor that is larger than a shard may be gets one for itself.
std::vector<NamedTensors> shards_of(const NamedTensors& tensors, int64_t most) {
  std::vector<NamedTensors> shards(1);
  int64_t size = 0;
  for (const auto& item : tensors) {
    const int64_t bytes = item.second.numel() * static_cast<int64_t>(item.second.element_size());
    if (!shards.back().empty() && size + bytes > most) {
      shards.emplace_back();
      size = 0;
    }
    shards.back().push_back(item);
    size += bytes;
  }
  return shards;
}

void write_text(const std::string& path, const std::string& text) {
  const std::string temporary = parent_of(path) + "/." + name_of(path) + ".tmp";
  FileWriter file(temporary);
  file.write(text.data(), text.size());
  file.close();
  rename_file(temporary, path);
}

/// What was there stays whole until what is new is: the index names the shards that count.
void write_model(const Untied& model, const std::string& folder, int64_t most) {
  make_folders(folder);
  const std::vector<NamedTensors> shards = shards_of(model.tensors, most);
  std::map<std::string, std::string> metadata = model.metadata;
  metadata["format"] = "pt";
  std::set<std::string> written;
  if (shards.size() == 1) {
    save_safetensors(shards[0], folder + "/" + kWhole, metadata);
    written.insert(kWhole);
  } else {
    nlohmann::ordered_json index;
    int64_t total = 0;
    index["metadata"]["total_size"] = 0;
    for (const auto& [name, kept] : model.metadata) {
      index["metadata"][name] = kept;
    }
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(i + 1, shards.size());
      save_safetensors(shards[i], folder + "/" + name, {{"format", "pt"}});
      written.insert(name);
      for (const auto& [tensor_name, tensor] : shards[i]) {
        index["weight_map"][tensor_name] = name;
        total += tensor.numel() * static_cast<int64_t>(tensor.element_size());
      }
    }
    index["metadata"]["total_size"] = total;
    write_text(folder + "/" + kIndex, index.dump(2) + "\n");
    written.insert(kIndex);
  }
  for (const std::string& name : names_in(folder)) {  // an earlier save's, which nothing refers to now
    if (!written.count(name) && (name == kWhole || name == kIndex || is_shard(name))) {
      remove_all(folder + "/" + name);
    }
  }
}

Safetensors read_shards(const std::string& folder) {
  const std::string path = folder + "/" + kIndex;
  std::set<std::string> files;
  Safetensors result;
  try {
    const auto index = nlohmann::json::parse(read_text(path));
    for (const auto& [name, file] : index.at("weight_map").items()) {
      files.insert(file.get<std::string>());
    }
    const auto metadata = index.value("metadata", nlohmann::json::object());
    for (const auto& [name, value] : metadata.items()) {
      if (value.is_string()) {
        result.metadata[name] = value.get<std::string>();
      }
    }
  } catch (const nlohmann::json::exception& error) {
    TORCH_CHECK(false, "[accelerate] ", path, " is no index of safetensors files: ", error.what());
  }
  for (const std::string& file : files) {
    TORCH_CHECK(file.find('/') == std::string::npos, "[accelerate] ", path,
                " names a file outside of its folder: ", file);
    Safetensors shard = load_safetensors(folder + "/" + file);
    result.tensors.merge(shard.tensors);
  }
  return result;
}

}  // namespace

NamedTensors named_tensors(const torch::nn::Module& module) {
  NamedTensors result;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined()) {
      result.emplace_back(item.key(), item.value());
    }
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) {
      result.emplace_back(item.key(), item.value());
    }
  }
  return result;
}

Untied untie(const NamedTensors& tensors) {
  Untied result;
  std::unordered_map<const c10::TensorImpl*, std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const auto [known, fresh] = names.emplace(tensor.unsafeGetTensorImpl(), name);
    if (fresh) {
      result.tensors.emplace_back(name, tensor);
    } else {
      result.metadata[name] = known->second;
    }
  }
  return result;
}

Copies match(const NamedTensors& targets, const Safetensors& source, const std::string& origin) {
  const Untied untied = untie(targets);
  Copies copies;
  for (const auto& [name, target] : untied.tensors) {
    auto found = source.tensors.find(name);
    for (auto other = untied.metadata.begin(); found == source.tensors.end() && other != untied.metadata.end();
         ++other) {
      if (other->second == name) {  // the writer kept another of its names
        found = source.tensors.find(other->first);
      }
    }
    if (const auto kept = source.metadata.find(name); found == source.tensors.end() && kept != source.metadata.end()) {
      found = source.tensors.find(kept->second);
    }
    TORCH_CHECK(found != source.tensors.end(), "[accelerate] ", origin, " has no tensor `", name,
                "`, which the model has");
    TORCH_CHECK(found->second.sizes() == target.sizes(), "[accelerate] ", origin, ": tensor `", name, "` is ",
                found->second.sizes(), " there and ", target.sizes(), " in the model");
    copies.emplace_back(target, found->second);
  }
  return copies;
}

void copy(const Copies& copies) {
  torch::NoGradGuard no_grad;
  for (const auto& [target, value] : copies) {
    target.detach().copy_(value);  // in place: hooks, optimizers and reducers know the tensor
  }
}

void save_model(const torch::nn::Module& module, const std::string& directory, const std::string& max_shard_size) {
  const int64_t most = size_in_bytes(max_shard_size);
  together("save_model(" + directory + ")", [&] {
    if (rank() == 0) {
      write_model(untie(named_tensors(module)), directory, most);
    }
  });
}

void load_model(const torch::nn::Module& module, const std::string& path) {
  Safetensors source;
  if (!is_folder(path)) {
    source = load_safetensors(path);
  } else if (is_file(path + "/" + kIndex) && !is_file(path + "/" + kWhole)) {
    source = read_shards(path);
  } else {
    source = load_safetensors(path + "/" + kWhole);
  }
  copy(match(named_tensors(module), source, path));
}

}  // namespace detail
}  // namespace accelerate
