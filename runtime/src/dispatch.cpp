#include <accelerate/dispatch.h>

#include "outcome.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// Tensors travel in one buffer for each kind of device; every one begins where any type may begin.
constexpr int64_t kAlignment = 64;

int64_t padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A tensor in words that another rank can make it from.
void describe(const torch::Tensor& x, PackedBatch& out) {
  pack(x.defined(), out);
  if (x.defined()) {
    TORCH_CHECK(x.layout() == torch::kStrided && !x.is_quantized(),
                "[accelerate] a batch that is sent to other ranks has to be of dense tensors");
    pack(x.is_cuda(), out);
    pack(static_cast<int>(x.scalar_type()), out);
    pack(x.sizes().vec(), out);
  }
}

torch::Tensor described(BatchReader& in) {
  bool defined = false;
  unpack(defined, in);
  if (!defined) {
    return {};
  }
  bool cuda = false;
  int type = 0;
  std::vector<int64_t> sizes;
  unpack(cuda, in);
  unpack(type, in);
  unpack(sizes, in);
  const torch::Device device = cuda ? state().device : torch::Device(torch::kCPU);
  return torch::empty(sizes, torch::dtype(static_cast<torch::ScalarType>(type)).device(device));
}

/// The tensors' bytes, as one tensor for those on the CPU and one for those on CUDA.
void send_tensors(std::vector<torch::Tensor>& tensors, int64_t from, const std::string& what) {
  for (const bool cuda : {false, true}) {
    int64_t size = 0;
    for (const torch::Tensor& x : tensors) {
      if (x.defined() && x.is_cuda() == cuda) {
        size += padded(static_cast<int64_t>(x.nbytes()));
      }
    }
    if (size == 0) {
      continue;
    }
    const torch::Device device = cuda ? state().device : torch::Device(torch::kCPU);
    torch::Tensor buffer = torch::zeros({size}, torch::dtype(torch::kUInt8).device(device));
    const auto each = [&](auto use) {
      int64_t begin = 0;
      for (torch::Tensor& x : tensors) {
        if (x.defined() && x.is_cuda() == cuda && x.numel() > 0) {
          const auto bytes = static_cast<int64_t>(x.nbytes());
          use(x, buffer.narrow(0, begin, bytes).view(x.scalar_type()).reshape(x.sizes()));
          begin += padded(bytes);
        }
      }
    };
    if (rank() == from) {
      each([](torch::Tensor& x, const torch::Tensor& place) { place.copy_(x.detach()); });
    }
    state().group->broadcast(buffer, from, what);
    each([](torch::Tensor& x, const torch::Tensor& place) { x = place; });
  }
}

std::string bytes_of(const torch::Tensor& x) {
  return {static_cast<const char*>(x.data_ptr()), static_cast<size_t>(x.numel())};
}

}  // namespace

const torch::Tensor& BatchReader::tensor() { return batch_.tensors.at(tensors_++); }

const char* BatchReader::bytes(std::size_t size) {
  TORCH_CHECK(bytes_ + size <= batch_.bytes.size(), "[accelerate] rank ", rank(),
              ": a batch from the main process is shorter than its type says; are the ranks the same program?");
  bytes_ += size;
  return batch_.bytes.data() + bytes_ - size;
}

std::size_t BatchReader::size() {
  uint64_t size = 0;
  unpack(size, *this);
  return static_cast<std::size_t>(size);
}

void send_step(ReadStep& step) {
  Group& group = *state().group;
  enum Outcome : int64_t { kBatch, kEnd, kError };
  PackedBatch message;  // its bytes: the outcome, what the tensors are, the batch's bytes
  if (rank() == 0) {
    if (!step.error) {
      try {
        pack(step.end ? kEnd : kBatch, message);
        pack(bytes_of(random_state()), message);
        pack(step.rows, message);
        pack(step.batch.bytes, message);
        pack_size(step.batch.tensors.size(), message);
        for (const torch::Tensor& x : step.batch.tensors) {
          describe(x, message);
        }
      } catch (...) {
        step.error = std::current_exception();
      }
    }
    if (step.error) {
      message = PackedBatch();
      pack(kError, message);
      pack(text_of(step.error), message);
    }
  }
  torch::Tensor size = torch::scalar_tensor(static_cast<int64_t>(message.bytes.size()), torch::kInt64);
  group.broadcast(size, 0, "a batch's description");
  torch::Tensor bytes = torch::empty({size.item<int64_t>()}, torch::kUInt8);
  if (rank() == 0) {
    std::memcpy(bytes.data_ptr(), message.bytes.data(), message.bytes.size());
  }
  group.broadcast(bytes, 0, "a batch's description");
  if (rank() == 0) {
    if (step.error) {
      std::rethrow_exception(step.error);
    }
  } else {
    message.bytes.assign(static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel()));
    BatchReader reader(message);
    Outcome outcome = kBatch;
    unpack(outcome, reader);
    if (outcome == kError) {
      std::string text;
      unpack(text, reader);
      TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(),
                  ": the main process couldn't read a batch: ", text);
    }
    step.end = outcome == kEnd;
    std::string state;
    unpack(state, reader);
    set_random_state(torch::from_blob(state.data(), {static_cast<int64_t>(state.size())}, torch::kUInt8));
    unpack(step.rows, reader);
    unpack(step.batch.bytes, reader);
    step.batch.tensors.resize(reader.size());
    for (torch::Tensor& x : step.batch.tensors) {
      x = described(reader);
    }
  }
  send_tensors(step.batch.tensors, 0, "a batch");
}

void broadcast_packed(PackedBatch& values, int64_t from_process) {
  TORCH_CHECK(from_process >= 0 && from_process < ranks(), "[accelerate] rank ", rank(), " of ", ranks(),
              ": broadcast(): there is no process ", from_process);
  PackedBatch message;  // its bytes: an error, or none and the values' bytes and what the tensors are
  std::exception_ptr error;
  if (rank() == from_process) {
    try {
      pack(std::string(), message);
      pack(values.bytes, message);
      pack_size(values.tensors.size(), message);
      for (const torch::Tensor& x : values.tensors) {
        describe(x, message);
      }
    } catch (...) {
      error = std::current_exception();
      message = PackedBatch();
      pack(text_of(error), message);
    }
  }
  message.bytes = text_of_process(from_process, message.bytes, "the values of broadcast()");
  if (error) {
    std::rethrow_exception(error);
  }
  if (rank() != from_process) {
    BatchReader reader(message);
    std::string text;
    unpack(text, reader);
    TORCH_CHECK(text.empty(), "[accelerate] rank ", rank(), " of ", ranks(), ": broadcast() failed on rank ",
                from_process, ": ", text);
    unpack(values.bytes, reader);
    values.tensors.resize(reader.size());
    for (torch::Tensor& x : values.tensors) {
      x = described(reader);
    }
  }
  send_tensors(values.tensors, from_process, "the tensors of broadcast()");
}

void throw_empty_batch() {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(),
              ": a batch of no rows can't be shared out; skip such batches where they are made");
}

}  // namespace accelerate::detail
