/// LibTorch's functions that a training program calls, each followed by LibTorch's own. They are reached because the
/// recorder is loaded first and LibTorch's libraries refer to their own functions by name, so that also virtual calls
/// come by. What is called under another name, or inlined, isn't seen: README.md says what that means.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/serialize/archive.h>

#include <cstdio>
#include <cstdlib>

#include "hooks.h"
#include "recorder.h"

namespace {

using accelerate::recorder::Recorder;
using at::Tensor;

/// LibTorch's own function of that name.
template <typename Function>
Function* next(const char* symbol) {
  void* function = dlsym(RTLD_NEXT, symbol);
  if (function == nullptr) {
    std::fprintf(stderr, "[accelerate] the recorder finds no %s: it was built with another LibTorch\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(function);
}

double sum(const Tensor& root, const Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const at::RecordFunctionGuard unobserved(/*is_enabled=*/false);
  const Tensor value = root.detach().to(at::kCPU).to(at::kDouble);
  return (gradient.defined() ? value * gradient.detach().to(at::kCPU).to(at::kDouble) : value).sum().item<double>();
}

Recorder::Backward describe(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients) {
  Recorder::Backward backward;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].defined()) {
      backward.loss += sum(roots[i], i < gradients.size() ? gradients[i] : Tensor{});
      backward.dtype = c10::toString(roots[i].scalar_type());
    }
  }
  return backward;
}

/// The backward of the library that is under way.
thread_local Recorder::Backward of_library;
thread_local bool of_library_counts = false;

}  // namespace

// The symbols are spelled out, as members defined here would bring their classes' virtual tables with them.

using Backward = void(const std::vector<Tensor>&, const std::vector<Tensor>&, std::optional<bool>, bool,
                      const std::vector<Tensor>&);
#define SYMBOL "_ZN5torch8autograd8backwardERKSt6vectorIN2at6TensorESaIS3_EES7_St8optionalIbEbS7_"
__attribute__((visibility("default"))) Backward backward asm(SYMBOL);
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, std::optional<bool> retain_graph,
              bool create_graph, const std::vector<Tensor>& inputs) {
  static Backward* const original = next<Backward>(SYMBOL);
  Recorder* const recorder = Recorder::active();
  if (recorder == nullptr) {
    return original(roots, gradients, retain_graph, create_graph, inputs);
  }
  Recorder::Backward description;
  if (recorder->begin_backward(roots)) {
    description = describe(roots, gradients);
  }
  try {
    original(roots, gradients, retain_graph, create_graph, inputs);
  } catch (...) {
    recorder->end_backward(description, /*completed=*/false);
    throw;
  }
  recorder->end_backward(description, /*completed=*/true);
}
#undef SYMBOL

#define ACCELERATE_RECORD_STEP(Class, symbol)                                                         \
  using Class##Step = Tensor(torch::optim::Class*, torch::optim::Optimizer::LossClosure);             \
  __attribute__((visibility("default"))) Class##Step Class##_step asm(symbol);                        \
  Tensor Class##_step(torch::optim::Class* optimizer, torch::optim::Optimizer::LossClosure closure) { \
    static Class##Step* const original = next<Class##Step>(symbol);                                   \
    Recorder* const recorder = Recorder::active();                                                    \
    if (recorder == nullptr) {                                                                        \
      return original(optimizer, std::move(closure));                                                 \
    }                                                                                                 \
    recorder->begin_step(*optimizer, #Class);                                                         \
    Tensor loss = original(optimizer, std::move(closure));                                            \
    recorder->end_step();                                                                             \
    return loss;                                                                                      \
  }
ACCELERATE_RECORD_STEP(Adagrad, "_ZN5torch5optim7Adagrad4stepESt8functionIFN2at6TensorEvEE")
ACCELERATE_RECORD_STEP(Adam, "_ZN5torch5optim4Adam4stepESt8functionIFN2at6TensorEvEE")
ACCELERATE_RECORD_STEP(AdamW, "_ZN5torch5optim5AdamW4stepESt8functionIFN2at6TensorEvEE")
ACCELERATE_RECORD_STEP(LBFGS, "_ZN5torch5optim5LBFGS4stepESt8functionIFN2at6TensorEvEE")
ACCELERATE_RECORD_STEP(RMSprop, "_ZN5torch5optim7RMSprop4stepESt8functionIFN2at6TensorEvEE")
ACCELERATE_RECORD_STEP(SGD, "_ZN5torch5optim3SGD4stepESt8functionIFN2at6TensorEvEE")
#undef ACCELERATE_RECORD_STEP

using RegisterParameter = Tensor&(torch::nn::Module*, std::string, Tensor, bool);
#define SYMBOL \
  "_ZN5torch2nn6Module18register_parameterENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN2at6TensorEb"
__attribute__((visibility("default"))) RegisterParameter register_parameter asm(SYMBOL);
Tensor& register_parameter(torch::nn::Module* module, std::string name, Tensor tensor, bool requires_grad) {
  static RegisterParameter* const original = next<RegisterParameter>(SYMBOL);
  Tensor& parameter = original(module, name, std::move(tensor), requires_grad);
  if (Recorder* const recorder = Recorder::active()) {
    recorder->know(parameter, "parameter", name);
  }
  return parameter;
}
#undef SYMBOL

