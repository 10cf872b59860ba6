/// The format: the header's length (8 bytes, little-endian), a JSON object {name: {dtype, shape, data_offsets}}, and
/// the tensors' bytes one after the other, without holes.

#include <accelerate/safetensors.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "files.h"
#include "model_files.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie in memory");

namespace accelerate {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestHeader = 100'000'000;  // the reference implementation's

struct Type {
  const char* name;
  at::ScalarType type;
};

/// The format's names of the types that LibTorch has as well, in the reference implementation's order.
constexpr Type kTypes[] = {
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F32", at::kFloat},
    {"C64", at::kComplexFloat},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
};

struct Entry {
  std::string name;
  at::Tensor tensor;
  const Type* type;
  int64_t bytes;
};

const Type* find_type(at::ScalarType type) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::vector<Entry> sorted_entries(const NamedTensors& tensors, const std::string& path) {
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const auto check = [&, &name = name](bool fine, const char* what) {
      TORCH_CHECK(fine, "[accelerate] can't save ", path, ": tensor `", name, "` ", what);
    };
    check(tensor.defined(), "is undefined");
    check(tensor.layout() == at::kStrided && !tensor.is_quantized(),
          "isn't dense, and safetensors has dense ones only");
    const Type* type = find_type(tensor.scalar_type());
    check(type != nullptr, "is of a type that safetensors doesn't have");
    check(name != "__metadata__" && names.insert(name).second, "has a name that is taken");
    entries.push_back({name, tensor.detach(), type, tensor.numel() * static_cast<int64_t>(tensor.element_size())});
  }
  // Wide types first, so that every tensor is aligned; then by name.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.type != b.type ? a.type > b.type : a.name < b.name; });
  return entries;
}

void write_entries(detail::FileWriter& file, const std::vector<Entry>& entries,
                   const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  int64_t offset = 0;
  for (const Entry& entry : entries) {
    auto& item = header[entry.name];
    item["dtype"] = entry.type->name;
    item["shape"] = entry.tensor.sizes().vec();
    item["data_offsets"] = {offset, offset + entry.bytes};
    offset += entry.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<uint64_t>(text.size());
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  for (const Entry& entry : entries) {
    const at::Tensor bytes = entry.tensor.to(at::kCPU).contiguous().resolve_conj();  // one at a time: models are large
    file.write(bytes.data_ptr(), static_cast<size_t>(entry.bytes));
  }
}

/// A file's header, checked: what it names lies in the file.
struct Header {
  struct Item {
    at::ScalarType type;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // in the file
  };
  std::map<std::string, Item> items;
  std::map<std::string, std::string> metadata;
};

json parse_header(const std::string& text, const std::string& path) {
  // A name that comes twice would be read as the later one by some programs, and as the first by others.
  std::vector<std::set<std::string>> keys;
  bool twice = false, deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    deep = deep || depth > 4;
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      twice = twice || !keys.back().insert(value.get<std::string>()).second;
    }
    return !deep;
  };
  json header;
  try {
    header = json::parse(text, watch);
  } catch (const json::exception& error) {
    TORCH_CHECK(false, "[accelerate] ", path, " is no safetensors file: its header isn't JSON (", error.what(), ")");
  }
  TORCH_CHECK(!deep && !twice && header.is_object(), "[accelerate] ", path, " is no safetensors file: its header ",
              twice ? "has a name twice" : "isn't a table of tensors");
  return header;
}

