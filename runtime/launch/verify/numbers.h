#pragma once

#include <optional>
#include <string>

namespace accelerate::launch {

/// How far apart two files of one size are whose bytes differ, if what differs are numbers: floats or doubles, at any
/// alignment. The norm of the differences, relative to that of the numbers that differ; 0 if they are bytes that differ
/// by one, as rounded levels of an image do. Of several readings the one in which they are nearest: what is found is a
/// difference in any. None if they can't be numbers (compressed data), or sizes differ.
std::optional<double> NumberDistance(const std::string& a, const std::string& b);

}  // namespace accelerate::launch
