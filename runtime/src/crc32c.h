#pragma once

#include <cstddef>
#include <cstdint>

namespace accelerate::detail {

/// CRC-32C (Castagnoli), as in TensorFlow's records and iSCSI. Give the result back as `crc` to go on with more bytes.
uint32_t crc32c(const void* bytes, size_t size, uint32_t crc = 0);

}  // namespace accelerate::detail
