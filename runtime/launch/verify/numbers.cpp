#include "numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace accelerate::launch {

namespace {

// What trained numbers look like. Few of the words of compressed data do, read as floats.
bool IsPlausible(double x) { return x == 0 || (std::abs(x) > 1e-12 && std::abs(x) < 1e12); }

template <typename Number>
std::optional<double> DistanceAs(const std::string& a, const std::string& b, std::size_t begin) {
  double differences = 0;
  double norm = 0;
  std::size_t read = begin;  // what differs before it, or in a last word that isn't whole, is none of these
  if (a.compare(0, begin, b, 0, begin) != 0) return std::nullopt;
  for (; read + sizeof(Number) <= a.size(); read += sizeof(Number)) {
    if (std::memcmp(&a[read], &b[read], sizeof(Number)) == 0) continue;
    Number x = 0;
    Number y = 0;
    std::memcpy(&x, &a[read], sizeof(Number));
    std::memcpy(&y, &b[read], sizeof(Number));
    if (!IsPlausible(x) || !IsPlausible(y)) return std::nullopt;  // not-a-number isn't, either
    differences += std::pow(static_cast<double>(x) - y, 2);
    norm += std::max(std::pow(static_cast<double>(x), 2), std::pow(static_cast<double>(y), 2));
  }
  if (a.compare(read, std::string::npos, b, read, std::string::npos) != 0) return std::nullopt;
  return norm > 0 ? std::sqrt(differences / norm) : 0;
}

bool DifferByOneAtMost(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](unsigned char x, unsigned char y) { return std::abs(x - y) <= 1; });
}

}  // namespace

std::optional<double> NumberDistance(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return std::nullopt;
  if (DifferByOneAtMost(a, b)) return 0;
  std::optional<double> nearest;
  const auto take = [&](const std::optional<double>& distance) {
    if (distance && (!nearest || *distance < *nearest)) nearest = distance;
  };
  for (std::size_t begin = 0; begin < sizeof(double) && begin < a.size(); ++begin) {
    if (begin < sizeof(float)) take(DistanceAs<float>(a, b, begin));
    take(DistanceAs<double>(a, b, begin));
  }
  return nearest;
}

}  // namespace accelerate::launch