using RegisterBuffer = Tensor&(torch::nn::Module*, std::string, Tensor);
#define SYMBOL "_ZN5torch2nn6Module15register_bufferENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN2at6TensorE"
__attribute__((visibility("default"))) RegisterBuffer register_buffer asm(SYMBOL);
Tensor& register_buffer(torch::nn::Module* module, std::string name, Tensor tensor) {
  static RegisterBuffer* const original = next<RegisterBuffer>(SYMBOL);
  Tensor& buffer = original(module, name, std::move(tensor));
  if (Recorder* const recorder = Recorder::active()) {
    recorder->know(buffer, "buffer", name);
  }
  return buffer;
}
#undef SYMBOL

using AddParamGroup = void(torch::optim::Optimizer*, const torch::optim::OptimizerParamGroup&);
#define SYMBOL "_ZN5torch5optim9Optimizer15add_param_groupERKNS0_19OptimizerParamGroupE"
__attribute__((visibility("default"))) AddParamGroup add_param_group asm(SYMBOL);
void add_param_group(torch::optim::Optimizer* optimizer, const torch::optim::OptimizerParamGroup& group) {
  static AddParamGroup* const original = next<AddParamGroup>(SYMBOL);
  original(optimizer, group);
  if (Recorder* const recorder = Recorder::active()) {
    for (const Tensor& parameter : group.params()) {
      recorder->know(parameter, "parameter", "");
    }
  }
}
#undef SYMBOL

using Archive = torch::serialize::OutputArchive;

using ArchiveWrite = void(Archive*, const std::string&, const Tensor&, bool);
#define SYMBOL                                                                                                 \
  "_ZN5torch9serialize13OutputArchive5writeERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKN2at6Tens" \
  "orEb"
__attribute__((visibility("default"))) ArchiveWrite archive_write asm(SYMBOL);
void archive_write(Archive* archive, const std::string& key, const Tensor& tensor, bool is_buffer) {
  static ArchiveWrite* const original = next<ArchiveWrite>(SYMBOL);
  original(archive, key, tensor, is_buffer);
  if (Recorder* const recorder = Recorder::active()) {
    recorder->save(key, tensor);
  }
}
#undef SYMBOL

using ArchiveWriteValue = void(Archive*, const std::string&, const c10::IValue&);
#define SYMBOL                                                                                                  \
  "_ZN5torch9serialize13OutputArchive5writeERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKN3c106IVal" \
  "ueE"
__attribute__((visibility("default"))) ArchiveWriteValue archive_write_value asm(SYMBOL);
void archive_write_value(Archive* archive, const std::string& key, const c10::IValue& value) {
  static ArchiveWriteValue* const original = next<ArchiveWriteValue>(SYMBOL);
  original(archive, key, value);
  if (Recorder* const recorder = Recorder::active()) {
    recorder->save(*archive, key, value);
  }
}
#undef SYMBOL

using ArchiveWriteNested = void(Archive*, const std::string&, Archive&);
#define SYMBOL "_ZN5torch9serialize13OutputArchive5writeERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERS1_"
__attribute__((visibility("default"))) ArchiveWriteNested archive_write_nested asm(SYMBOL);
void archive_write_nested(Archive* archive, const std::string& key, Archive& nested) {
  static ArchiveWriteNested* const original = next<ArchiveWriteNested>(SYMBOL);
  original(archive, key, nested);
  if (Recorder* const recorder = Recorder::active()) {
    recorder->save(key, nested);
  }
}
#undef SYMBOL

#define ACCELERATE_RECORD_SAVE_TO(Target, target_name, symbol)                        \
  using SaveTo##Target = void(Archive*, Target);                                      \
  __attribute__((visibility("default"))) SaveTo##Target save_to_##Target asm(symbol); \
  void save_to_##Target(Archive* archive, Target target) {                            \
    static SaveTo##Target* const original = next<SaveTo##Target>(symbol);             \
    original(archive, target);                                                        \
    if (Recorder* const recorder = Recorder::active()) {                              \
      recorder->end_archive(*archive, target_name);                                   \
    }                                                                                 \
  }
using Path = const std::string&;
using Stream = std::ostream&;
using Writer = const std::function<size_t(const void*, size_t)>&;
ACCELERATE_RECORD_SAVE_TO(Path, target,
                          "_ZN5torch9serialize13OutputArchive7save_toERKNSt7__cxx1112basic_stringIcSt11char_traitsIcES"
                          "aIcEEE")
ACCELERATE_RECORD_SAVE_TO(Stream, "", "_ZN5torch9serialize13OutputArchive7save_toERSo")
ACCELERATE_RECORD_SAVE_TO(Writer, "", "_ZN5torch9serialize13OutputArchive7save_toERKSt8functionIFmPKvmEE")
#undef ACCELERATE_RECORD_SAVE_TO

// What the library calls.

void accelerate_recorder_begin_backward(const Tensor& loss, const Tensor& gradient, double weight, int64_t rows,
                                        int64_t global_rows) {
  Recorder* const recorder = Recorder::active();
  if (recorder == nullptr) {
    return;
  }
  of_library_counts = recorder->begin_backward({loss});
  if (of_library_counts) {
    of_library = describe({loss}, {gradient});
    of_library.weight = weight;
    of_library.rows = rows;
    of_library.global_rows = global_rows;
  }
}

void accelerate_recorder_end_backward(bool completed) {
  if (Recorder* const recorder = Recorder::active()) {
    recorder->end_backward(of_library, completed);
  }
}

void accelerate_recorder_name(const Tensor& tensor, const char* name) {
  if (Recorder* const recorder = Recorder::active()) {
    recorder->rename(tensor, name);
  }
}
