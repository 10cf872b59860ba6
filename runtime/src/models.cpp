#include "models.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <unordered_set>
#include <utility>

#include "c10d_compat.h"
#include "comm_hook.h"
#include "graph.h"
#include "group_impl.h"
#include "model.h"
#include "outcome.h"
#include "same_on_all.h"
#include "state.h"

namespace accelerate::detail {

constexpr const char* kBackward = "backward (all-reduce of gradients)";

namespace {

bool trainable(const at::Tensor& parameter) { return parameter.requires_grad(); }

/// Weights of embeddings that were told to make sparse gradients.
std::unordered_set<const c10::TensorImpl*> sparse_weights(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> result;
  const auto look = [&](const torch::nn::Module& m) {
    if (const auto* embedding = dynamic_cast<const torch::nn::EmbeddingImpl*>(&m);
        embedding && embedding->options.sparse()) {
      result.insert(embedding->weight.unsafeGetTensorImpl());
    }
    if (const auto* bag = dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&m); bag && bag->options.sparse()) {
      result.insert(bag->weight.unsafeGetTensorImpl());
    }
  };
  look(module);  // which may stand on the stack, where modules() can't take it from
  for (const auto& m : module.modules(/*include_self=*/false)) {
    look(*m);
  }
  return result;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.options().type_equal(b.options()) && at::equal(a.detach(), b);
}

bool from_communication(const std::exception& error) {
  if (dynamic_cast<const c10::DistError*>(&error)) {
    return true;
  }
  const std::string text = error.what();
  for (const char* origin : {"gloo", "NCCL", "Reducer", "reduction in the prior iteration"}) {
    if (text.find(origin) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

Models::Models() = default;
Models::~Models() = default;

void Models::clear() {
  owners_.clear();
  for (auto& model : models_) {
    try {
      model->drop_reducer();
    } catch (const std::exception&) {
      // Its destructor may find hooks gone; nothing is left to be done about that.
    }
  }
  models_.clear();
}

void Models::add(Group& group, const torch::nn::Module& module) {
  forget_dead();
  auto model = std::make_unique<Model>();
  model->name = module.name();
  const auto sparse = sparse_weights(module);
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& parameter = item.value();
    if (parameter.defined() && !owners_.count(parameter.unsafeGetTensorImpl()) &&
        seen.insert(parameter.unsafeGetTensorImpl()).second) {
      model->parameters.push_back(parameter);
      model->names.push_back(item.key());
      model->sparse.push_back(sparse.count(parameter.unsafeGetTensorImpl()) > 0);
    }
  }
  for (const auto& known : models_) {
    for (const at::Tensor& buffer : known->buffers) {
      seen.insert(buffer.unsafeGetTensorImpl());
    }
  }
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.defined() && seen.insert(buffer.unsafeGetTensorImpl()).second) {
      model->buffers.push_back(buffer);
    }
  }
  const auto note_mode = [&](const torch::nn::Module& m) {
    if (const auto shared = m.weak_from_this().lock(); shared && !m.buffers(/*recurse=*/false).empty()) {
      model->modes.emplace_back(shared, m.is_training());
    }
  };
  note_mode(module);
  for (const auto& m : module.modules(/*include_self=*/false)) {
    note_mode(*m);
  }
  add_model(group, std::move(model));
}

void Models::add(Group& group, const std::vector<torch::Tensor>& parameters, const std::string& name) {
  forget_dead();
  auto model = std::make_unique<Model>();
  model->name = name;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    if (parameter.defined() && !owners_.count(parameter.unsafeGetTensorImpl()) &&
        seen.insert(parameter.unsafeGetTensorImpl()).second) {
      model->parameters.push_back(parameter);
      model->names.push_back("parameter " + std::to_string(i));
      model->sparse.push_back(false);
    }
  }
  add_model(group, std::move(model));
}

void Models::add_model(Group& group, std::unique_ptr<Model> model) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < model->parameters.size(); ++i) {
    lines.push_back(describe(model->names[i], model->parameters[i]));
  }
  for (size_t i = 0; i < model->buffers.size(); ++i) {
    lines.push_back(describe("buffer " + std::to_string(i), model->buffers[i]));
  }
  check_same_on_all(group, "prepare(" + model->name + ")", lines);
  if (lines.empty()) {
    return;  // prepared before
  }
  model->trained_once = std::any_of(model->parameters.begin(), model->parameters.end(), trainable);
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& parameter : model->parameters) {
    tensors.push_back(plain(parameter));
  }
  for (const at::Tensor& buffer : model->buffers) {
    tensors.push_back(plain(buffer));
  }
  group.broadcast_many(tensors, 0, "the parameters of " + model->name);
  for (const at::Tensor& buffer : model->buffers) {
    model->originals.push_back(buffer.detach().clone());
  }
  model->written.assign(model->buffers.size(), false);
  for (size_t i = 0; i < model->parameters.size(); ++i) {
    owners_[model->parameters[i].unsafeGetTensorImpl()] = Owner{model.get(), i};
  }
  model->number = ++prepared_;
  for (size_t i = 1; i < model->parameters.size(); ++i) {
    if (model->parameters[i].numel() < model->parameters[model->watched].numel()) {
      model->watched = i;
    }
  }
  models_.push_back(std::move(model));
}

