#include "same_on_all.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "group.h"
#include "state.h"

namespace accelerate::detail {
namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

/// The text of one rank, on all of them.
std::string text_of(Group& group, int64_t from, const std::string& mine, int64_t length) {
  at::Tensor bytes = torch::zeros({length}, torch::kUInt8);
  if (rank() == from) {
    std::copy(mine.begin(), mine.end(), static_cast<char*>(bytes.data_ptr()));  // also of no length
  }
  group.broadcast(bytes, from, "a description");
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(length)};
}

}  // namespace

std::string describe(const std::string& name, const at::Tensor& x) {
  std::ostringstream out;
  out << name << ": " << x.scalar_type() << ' ' << x.sizes();
  return out.str();
}

void check_same_on_all(Group& group, const std::string& operation, const std::vector<std::string>& lines) {
  const std::string text = join(lines);
  const at::Tensor digest = torch::tensor(
      {static_cast<int64_t>(text.size()), static_cast<int64_t>(std::hash<std::string>{}(text))}, torch::kInt64);
  const std::vector<at::Tensor> digests = group.gather(digest, operation);
  for (size_t other = 1; other < digests.size(); ++other) {
    if (torch::equal(digests[other], digests[0])) {
      continue;
    }
    // All ranks see the same digests, so all come here and tell the same story.
    std::istringstream first(text_of(group, 0, text, digests[0][0].item<int64_t>()));
    std::istringstream second(text_of(group, static_cast<int64_t>(other), text, digests[other][0].item<int64_t>()));
    std::string a, b;
    while (a == b && (first || second)) {
      a.clear();
      b.clear();
      std::getline(first, a);
      std::getline(second, b);
    }
    TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": ", operation, " differs between ranks: `",
                a.empty() ? "nothing" : a, "` on rank 0, `", b.empty() ? "nothing" : b, "` on rank ", other);
  }
}

}  // namespace accelerate::detail