Header::Item read_item(const std::string& name, const json& value, uint64_t data_size, const std::string& path) {
  const auto check = [&](bool fine, const char* what) {
    TORCH_CHECK(fine, "[accelerate] ", path, " is no safetensors file: tensor `", name, "` ", what);
  };
  const auto list = [&](const char* key) {
    check(value.is_object() && value.contains(key) && value[key].is_array(), "lacks its shape or offsets");
    std::vector<uint64_t> numbers;
    for (const json& number : value[key]) {
      check(number.is_number_unsigned(), "has a shape or offset that is no natural number");
      numbers.push_back(number.get<uint64_t>());
    }
    return numbers;
  };
  const auto shape = list("shape"), offsets = list("data_offsets");
  check(value.contains("dtype") && value["dtype"].is_string(), "lacks its type");
  const auto type_name = value["dtype"].get<std::string>();
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.name == type_name; });
  check(type != std::end(kTypes), "is of a type that LibTorch doesn't have");
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data_size, "lies outside of the file");
  Header::Item item{type->type, {}, offsets[0], offsets[1]};
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t bytes = c10::elementSize(type->type);
  for (const uint64_t extent : shape) {
    check(extent <= kMost && (extent == 0 || bytes <= kMost / extent), "has an impossible shape");
    bytes *= extent;
    item.shape.push_back(static_cast<int64_t>(extent));
  }
  check(bytes == item.end - item.begin, "has a shape that doesn't fit its bytes");
  return item;
}

Header read_header(const detail::FileReader& file, const std::string& path) {
  uint64_t length = 0;
  TORCH_CHECK(file.size() >= sizeof(length), "[accelerate] ", path, " is no safetensors file: it has ", file.size(),
              " bytes");
  file.read(0, &length, sizeof(length));
  TORCH_CHECK(length <= kLongestHeader && length <= file.size() - sizeof(length), "[accelerate] ", path,
              " is no safetensors file: its header would have ", length, " bytes");
  std::string text(length, '\0');
  file.read(sizeof(length), text.data(), text.size());
  TORCH_CHECK(!text.empty() && text[0] == '{', "[accelerate] ", path, " is no safetensors file: no header");
  const uint64_t begin = sizeof(length) + length, data_size = file.size() - begin;

  Header header;
  const json content = parse_header(text, path);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, value] : content.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, word] : value.items()) {
        TORCH_CHECK(value.is_object() && word.is_string(), "[accelerate] ", path,
                    " is no safetensors file: its metadata aren't strings");
        header.metadata[key] = word.get<std::string>();
      }
      continue;
    }
    Header::Item item = read_item(name, value, data_size, path);
    ranges.emplace_back(item.begin, item.end);
    item.begin += begin;
    item.end += begin;
    header.items.emplace(name, std::move(item));
  }
  // Neither holes, in which anything could hide, nor bytes that two tensors share.
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto& range : ranges) {
    TORCH_CHECK(range.first == end, "[accelerate] ", path,
                " is no safetensors file: its tensors overlap or leave holes");
    end = range.second;
  }
  TORCH_CHECK(end == data_size, "[accelerate] ", path, " is no safetensors file: ", data_size - end,
              " bytes of it belong to no tensor");
  return header;
}

}  // namespace

void detail::write_safetensors(FileWriter& file, const NamedTensors& tensors,
                               const std::map<std::string, std::string>& metadata, const std::string& path) {
  write_entries(file, sorted_entries(tensors, path), metadata);
}

void save_safetensors(const NamedTensors& tensors, const std::string& path,
                      const std::map<std::string, std::string>& metadata) {
  const std::string temporary =
      detail::parent_of(path) + "/." + detail::name_of(path) + "." + std::to_string(getpid()) + ".tmp";
  try {
    detail::FileWriter file(temporary);
    detail::write_safetensors(file, tensors, metadata, path);
    file.close();
    detail::rename_file(temporary, path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

Safetensors load_safetensors(const std::string& path) {
  const detail::FileReader file(path);
  Header header = read_header(file, path);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (const auto& [name, item] : header.items) {
    at::Tensor tensor = torch::empty(item.shape, item.type);
    file.read(item.begin, tensor.data_ptr(), item.end - item.begin);
    result.tensors.emplace(name, std::move(tensor));
  }
  return result;
}

}  // namespace accelerate
