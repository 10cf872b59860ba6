#pragma once

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <cstdlib>
#include <string>

/// A folder that all ranks know and that goes with the object. (collective)
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/accelerate-test-XXXXXX";
    torch::Tensor bytes = torch::zeros({sizeof(name)}, torch::kUInt8);
    if (accelerator_.is_main_process()) {
      std::memcpy(bytes.data_ptr(), mkdtemp(name), sizeof(name));
    }
    bytes = accelerator_.broadcast(bytes);
    path_ = static_cast<const char*>(bytes.data_ptr());
  }
  ~TemporaryFolder() {
    accelerator_.wait_for_everyone();
    if (accelerator_.is_main_process()) {
      (void)!std::system(("rm -rf " + path_).c_str());
    }
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  accelerate::Accelerator accelerator_;
  std::string path_;
};