/// A model that only this class and its reducer still know is of no use to anyone. (With its reducer,
/// a parameter has four references more: from the reducer, a bucket, its hook, and the accumulator of its gradient.)
void Models::forget_dead() {
  const auto unused = [](const Model& model, size_t references) {
    for (const at::Tensor& parameter : model.parameters) {
      if (parameter.use_count() > references) {
        return false;
      }
    }
    return true;
  };
  for (auto it = models_.begin(); it != models_.end();) {
    Model& model = **it;
    if (model.reducer && unused(model, 5)) {
      model.drop_reducer();  // if it's in use after all, the next backward builds another one
      model.trained.clear();
    }
    if (!model.reducer && !model.parameters.empty() && unused(model, 1)) {
      for (const at::Tensor& parameter : model.parameters) {
        owners_.erase(parameter.unsafeGetTensorImpl());
      }
      it = models_.erase(it);
    } else {
      ++it;
    }
  }
}

void Models::watch_gradients(int64_t backwards) {
  const bool without_backward = backwards == watched_at_;
  watched_at_ = backwards;
  for (auto& model : models_) {
    const at::Tensor gradient = model->parameters.empty() ? at::Tensor() : model->parameters[model->watched].grad();
    const bool same = gradient.unsafeGetTensorImpl() == model->watched_gradient._unsafe_get_target() &&
                      gradient.defined() && gradient._version() == model->watched_version;
    if (without_backward && gradient.defined() && !same && !model->warned &&
        at::any(gradient.is_sparse() ? gradient._values() : gradient).item<bool>()) {
      model->warned = true;
      TORCH_WARN("[accelerate] rank ", rank(), " of ", ranks(), ": the gradients of ", model->name,
                 " have changed since the last batch, and accelerator.backward() wasn't called. loss.backward() gives "
                 "each rank the gradients of its own rows, so that the ranks' models drift apart; call "
                 "accelerator.backward(loss)");
    }
    model->watched_gradient = gradient.getIntrusivePtr();
    model->watched_version = gradient.defined() ? gradient._version() : 0;
  }
}

void Models::begin_anew() {
  for (auto& model : models_) {
    model->drop_reducer();
    model->trained.clear();
    model->find_unused = false;
  }
}

std::vector<Models::Reached> Models::reach(const torch::Tensor& loss) const {
  std::vector<Reached> result;
  Reached* last = nullptr;  // leaves of a model come one after the other, mostly
  visit_leaves(loss, [&](const at::Tensor& leaf) {
    const auto owner = owners_.find(leaf.unsafeGetTensorImpl());
    if (owner == owners_.end()) {
      return;
    }
    Model* const model = owner->second.model;
    if (!last || last->model != model) {
      auto it = std::find_if(result.begin(), result.end(), [&](const Reached& r) { return r.model == model; });
      if (it == result.end()) {
        it = result.insert(it, Reached{model, 0, {}, false, {}, {}});
        it->indices.reserve(model->parameters.size());
      }
      last = &*it;
    }
    last->indices.push_back(owner->second.index);
  });
  for (Reached& r : result) {
    r.parameters = r.indices.size();
  }
  // The order in which graphs are walked is nothing that ranks would agree on.
  std::sort(result.begin(), result.end(),
            [](const Reached& a, const Reached& b) { return a.model->number < b.model->number; });
  return result;
}

/// Whether a loss has gradients at this rank's rows of the batch in hand and nowhere else, since the model that made it
/// is frozen meanwhile: there is nothing for other ranks in them.
bool Models::reaches_rows_alone(const torch::Tensor& loss) const {
  const bool frozen = std::any_of(models_.begin(), models_.end(), [](const std::unique_ptr<Model>& model) {
    return model->trained_once && std::none_of(model->parameters.begin(), model->parameters.end(), trainable);
  });
  const RowSlice& slice = state().training_slice;
  bool rows = frozen && state().training_loader;
  visit_leaves(loss, [&](const at::Tensor& leaf) { rows = rows && leaf.dim() > 0 && leaf.size(0) == slice.rows; });
  return rows;
}

