#include "outcome.h"

#include <torch/types.h>

#include <cstring>
#include <exception>

#include "state.h"

namespace accelerate::detail {
namespace {

std::string broadcast_text(Group& group, int64_t from, const std::string& text, const std::string& what) {
  at::Tensor size = torch::scalar_tensor(static_cast<int64_t>(text.size()), torch::kInt64);
  group.broadcast(size, from, what);
  at::Tensor bytes = torch::empty({size.item<int64_t>() + 1}, torch::kUInt8);  // no backend likes empty tensors
  if (rank() == from) {
    std::memcpy(bytes.data_ptr(), text.c_str(), text.size() + 1);
  }
  group.broadcast(bytes, from, what);
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(size.item<int64_t>())};
}

}  // namespace

void together(const std::string& operation, const std::function<void()>& action) {
  State& s = state();
  if (s.alone()) {
    action();
    return;
  }
  std::exception_ptr error;
  try {
    action();
  } catch (...) {
    error = std::current_exception();
  }
  // The maximum names the lowest rank that failed, on all ranks.
  at::Tensor failed = torch::scalar_tensor(error ? ranks() - rank() : int64_t{0}, torch::kInt64);
  s.group->maximum(failed, "the outcome of " + operation);
  if (failed.item<int64_t>() == 0) {
    return;
  }
  const int64_t first = ranks() - failed.item<int64_t>();
  const std::string message = broadcast_text(*s.group, first, error ? text_of(error) : "", "the error of " + operation);
  if (error) {
    std::rethrow_exception(error);
  }
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": ", operation, " failed on rank ", first, ": ",
              message);
}

std::string text_of_process(int64_t process, const std::string& text, const std::string& what) {
  State& s = state();
  return s.alone() ? text : broadcast_text(*s.group, process, text, what);
}

std::string text_of_main_process(const std::string& text, const std::string& what) {
  return text_of_process(0, text, what);
}

std::string text_of(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  return c10_error ? c10_error->what_without_backtrace() : error.what();
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return text_of(e);
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace accelerate::detail
