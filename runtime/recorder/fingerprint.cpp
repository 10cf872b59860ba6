#include "fingerprint.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstring>

namespace accelerate::recorder {
namespace {

// The finalizer of SplitMix64: every bit of the result depends on every bit of x.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t hash_of(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = mix(size);
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    hash = mix(hash ^ word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes, size);
  return mix(hash ^ rest);
}

}  // namespace

Fingerprint fingerprint(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  at::Tensor x = tensor.detach();
  if (x.layout() != at::kStrided) {
    x = x.to_dense();  // gradients of sparse embeddings
  }
  if (x.is_complex()) {
    x = at::view_as_real(x.resolve_conj());
  }
  x = x.to(at::kCPU).contiguous();
  Fingerprint result;
  result.hash = hash_of(x.const_data_ptr(), x.nbytes());
  x = x.to(at::kDouble);
  const double* values = x.const_data_ptr<double>();
  double squares = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    squares += values[i] * values[i];
    uint64_t signs = mix(static_cast<uint64_t>(i));
    for (double& sum : result.sketch) {
      sum += (signs & 1) != 0 ? values[i] : -values[i];
      signs >>= 1;
    }
  }
  result.norm = std::sqrt(squares);
  return result;
}

}  // namespace accelerate::recorder
