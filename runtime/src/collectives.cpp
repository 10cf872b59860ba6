#include <ATen/ExpandUtils.h>
#include <accelerate/collectives.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "collectives_impl.h"
#include "same_on_all.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// Larger tensors aren't copied together with others, nor widened.
constexpr int64_t kLarge = 1 << 16;

/// The types in which small values travel together. Sums of small integers are exact in 64 bits.
at::ScalarType wide(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? at::kLong : at::kDouble;
}

/// Up to this many integers travel with the floating-point numbers that are there as well, so that a loss and a count
/// are one message.
constexpr int64_t kFewIntegers = 1000;

/// Each as three numbers, whose sums over the ranks a double holds exactly: 22 bits, 22 bits, and the rest with its
/// sign.
constexpr int64_t kBits = 22, kMask = (int64_t{1} << kBits) - 1;

at::Tensor in_parts(const at::Tensor& integers) {
  const at::Tensor x = integers.to(at::kLong);
  return torch::cat(
             {x.bitwise_and(kMask), x.bitwise_right_shift(kBits).bitwise_and(kMask), x.bitwise_right_shift(2 * kBits)})
      .to(at::kDouble);
}

/// The sums of integers, which wrap as those of 64 bits do.
at::Tensor from_parts(const at::Tensor& parts) {
  const auto x = parts.to(at::kLong).chunk(3);
  return x[0] + x[1].bitwise_left_shift(kBits) + x[2].bitwise_left_shift(2 * kBits);
}

/// Small values travel in a message of this many numbers, whatever their own: Gloo doesn't notice if ranks differ in
/// that, some get wrong results then, others wait or end. The last two say what they are, for all ranks to compare.
constexpr int64_t kMessage = 32;

/// What shapes and types come to, in few enough bits for sums of its squares to be exact in a double.
class Signature {
 public:
  explicit Signature(const std::string& operation) { add(static_cast<int64_t>(std::hash<std::string>{}(operation))); }
  void add(int64_t x) {
    bits_ = (bits_ ^ static_cast<uint64_t>(x)) * 0x9E3779B97F4A7C15U;
    bits_ ^= bits_ >> 29U;
  }
  void add(const at::Tensor& x, int64_t from_dimension = 0) {
    add(static_cast<int64_t>(x.scalar_type()));
    add(x.dim());
    for (int64_t d = from_dimension; d < x.dim(); ++d) {
      add(x.size(d));
    }
  }
  int64_t value() const { return static_cast<int64_t>(bits_ >> 44U); }

 private:
  uint64_t bits_ = 0;
};

/// The error that all ranks throw who find that their signatures differ. (collective)
[[noreturn]] void throw_differing(const std::string& name, const std::vector<std::string>& lines) {
  check_same_on_all(*state().group, name, lines);
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": ", name,
              " came to other ranks' results of another operation; all ranks have to call the same ones in one order");
}

/// The rest of values of which the first have travelled in a message.
at::Tensor rest_of(const at::Tensor& values) {
  const int64_t sent = std::min(values.numel(), kMessage - 2);
  return values.narrow(0, sent, values.numel() - sent);
}

/// Values of the host's added up over the ranks. False, on all ranks, if their signatures differ.
bool add_up(Group& group, at::Tensor& values, const Signature& signature, const std::string& what) {
  const int64_t first = std::min(values.numel(), kMessage - 2);
  at::Tensor message = torch::zeros({kMessage}, values.options());
  message.narrow(0, 0, first).copy_(values.narrow(0, 0, first));
  message[kMessage - 2].fill_(signature.value());
  message[kMessage - 1].fill_(signature.value() * signature.value());
  group.sum(message, what);
  // The mean of the squares is the square of the mean only where all are equal.
  const auto n = static_cast<double>(signature.value()), all = static_cast<double>(ranks());
  if (message[kMessage - 2].item<double>() != n * all || message[kMessage - 1].item<double>() != n * n * all) {
    return false;
  }
  values.narrow(0, 0, first).copy_(message.narrow(0, 0, first));
  if (at::Tensor rest = rest_of(values); rest.numel() > 0) {
    group.sum(rest, what);
  }
  return true;
}

