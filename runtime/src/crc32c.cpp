#include "crc32c.h"

#include <array>
#include <cstring>

namespace accelerate::detail {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

/// tables[0] advances the remainder by one byte; tables[k] by a byte that k zero bytes follow.
Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82F63B78U : 0);  // the polynomial, reflected
    }
    tables[0][byte] = remainder;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

}  // namespace

uint32_t crc32c(const void* bytes, size_t size, uint32_t crc) {
  static const Tables tables = make_tables();
  const auto* p = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8) {  // eight bytes at a time: checkpoints are large
    uint32_t low = 0, high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xFF] ^ tables[6][(low >> 8) & 0xFF] ^ tables[5][(low >> 16) & 0xFF] ^ tables[4][low >> 24] ^
          tables[3][high & 0xFF] ^ tables[2][(high >> 8) & 0xFF] ^ tables[1][(high >> 16) & 0xFF] ^
          tables[0][high >> 24];
  }
  for (; size > 0; --size, ++p) {
    crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xFF];
  }
  return ~crc;
}

}  // namespace accelerate::detail