void Models::throw_unused(const Reached& reached) {
  const Model& model = *reached.model;
  const std::unordered_set<size_t> used(reached.indices.begin(), reached.indices.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    if (trainable(model.parameters[i]) && used.count(i) == 0) {
      names.push_back(model.names[i]);
    }
  }
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": the loss doesn't reach these parameters of ",
              model.name, ": ", c10::Join(", ", names),
              "; leave DistributedDataParallelOptions::find_unused_parameters unset, or freeze them with "
              "requires_grad_(false)");
}

/// With a static graph the first backward of a reducer tells it what there is: it averages behind that one. Returns
/// whether this is it.
bool Models::fix_graph(const Reached& reached) {
  Model& model = *reached.model;
  std::vector<size_t> indices = reached.indices;
  std::sort(indices.begin(), indices.end());
  if (model.fixed.empty()) {
    model.fixed = std::move(indices);
    return true;
  }
  TORCH_CHECK(indices == model.fixed, "[accelerate] rank ", rank(), " of ", ranks(), ": the loss reaches ",
              indices.size(), " parameters of ", model.name, ", and other ones (", model.fixed.size(),
              ") than in the first backward(); don't set DistributedDataParallelOptions::static_graph");
  return false;
}

/// Builds the model's reducer if there is none for the parameters that are trained now, and arms it.
void Models::make_ready(Group& group, const Reached& reached) {
  Model& model = *reached.model;
  // Compared in place: nothing is built where nothing has changed, which is at every step but the first.
  size_t count = 0;
  bool changed = false;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    if (trainable(model.parameters[i])) {
      changed = changed || count >= model.trained.size() || !(Model::Trained(model, i) == model.trained[count]);
      ++count;
    }
  }
  changed = changed || count != model.trained.size();
  const DistributedDataParallelOptions& options = state().control.ddp;
  if (reached.parameters != count && options.find_unused_parameters == std::optional<bool>(false)) {
    throw_unused(reached);
  }
  if (!model.reducer || changed) {
    model.drop_reducer();  // its hooks go first
    model.fixed.clear();
    model.used.clear();
    // With a static graph the reducer finds them out by itself, in its first backward.
    model.find_unused = !options.static_graph && options.find_unused_parameters.value_or(false);
    model.trained.clear();
    for (size_t i = 0; i < model.parameters.size(); ++i) {
      if (trainable(model.parameters[i])) {
        model.trained.emplace_back(model, i);
      }
    }
    ReducerArguments arguments;
    model.votes.reset();
    if (!options.static_graph && !options.find_unused_parameters && !model.trained.empty()) {
      // Of the first parameter's type, with which it shares a message.
      const at::Tensor& first = model.parameters[model.trained.front().index];
      const auto kind = first.options().dtype(c10::toRealValueType(first.scalar_type()));
      model.ballots.clear();
      // As long as a cache line: it comes first in its bucket, and the gradients behind it are to stay aligned.
      const auto length = static_cast<int64_t>(64 / kind.dtype().itemsize());
      for (const std::vector<double>& vote : {std::vector<double>{1, 0}, {0, 0}, {0, 1}}) {
        for (size_t turn = 0; turn < Model::kTurns; ++turn) {
          std::vector<double> ballot(vote);
          ballot.resize(static_cast<size_t>(length));
          ballot[vote.size() + turn] = 1;
          model.ballots.push_back(at::tensor(ballot, at::kDouble).to(kind));
        }
      }
      model.votes = at::zeros({length}, kind).requires_grad_();
      arguments.names[arguments.parameters.size()] = "votes";
      arguments.parameters.push_back(model.votes);
      arguments.sparse.push_back(false);
    }
    for (const Model::Trained& t : model.trained) {
      arguments.names[arguments.parameters.size()] = model.names[t.index];
      arguments.parameters.push_back(model.parameters[t.index]);
      arguments.sparse.push_back(model.sparse[t.index]);
    }
    TORCH_CHECK(options.comm_hook == DDPCommunicationHookType::No ||
                    std::find(arguments.sparse.begin(), arguments.sparse.end(), true) == arguments.sparse.end(),
                "[accelerate] rank ", rank(), " of ", ranks(), ": ", model.name,
                " has sparse gradients, which a comm_hook can't compress; use DDPCommunicationHookType::No, or an "
                "embedding without sparse(true)");
    arguments.bucket_bytes = std::max<int64_t>(1, static_cast<int64_t>(options.bucket_cap_mb * 1024 * 1024));
    const std::vector<size_t> limits{static_cast<size_t>(first_bucket_bytes(arguments.bucket_bytes)),
                                     static_cast<size_t>(arguments.bucket_bytes)};
    auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(arguments.parameters, limits, arguments.sparse));
    arguments.buckets.assign(buckets.rbegin(), buckets.rend());  // gradients come from the last layer first
    arguments.group = group.impl().group;
    arguments.find_unused = model.find_unused;
    model.reducer = make_reducer(std::move(arguments));
    model.logger = std::make_shared<c10d::Logger>(model.reducer);
    model.reducer->set_logger(model.logger);
    model.logger->set_construction_data_and_log(model.name, {}, -1, /*broadcast_buffers=*/false,
                                                /*has_sync_bn=*/false, options.static_graph);
    if (options.static_graph) {
      model.reducer->set_static_graph();
    }
    register_comm_hook(*model.reducer, options.comm_hook, group.impl().group);
  }
}

