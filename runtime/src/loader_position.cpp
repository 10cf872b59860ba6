#include <accelerate/loader_position.h>

namespace accelerate::detail {

void LoaderPosition::save(torch::serialize::OutputArchive& archive) const {
  std::vector<int64_t> sizes, indices;
  for (const auto& request : drawn) {
    sizes.push_back(static_cast<int64_t>(request.size()));
    indices.insert(indices.end(), request.begin(), request.end());
  }
  archive.write("epoch", c10::IValue(epoch));
  archive.write("batches", c10::IValue(batches));
  archive.write("under_way", c10::IValue(under_way));
  if (random_state.defined()) {
    archive.write("random_state", random_state, /*is_buffer=*/true);
  }
  archive.write("sampler", c10::IValue(sampler));
  archive.write("drawn_sizes", torch::tensor(sizes, torch::kInt64), /*is_buffer=*/true);
  archive.write("drawn", torch::tensor(indices, torch::kInt64), /*is_buffer=*/true);
}

void LoaderPosition::load(torch::serialize::InputArchive& archive) {
  const auto read = [&](const char* name) {
    c10::IValue value;
    archive.read(name, value);
    return value;
  };
  epoch = read("epoch").toInt();
  batches = read("batches").toInt();
  under_way = read("under_way").toBool();
  archive.try_read("random_state", random_state, /*is_buffer=*/true);
  sampler = read("sampler").toStringRef();
  at::Tensor sizes, indices;
  archive.read("drawn_sizes", sizes, /*is_buffer=*/true);
  archive.read("drawn", indices, /*is_buffer=*/true);
  drawn.clear();
  const auto* next = indices.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    const int64_t size = sizes[i].item<int64_t>();
    drawn.emplace_back(next, next + size);
    next += size;
  }
}

}  // namespace accelerate::detail
