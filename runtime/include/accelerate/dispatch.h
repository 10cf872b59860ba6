#pragma once

/// Batches that the main process reads and the others get from it.

#include <accelerate/batch.h>
#include <accelerate/export.h>
#include <accelerate/sharing.h>
#include <torch/data/dataloader_options.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {
namespace detail {

/// Whether batches of a type can be sent. They are made anew from default-constructed ones.
template <typename T>
constexpr bool is_sendable();

template <typename Tie>
inline constexpr bool are_sendable = false;
template <typename... T>
inline constexpr bool are_sendable<std::tuple<T&...>> = (is_sendable<T>() && ...);

template <typename T>
constexpr bool is_sendable() {
  if constexpr (is_tensor<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (!std::is_default_constructible_v<T>) {
    return false;
  } else if constexpr (has_fields<T>) {
    return are_sendable<decltype(BatchFields<T>::of(std::declval<T&>()))>;
  } else if constexpr (is_vector<T> || is_optional<T>) {
    return is_sendable<typename T::value_type>();
  } else if constexpr (is_map<T>) {
    return is_sendable<typename T::key_type>() && is_sendable<typename T::mapped_type>();
  } else {
    return false;
  }
}

/// A batch on its way to other ranks.
struct PackedBatch {
  std::string bytes;  // numbers, strings, sizes
  std::vector<torch::Tensor> tensors;
};

template <typename T>
void pack(const T& x, PackedBatch& out);

inline void pack_size(std::size_t size, PackedBatch& out) { pack(static_cast<uint64_t>(size), out); }

template <typename T>
void pack(const T& x, PackedBatch& out) {
  if constexpr (is_tensor<T>) {
    out.tensors.push_back(x);
  } else if constexpr (has_fields<T>) {
    std::apply([&](const auto&... field) { (pack(field, out), ...); }, fields_of(x));
  } else if constexpr (is_vector<T>) {
    pack_size(x.size(), out);
    for (auto&& element : x) {
      pack<typename T::value_type>(element, out);
    }
  } else if constexpr (is_map<T>) {
    pack_size(x.size(), out);
    for (const auto& [key, value] : x) {
      pack(key, out);
      pack(value, out);
    }
  } else if constexpr (is_optional<T>) {
    pack_size(x.has_value() ? 1 : 0, out);
    if (x) {
      pack(*x, out);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    pack_size(x.size(), out);
    out.bytes += x;
  } else {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    out.bytes.append(reinterpret_cast<const char*>(&x), sizeof(x));
  }
}

/// Reads a packed batch from its beginning.
class ACCELERATE_API BatchReader {
 public:
  explicit BatchReader(const PackedBatch& batch) : batch_(batch) {}
  const torch::Tensor& tensor();
  const char* bytes(std::size_t size);
  std::size_t size();

 private:
  const PackedBatch& batch_;
  std::size_t tensors_ = 0, bytes_ = 0;
};

template <typename T>
void unpack(T& x, BatchReader& in) {
  if constexpr (is_tensor<T>) {
    x = in.tensor();
  } else if constexpr (has_fields<T>) {
    std::apply([&](auto&... field) { (unpack(field, in), ...); }, BatchFields<T>::of(x));
  } else if constexpr (is_vector<T>) {
    x.clear();
    for (std::size_t left = in.size(); left > 0; --left) {
      typename T::value_type element{};
      unpack(element, in);
      x.push_back(std::move(element));
    }
  } else if constexpr (is_map<T>) {
    x.clear();
    for (std::size_t left = in.size(); left > 0; --left) {
      typename T::key_type key{};
      unpack(key, in);
      unpack(x[key], in);
    }
  } else if constexpr (is_optional<T>) {
    x.reset();
    if (in.size() > 0) {
      unpack(x.emplace(), in);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    const std::size_t size = in.size();
    x.assign(in.bytes(size), size);
  } else {
    std::memcpy(&x, in.bytes(sizeof(x)), sizeof(x));
  }
}

/// What came of a step that the main process read.
struct ReadStep {
  bool end = false;
  std::exception_ptr error;  // on the main process
  int64_t rows = 0;
  PackedBatch batch;
};

/// Gives all ranks the main process's step, and the state of its default CPU generator, which reading may have moved.
/// Throws on all ranks if it couldn't be read. (collective)
ACCELERATE_API void send_step(ReadStep& step);

/// What rank `from_process` has packed, on all ranks. (collective)
ACCELERATE_API void broadcast_packed(PackedBatch& values, int64_t from_process);

/// torch::data hands out a batch of an unstacked data set as a vector of its rows, even where these are tensors.
enum class ListMeaning { rows, by_type };

template <ListMeaning kList, typename Batch>
int64_t rows_of(const Batch& batch) {
  if constexpr (kList == ListMeaning::rows && is_vector<Batch>) {
    return static_cast<int64_t>(batch.size());
  } else {
    RowCount count(0);
    count_rows(batch, count);
    return count.rows();
  }
}

template <ListMeaning kList, typename Batch>
void keep_slice(Batch& batch, const RowSlice& slice) {
  if constexpr (kList == ListMeaning::rows && is_vector<Batch>) {
    slice_list(batch, slice.begin, slice.rows);
  } else {
    slice_rows(batch, slice.begin, slice.rows, 0);
  }
}

template <ListMeaning kList, typename Batch>
Batch join_batches(std::vector<Batch> batches) {
  if (batches.size() > 1) {
    if constexpr (kList == ListMeaning::rows && is_vector<Batch>) {
      for (std::size_t i = 1; i < batches.size(); ++i) {
        batches[0].insert(batches[0].end(), batches[i].begin(), batches[i].end());
      }
    } else {
      std::vector<Batch*> parts;
      for (Batch& batch : batches) {
        parts.push_back(&batch);
      }
      join(parts);
    }
  }
  return std::move(batches[0]);
}

/// A step's batches, joined; none at the end. `next` is the source's next batch, or none.
template <ListMeaning kList, typename Batch, typename Next>
std::optional<Batch> read_batches(Next next, Sharing sharing, const torch::data::FullDataLoaderOptions& options) {
  const auto wanted = static_cast<std::size_t>(batches_of_step(sharing));
  std::vector<Batch> batches;
  while (batches.size() < wanted) {
    std::optional<Batch> batch = next();
    if (!batch) {
      break;
    }
    batches.push_back(std::move(*batch));
  }
  if (batches.empty()) {
    return std::nullopt;
  }
  if (sharing == Sharing::rounds && options.drop_last &&
      (batches.size() < wanted || rows_of<kList>(batches.back()) < static_cast<int64_t>(options.batch_size))) {
    return std::nullopt;
  }
  return join_batches<kList>(std::move(batches));
}

[[noreturn]] ACCELERATE_API void throw_empty_batch();

/// One step of a source that only the main process reads: `read` returns its batches (joined), or none at the end.
/// Every rank gets its slice. (collective)
template <ListMeaning kList, typename Batch, typename Read>
std::optional<Batch> read_and_send(Read read, RowSlice& slice) {
  static_assert(is_sendable<Batch>(),
                "accelerate: a batch of this type can't be sent to other ranks; specialize accelerate::BatchFields for "
                "it (and make it default-constructible)");
  std::optional<Batch> batch;
  ReadStep step;
  if (rank() == 0) {
    try {
      batch = read();
      step.end = !batch;
      if (batch) {
        step.rows = rows_of<kList>(*batch);
        pack(*batch, step.batch);
      }
    } catch (...) {
      step.error = std::current_exception();
    }
  }
  send_step(step);
  if (step.end) {
    return std::nullopt;
  }
  if (rank() != 0) {
    batch.emplace();
    BatchReader reader(step.batch);
    unpack(*batch, reader);
  }
  if (step.rows == 0) {
    throw_empty_batch();
  }
  slice = slice_of(step.rows);
  keep_slice<kList>(*batch, slice);
  return batch;
}

/// The same for a source that gives equal batches on every rank: nothing is sent.
template <ListMeaning kList, typename Batch, typename Read>
std::optional<Batch> read_and_slice(Read read, RowSlice& slice) {
  std::optional<Batch> batch = read();
  if (batch) {
    const int64_t rows = rows_of<kList>(*batch);
    if (rows == 0) {
      throw_empty_batch();
    }
    slice = slice_of(rows);
    keep_slice<kList>(*batch, slice);
  }
  return batch;
}

}  // namespace detail
}  // namespace accelerate