/// Gives all ranks rank 0's running statistics. Which buffers the forward pass writes to is found out by
/// looking, and agreed on after 1, 2, 4, ... calls, and when a module has been switched between training and
/// evaluation, so that tables that never change aren't sent.
void Models::agree_on_buffers(Group& group, Model& model) {
  if (model.buffers.empty()) {
    return;
  }
  bool switched = false;
  for (auto& [weak, training] : model.modes) {
    if (const auto m = weak.lock(); m && m->is_training() != training) {
      training = !training;
      switched = true;
    }
  }
  const int64_t n = ++model.backwards;
  if ((n & (n - 1)) == 0 || n % 256 == 0 || switched) {
    at::Tensor written = at::zeros({static_cast<int64_t>(model.buffers.size())}, at::kInt);
    auto flags = written.accessor<int, 1>();
    for (size_t i = 0; i < model.buffers.size(); ++i) {
      // Values are compared, since batch normalisation writes without changing a tensor's version.
      flags[static_cast<int64_t>(i)] = model.written[i] || !same(model.buffers[i], model.originals[i]);
    }
    group.maximum(written, "the written buffers of " + model.name);
    for (size_t i = 0; i < model.buffers.size(); ++i) {
      model.written[i] = flags[static_cast<int64_t>(i)] != 0;
      if (model.written[i]) {
        model.originals[i].reset();
      }
    }
  }
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < model.buffers.size(); ++i) {
    if (model.written[i]) {
      tensors.push_back(plain(model.buffers[i]));
    }
  }
  group.broadcast_many(tensors, 0, "the buffers of " + model.name);
}

bool Models::synced(const Model& model) {
  const TrainingControl& control = state().control;
  if (control.unsynced_all > 0) {
    return false;
  }
  return control.unsynced.empty() ||
         std::none_of(model.parameters.begin(), model.parameters.end(),
                      [&](const at::Tensor& x) { return control.unsynced.count(x.unsafeGetTensorImpl()) > 0; });
}

namespace {

/// While it lives, what the graph behind a loss gives its leaves is replaced by zeros.
class ZeroGradients {
 public:
  explicit ZeroGradients(const at::Tensor& loss) {
    visit_leaves(loss, [this](at::Tensor leaf) {
      const auto hook = leaf.register_hook([](const at::Tensor& gradient) { return at::zeros_like(gradient); });
      hooks_.emplace_back(leaf, hook);
    });
  }
  ~ZeroGradients() {
    for (const auto& [leaf, hook] : hooks_) {
      leaf.remove_hook(hook);
    }
  }
  ZeroGradients(const ZeroGradients&) = delete;
  ZeroGradients& operator=(const ZeroGradients&) = delete;

