/// In place of backend_nccl.cpp, where LibTorch has no NCCL or its header wasn't found.

#include <c10/util/Exception.h>

#include "group_impl.h"

namespace accelerate::detail {

bool has_nccl() { return false; }

void add_nccl(c10d::ProcessGroup&, const c10::intrusive_ptr<c10d::Store>&, const Environment&) {
  TORCH_CHECK(false, "[accelerate] built without NCCL");
}

}  // namespace accelerate::detail
