#pragma once
// What ProcessGroupGloo.hpp needs to know of gloo's transport. See README.md.

namespace gloo::transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};
}  // namespace gloo::transport
