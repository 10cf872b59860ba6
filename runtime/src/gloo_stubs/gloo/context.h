#pragma once
// What ProcessGroupGloo.hpp needs to know of gloo's context. See README.md.

#include <chrono>

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