 private:
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

}  // namespace

void Models::backward(Group& group, const torch::Tensor& loss, double coefficient, bool local,
                      const BackwardArguments& arguments) {
  group.require(kBackward);
  Roots roots;
  const auto run = [&](const at::Tensor& gradient) {
    if (roots.tensors.empty()) {
      loss.backward(gradient, arguments.retain_graph, arguments.create_graph, arguments.inputs);
      return;
    }
    roots.tensors.insert(roots.tensors.begin(), loss);
    roots.gradients.insert(roots.gradients.begin(), gradient);
    torch::autograd::backward(roots.tensors, roots.gradients, arguments.retain_graph, arguments.create_graph);
  };
  if (!loss.grad_fn() || (!arguments.gradient.defined() && loss.numel() != 1)) {
    run(arguments.gradient);  // LibTorch's own error, or a leaf
    return;
  }
  // The reducer sums up gradients, not their graphs: what is differentiated through them would lack the other ranks'.
  TORCH_CHECK(!arguments.create_graph || arguments.inputs, "[accelerate] rank ", rank(), " of ", ranks(),
              ": backward() with create_graph can't be used on several ranks, where a gradient is made of all ranks' "
              "graphs; compute what is to be differentiated again with torch::autograd::grad() within the loss");
  at::Tensor gradient = arguments.gradient;
  if (coefficient != 1) {
    gradient = gradient.defined() ? gradient * coefficient : at::full_like(loss.detach(), coefficient);
  }
  const auto start = std::chrono::steady_clock::now();
  const Peers::Operation scope(group.impl().peers.get(), kBackward, /*watched=*/false);
  std::vector<Reached> synced_ones;
  bool sending = false;
  try {
    if (arguments.inputs) {
      // Only these get gradients, which is nothing that a reducer could wait for.
      run(gradient);
      for (const at::Tensor& input : *arguments.inputs) {
        if (owners_.count(input.unsafeGetTensorImpl())) {
          at::Tensor total = input.grad().detach().contiguous().clone();
          group.sum(total, "a gradient");
          input.grad().detach().copy_(total / group.impl().environment.world_size);
        }
      }
      return;
    }
    const std::vector<Reached> reached = reach(loss);
    if (reached.empty() && reaches_rows_alone(loss)) {
      run(gradient);
      return;
    }
    TORCH_CHECK(!reached.empty(),
                "[accelerate] the loss reaches no parameter of a prepared model or optimizer, so its gradients would "
                "stay on this rank; call accelerator.prepare(model, optimizer) before training");
    for (const Reached& r : reached) {
      if (!local && synced(*r.model)) {
        synced_ones.push_back(r);
      } else {
        note_local(r);
      }
    }
    for (const auto& model : models_) {
      // Whether or not this rank's loss reaches it.
      model->unsent = model->unsent || local || !synced(*model);
    }
    group.compare([&] {
      // How much of a model is reached may differ, unless the program has said that it doesn't.
      const bool whole = state().control.ddp.find_unused_parameters == std::optional<bool>(false);
      std::vector<std::string> lines;
      for (const Reached& r : synced_ones) {
        lines.push_back("backward() through " + (whole ? std::to_string(r.parameters) + " parameters of " : "") +
                        r.model->name + ", " + std::to_string(state().control.batch) + " batches of training loaders");
      }
      return lines;
    });
    std::vector<Model*> first_ones;
    for (const Reached& r : synced_ones) {
      if (!r.model->unfinished.empty()) {
        group.fail(kBackward, std::runtime_error(r.model->unfinished), 0);
      }
    }
    for (Reached& r : synced_ones) {
      make_ready(group, r);
      r.model->reducer->rebuild_buckets();
      r.model->reducer->prepare_for_forward();
      if (state().control.ddp.static_graph && fix_graph(r)) {
        first_ones.push_back(r.model);
      }
      r.model->reducer->prepare_for_backward({loss});
      fill_up(r, roots);
    }
    std::function<void()> pass = [&] {
      if (coefficient == 0 && !at::isfinite(loss.detach()).all().item<bool>()) {
        // Zero times not-a-number isn't zero: this rank sends zeros without asking the graph, unless others wait in it.
        if (meets_ranks(loss)) {
          const ZeroGradients zeros(loss);
          const NoPart none;
          run(gradient);
        } else {
          send_zeros(reached, roots);
        }
      } else {
        run(gradient);
      }
      for (const Model* model : first_ones) {
        model->reducer->delay_all_reduce();
      }
      for (const Reached& r : synced_ones) {
        r.model->reducer->check_finalized();
      }
    };
    for (const Reached& r : synced_ones) {
      if (r.model->unsent && !r.model->votes.defined()) {
        pass = [&group, &r, inner = std::move(pass)] { make_up(group, r, inner); };
      }
    }
    sending = true;
    pass();
    sending = false;
    for (const Reached& r : synced_ones) {
      check_turns(*r.model);
    }
    for (const Reached& r : synced_ones) {
      take_zeros_back(group, r);
      agree_on_buffers(group, *r.model);
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (text.find("[accelerate]") != std::string::npos || !from_communication(error)) {
      for (size_t i = 0; i < synced_ones.size() && sending; ++i) {
        Model& model = *synced_ones[i].model;
        model.unfinished = "the last backward() through " + model.name + " ended in an error on this rank, " +
                           "with its gradients on their way, so that the ranks can't go on together: " + text_of(error);
      }
      throw;
    }
    const auto seconds = std::chrono::steady_clock::now() - start;
    group.fail(kBackward, error, std::chrono::duration_cast<std::chrono::seconds>(seconds).count());
  }
}

}  // namespace accelerate::detail