/// A copy's bytes, one after the other (a view needs a stride of 1 even where a dimension has one element).
at::Tensor bytes_of(const at::Tensor& x) {
  at::Tensor flat = torch::empty({x.numel()}, x.options());
  flat.copy_(x.detach().reshape({-1}));
  return flat.view(torch::kUInt8);
}

}  // namespace

void sum_tensors(std::vector<at::Tensor>& tensors, const std::string& name) {
  State& s = state();
  const std::vector<torch::Tensor> given = tensors;
  const auto lines = [&] {
    std::vector<std::string> result;
    for (const at::Tensor& x : given) {
      result.push_back(x.defined() ? describe(name, x) : name + ": undefined");
    }
    return result;
  };
  s.group->compare(lines);
  std::map<std::pair<int, at::ScalarType>, std::vector<size_t>> together;  // by device and travelling type
  std::vector<size_t> large;
  Signature signature(name);
  bool on_host = tensors.empty();  // others may have some
  for (size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor& x = tensors[i];
    if (!x.defined()) {  // maybe here alone: the others have to hear of it
      signature.add(-1);
      x = torch::zeros({0}, at::kLong);
    }
    x = x.detach();
    signature.add(x);
    on_host = on_host || x.is_cpu();
    const bool narrow = at::isIntegralType(x.scalar_type(), true) && x.scalar_type() != at::kLong;
    if (x.is_complex() || (x.numel() > kLarge && !narrow)) {
      large.push_back(i);
    } else {
      const int device = x.is_cpu() ? -1 : x.device().index();
      together[{device, wide(x.scalar_type())}].push_back(i);
    }
  }
  for (auto it = together.begin(); it != together.end();) {
    const auto& [device, kind] = it->first;
    const auto numbers = together.find({device, at::kDouble});
    int64_t count = 0;
    for (const size_t i : it->second) {
      count += tensors[i].numel();
    }
    if (kind == at::kLong && numbers != together.end() && count <= kFewIntegers) {
      numbers->second.insert(numbers->second.end(), it->second.begin(), it->second.end());
      it = together.erase(it);
    } else {
      ++it;
    }
  }
  if (on_host && (together.empty() || together.begin()->first.first >= 0)) {
    at::Tensor nothing = torch::zeros({0}, at::kLong);
    if (!add_up(*s.group, nothing, signature, "shapes")) {
      throw_differing(name, lines());
    }
    on_host = false;
  }
  for (const auto& [kind, indices] : together) {
    const auto travels_in_parts = [to = kind.second](const at::Tensor& x) { return wide(x.scalar_type()) != to; };
    std::vector<at::Tensor> flat;
    for (const size_t i : indices) {
      const at::Tensor x = tensors[i].reshape({-1});
      flat.push_back(travels_in_parts(x) ? in_parts(x) : x.to(kind.second));
    }
    at::Tensor sum = flat.size() == 1 ? flat[0].clone() : torch::cat(flat);
    const std::string what = indices.size() == 1 ? "a value" : std::to_string(indices.size()) + " values";
    if (on_host && !add_up(*s.group, sum, signature, what)) {
      throw_differing(name, lines());
    }
    if (!on_host && sum.numel() > 0) {  // a GPU's signature would have to be waited for
      s.group->sum(sum, what);
    }
    on_host = false;  // once is enough
    int64_t begin = 0;
    for (const size_t i : indices) {
      at::Tensor& x = tensors[i];
      const bool in_three = travels_in_parts(x);
      const at::Tensor part = sum.narrow(0, begin, in_three ? 3 * x.numel() : x.numel());
      begin += part.numel();
      x = (in_three ? from_parts(part) : part)
              .reshape(x.sizes())
              .to(x.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    }
  }
  for (const at::Tensor& x : given) {
    TORCH_CHECK(x.defined(), "[accelerate] rank ", rank(), " of ", ranks(), ": ", name,
                " was given an undefined tensor");
  }
  for (const size_t i : large) {
    at::Tensor& x = tensors[i];
    at::Tensor sum = x.is_complex() ? at::view_as_real(x).contiguous().clone() : x.contiguous().clone();
    s.group->sum(sum, "a tensor");
    x = x.is_complex() ? at::view_as_complex(sum) : sum;
  }
}

void reduce_tensors(std::vector<torch::Tensor>& tensors) { sum_tensors(tensors, "reduce()"); }

void check_same_keys(const std::vector<std::string>& keys) {
  check_same_on_all(*state().group, "what reduce() was given", keys);
}

void overwrite(const torch::Tensor& target, const torch::Tensor& value) { target.detach().copy_(value); }

double row_share() {
  const RowSlice* batch = state().counting_slice();
  if (!batch) {
    return 1.0 / static_cast<double>(ranks());
  }
  return batch->ghost ? 0 : static_cast<double>(batch->rows) / static_cast<double>(batch->global_rows);
}

bool holds_ghost() {
  const RowSlice* batch = state().counting_slice();
  return batch && batch->ghost && state().wholes == 0;
}

namespace {

/// Whether what is asked about is the batch in hand, of which each rank has its rows.
bool in_hand() {
  const State& s = state();
  return !s.alone() && s.training_loader && s.wholes == 0;
}

}  // namespace

Whole::Whole() { ++state().wholes; }
Whole::~Whole() { --state().wholes; }

int64_t global_rows(int64_t local_rows) {
  const State& s = state();
  if (!in_hand()) {
    return local_rows;
  }
  TORCH_CHECK(local_rows == s.training_slice.rows, "[accelerate] rank ", rank(), ": global_rows() was asked about ",
              local_rows, " rows, but the training batch in hand has ", s.training_slice.rows, " on this rank");
  return s.training_slice.global_rows;
}

torch::Tensor own_rows(const torch::Tensor& whole, int64_t for_each) {
  const State& s = state();
  if (!in_hand()) {
    return whole;
  }
  TORCH_CHECK(for_each > 0, "[accelerate] rank ", rank(), ": own_rows() takes 1 row or more for each of the batch's, not ",
              for_each);
  const int64_t rows = s.training_slice.global_rows * for_each;
  if (whole.dim() > 0 && whole.size(0) == 1 && rows != 1) {
    return whole;  // broadcast along the rows, whatever rank they are on
  }
  TORCH_CHECK(whole.dim() > 0 && whole.size(0) == rows, "[accelerate] rank ", rank(),
              ": own_rows() takes a tensor with the ", rows, for_each > 1 ? " rows for those" : " rows",
              " of the global batch, or one, and this one is ", whole.sizes());
  return whole.narrow(0, s.training_slice.begin * for_each, s.training_slice.rows * for_each);
}

torch::Tensor global_like(const torch::Tensor& x) {
  if (!in_hand()) {
    return x;
  }
  TORCH_CHECK(x.dim() > 0, "[accelerate] rank ", rank(),
              ": global_like() takes a tensor that has rows along dimension 0, and this one is a scalar");
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[0] = global_rows(sizes[0]);
  // In x's order of dimensions in memory, in which it would be filled with random numbers.
  return torch::empty_strided(sizes, at::infer_dense_strides(sizes, x.strides()), x.options());
}

torch::Tensor squeeze(const torch::Tensor& x) {
  const State& s = state();
  const bool only_row = in_hand() && s.training_slice.rows == 1 && s.training_slice.global_rows != 1;
  if (!only_row || x.dim() == 0 || x.size(0) != 1) {
    return x.squeeze();
  }
  std::vector<int64_t> features(static_cast<size_t>(x.dim()) - 1);
  std::iota(features.begin(), features.end(), 1);
  return x.squeeze(features);
}

at::Tensor nothing_of(const at::Tensor& x) {
  if (x.is_complex()) {  // which nan_to_num() doesn't take
    return at::view_as_complex(nothing_of(at::view_as_real(x.resolve_conj())));
  }
  return x.requires_grad() ? x.nan_to_num(0, 0, 0) * 0 : torch::zeros_like(x);
}

torch::Tensor share_tensor(const torch::Tensor& x) {
  if (alone()) {
    return x;
  }
  TORCH_CHECK(x.is_floating_point() || x.is_complex(), "[accelerate] rank ", rank(),
              ": share() and mean() take floating-point tensors, and this one is ", x.scalar_type(),
              "; convert it first");
  return holds_ghost() ? nothing_of(x) : x * row_share();
}

torch::Tensor share_tensor(const torch::Tensor& x, double weight) {
  if (alone()) {
    return x;
  }
  const double mine = holds_ghost() ? 0 : weight;
  const double total = reduce(mine);
  if (total == 0) {
    return x;  // nothing counts on any rank: what one process would have, usually not a number
  }
  return mine == 0 ? nothing_of(x) : x * (mine / total);
}

torch::Tensor extreme(const torch::Tensor& given, bool largest) {
  if (alone()) {
    return given;
  }
  TORCH_CHECK(given.defined() && !given.is_complex(), "[accelerate] rank ", rank(),
              ": max() and min() take tensors of real numbers");
  const bool whole = at::isIntegralType(given.scalar_type(), /*includeBool=*/true);
  at::Tensor x = given.detach().to(whole ? at::kLong : at::kDouble).contiguous();
  x = largest ? x.clone() : x.neg();  // -max(-x): one operation for both
  const std::string name = largest ? "max()" : "min()", what = name + "'s argument";
  Group& group = *state().group;
  if (!x.is_cpu()) {
    group.maximum(x, what);
    return (largest ? x : x.neg()).to(given.scalar_type());
  }
  Signature signature(name);
  signature.add(given);
  at::Tensor values = x.view({-1});
  const int64_t first = std::min(values.numel(), kMessage - 2);
  at::Tensor message = torch::zeros({kMessage}, x.options());
  message.narrow(0, 0, first).copy_(values.narrow(0, 0, first));
  message[kMessage - 2].fill_(signature.value());
  message[kMessage - 1].fill_(-signature.value());
  group.maximum(message, what);
  if (message[kMessage - 2].item<double>() + message[kMessage - 1].item<double>() != 0) {
    throw_differing(name, {describe(name, given)});
  }
  values.narrow(0, 0, first).copy_(message.narrow(0, 0, first));
  if (at::Tensor rest = rest_of(values); rest.numel() > 0) {
    group.maximum(rest, what);
  }
  return (largest ? x : x.neg()).to(given.scalar_type());
}

GatheredRows gather_rows(const at::Tensor& given, const RowSlice* dropped, const std::string& name, bool unclear) {
  State& s = state();
  at::Tensor x = given.detach();
  if (dropped && dropped->ghost) {
    x = x.narrow(0, 0, 0);
  } else if (dropped && dropped->padding > 0 && x.size(0) == dropped->rows) {
    x = x.narrow(0, 0, dropped->rows - dropped->padding);
  }
  // First the numbers of rows, then as many bytes of every rank as the longest has.
  int64_t row_bytes = static_cast<int64_t>(x.element_size());
  for (int64_t d = 1; d < x.dim(); ++d) {
    row_bytes *= x.size(d);
  }
  Signature signature(name);
  signature.add(x, /*from_dimension=*/1);
  const at::Tensor mine = torch::tensor({unclear ? -1 : x.size(0), signature.value()}, torch::kInt64);
  const std::vector<at::Tensor> all = s.group->gather(mine, "numbers of rows");
  int64_t longest = 0;
  for (size_t other = 0; other < all.size(); ++other) {
    if (!torch::equal(all[other][1], all[0][1])) {
      throw_differing(name, {c10::str("rows of ", x.scalar_type(), ' ', x.sizes().slice(1))});
    }
    TORCH_CHECK(
        all[other][0].item<int64_t>() >= 0, "[accelerate] rank ", rank(), " of ", ranks(), ": ", name,
        " was given something else than the rows of the batch in hand, after a batch that was filled up on rank ",
        other,
        " (by a ghost, or by even_batches): which rows to drop is known in the loop only; gather each batch there, or "
        "loop over a loader of make_evaluation_data_loader, which fills up nothing");
    longest = std::max(longest, all[other][0].item<int64_t>());
  }
  at::Tensor bytes = torch::zeros({longest * row_bytes}, x.options().dtype(torch::kUInt8));
  if (x.numel() > 0) {
    bytes.narrow(0, 0, x.size(0) * row_bytes).copy_(bytes_of(x));
  }
  const std::vector<at::Tensor> parts =
      longest * row_bytes > 0 ? s.group->gather(bytes, "rows") : std::vector<at::Tensor>(all.size(), bytes);
  std::vector<int64_t> shape = x.sizes().vec();
  std::vector<at::Tensor> rows;
  int64_t begin = 0;
  for (size_t other = 0; other < parts.size(); ++other) {
    shape[0] = all[other][0].item<int64_t>();
    begin += static_cast<int64_t>(other) < rank() ? shape[0] : 0;
    rows.push_back(parts[other].narrow(0, 0, shape[0] * row_bytes).view(x.scalar_type()).reshape(shape));
  }
  return {torch::cat(rows), begin, x.size(0)};
}

torch::Tensor gather(const torch::Tensor& given, bool drop_ghosts) {
  const State& s = state();
  const at::Tensor x = given.dim() == 0 ? given.reshape({1}) : given;
  if (alone() || !drop_ghosts) {
    return alone() ? x : gather_rows(x, nullptr, "gather()").rows;
  }
  const RowSlice& batch = s.last_slice;
  const int64_t rows = given.dim() > 0 ? given.size(0) : -1;
  const auto known = s.passes.find(s.last_loader);
  const Pass pass = known == s.passes.end() ? Pass{} : known->second;
  bool unclear = false;
  if (rows != batch.rows) {
    // What was collected in a loop with a ghost or padding: all that is gathered behind it, as far as anyone knows; and
    // anywhere else as many rows as there were in that loop, unless they are those of the loop since.
    const bool filled = batch.ghost || (rows >= 0 && (batch.padding > 0 || pass.filled));
    unclear =
        (filled && (s.last_pass_over || rows == pass.rows)) || (rows > 0 && rows == s.filled_rows && rows != pass.rows);
  }
  return gather_rows(x, &batch, "gather_for_metrics()", unclear).rows;
}

torch::Tensor broadcast_tensor(const torch::Tensor& x, int64_t from_process) {
  State& s = state();
  TORCH_CHECK(from_process >= 0 && from_process < ranks(), "[accelerate] rank ", rank(), ": there is no rank ",
              from_process, " to broadcast from");
  if (alone()) {
    return x;
  }
  const std::string name = "broadcast()";
  Signature signature(name);
  signature.add(from_process);
  if (!x.defined()) {  // maybe here alone: the others have to hear of it
    at::Tensor nothing = torch::zeros({0}, torch::kInt64);
    signature.add(-1);
    if (!add_up(*s.group, nothing, signature, "a value")) {
      throw_differing(name, {name + ": undefined"});
    }
    TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": ", name, " was given an undefined tensor");
  }
  signature.add(x);
  at::Tensor bytes = bytes_of(x);
  // A few bytes travel with the signature: zeros added to them leave them as they are.
  constexpr int64_t kFew = (kMessage - 2) * 8;
  const bool few = bytes.is_cpu() && bytes.numel() <= kFew;
  at::Tensor message = torch::zeros({few ? kMessage - 2 : 0}, torch::kInt64);
  if (few && rank() == from_process) {
    message.view(torch::kUInt8).narrow(0, 0, bytes.numel()).copy_(bytes);
  }
  if (!add_up(*s.group, message, signature, "a value")) {
    throw_differing(name, {describe(name, x), "from process " + std::to_string(from_process)});
  }
  if (few) {
    bytes = message.view(torch::kUInt8).narrow(0, 0, bytes.numel()).clone();
  } else if (bytes.numel() > 0) {
    s.group->broadcast(bytes, from_process, "a value");
  }
  return bytes.view(x.scalar_type()).reshape(x.sizes());
}

void wait_for_everyone() {
  State& s = state();
  if (!s.alone()) {
    at::Tensor nothing = torch::zeros({1}, torch::kInt64);
    s.group->sum(nothing, "wait_for_everyone()");
  }
}

}  // namespace accelerate::detail
