#include <accelerate/batch.h>
#include <accelerate/sharing.h>

namespace accelerate::detail {

namespace {

/// Of two tensors without dimensions; a not-a-number is as another.
bool same_scalar(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) {
    return false;
  }
  const torch::Tensor x = a.detach().cpu(), y = b.detach().cpu();
  return torch::equal(x, y) || (x.ne(x).item<bool>() && y.ne(y).item<bool>());
}

}  // namespace

void RowCount::see(const torch::Tensor& x) {
  if (!x.defined() || x.dim() == 0) {
    return;
  }
  TORCH_CHECK(dim_ >= 0 && dim_ < x.dim(), "[accelerate] rank ", rank(), " of ", ranks(),
              ": a batch's rows are in dimension ", dim_, ", which a tensor of the batch, ", x.sizes(),
              ", doesn't have");
  see(x.size(dim_));
}

void RowCount::see_list(std::size_t size) { see(static_cast<int64_t>(size)); }

void RowCount::see(int64_t rows) {
  TORCH_CHECK(!rows_ || *rows_ == rows, "[accelerate] rank ", rank(), " of ", ranks(),
              ": the parts of a batch have different numbers of rows (", *rows_, " and ", rows,
              "); leave what isn't shared by rows out of the batch, or out of its BatchFields");
  rows_ = rows;
}

int64_t RowCount::rows() const {
  TORCH_CHECK(rows_, "[accelerate] rank ", rank(), " of ", ranks(),
              ": nothing in a batch has rows to be shared out; if its type is your own, specialize "
              "accelerate::BatchFields for it");
  return *rows_;
}

torch::Tensor join_tensors(const std::vector<torch::Tensor*>& parts) {
  std::vector<torch::Tensor> tensors;
  for (const torch::Tensor* part : parts) {
    if (part->defined() != parts[0]->defined()) {
      throw_unlike_parts("tensors that are undefined");
    }
    if (part->defined() && (part->dim() == 0) != (parts[0]->dim() == 0)) {
      throw_unlike_parts("tensors that have rows");
    }
    if (part != parts[0] && part->defined() && part->dim() == 0 && !same_scalar(*part, *parts[0])) {
      throw_unlike_parts("values of a tensor without rows");
    }
    if (part->defined() && part->dim() > 0) {
      tensors.push_back(*part);
    }
  }
  return tensors.empty() ? *parts[0] : torch::cat(tensors);
}

void throw_unlike_parts(const char* what) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": batches that are to be joined differ in the ",
              what);
}

}  // namespace accelerate::detail
