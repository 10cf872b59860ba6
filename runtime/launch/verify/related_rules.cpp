#include "related_rules.h"

#include <map>

namespace accelerate::launch {

namespace {

// What is edited comes first, then what is only found.
const std::map<std::string, std::vector<RelatedRule>>& Table() {
  static const RelatedRule awaited_file = {"AM0607", "awaited-file"};
  static const RelatedRule backward = {"AM0401", "backward"};
  static const RelatedRule backward_sum = {"AM0402", "backward-sum"};
  static const RelatedRule batch_rows = {"AM0312", "batch-rows"};
  static const RelatedRule batch_size = {"AM0307", "batch-size-in-shape"};
  static const RelatedRule batch_statistics = {"AM0711", "batch-statistics"};
  static const RelatedRule class_weight = {"AM0516", "class-weight"};
  static const RelatedRule collation = {"AM0718", "collation"};
  static const RelatedRule coupled_loss = {"AM0705", "coupled-loss"};
  static const RelatedRule data_draw = {"AM0716", "data-draw"};
  static const RelatedRule divergent_branch = {"AM0702", "divergent-branch"};
  static const RelatedRule divergent_collective = {"AM0704", "divergent-collective"};
  static const RelatedRule divergent_training = {"AM0703", "divergent-training"};
  static const RelatedRule dropout = {"AM0712", "dropout"};
  static const RelatedRule file_change = {"AM0606", "file-change"};
  static const RelatedRule gradient_hook = {"AM0806", "gradient-hook"};
  static const RelatedRule metric_after_loop = {"AM0506", "metric-after-loop"};
  static const RelatedRule metric_gather = {"AM0513", "metric-gather"};
  static const RelatedRule metric_max = {"AM0511", "metric-max"};
  static const RelatedRule metric_mean = {"AM0501", "metric-mean"};
  static const RelatedRule metric_min = {"AM0512", "metric-min"};
  static const RelatedRule metric_mine = {"AM0505", "metric-mine"};
  static const RelatedRule metric_reduce = {"AM0503", "metric-reduce"};
  static const RelatedRule metric_share = {"AM0504", "metric-share"};
  static const RelatedRule metric_sum = {"AM0502", "metric-sum"};
  static const RelatedRule opaque_loader = {"AM0306", "opaque-loader"};
  static const RelatedRule output_file = {"AM0603", "output-file"};
  static const RelatedRule output_file_both = {"AM0609", "output-file-both"};
  static const RelatedRule output_file_open = {"AM0604", "output-file-open"};
  static const RelatedRule output_file_other = {"AM0605", "output-file-other"};
  static const RelatedRule output_file_stdio = {"AM0608", "output-file-stdio"};
  static const RelatedRule outside_entropy = {"AM0714", "outside-entropy"};
  static const RelatedRule outside_value = {"AM0508", "outside-value"};
  static const RelatedRule own_batch = {"AM0309", "own-batch"};
  static const RelatedRule prepare = {"AM0301", "prepare"};
  static const RelatedRule prepare_in_constructor = {"AM0302", "prepare-in-constructor"};
  static const RelatedRule rank_local_use = {"AM0701", "rank-local-use"};
  static const RelatedRule row_noise = {"AM0507", "row-noise"};
  static const RelatedRule row_noise_like = {"AM0515", "row-noise-like"};
  static const RelatedRule batch_noise = {"AM0713", "batch-noise"};
  static const RelatedRule save = {"AM0601", "save"};
  static const RelatedRule save_archive = {"AM0602", "save-archive"};
  static const RelatedRule training_loader = {"AM0303", "training-loader"};
  static const RelatedRule unfollowed_backward = {"AM0805", "unfollowed-backward"};
  static const RelatedRule unprepared_optimizer = {"AM0308", "unprepared-optimizer"};
  static const RelatedRule unprepared_parameter = {"AM0311", "unprepared-parameter"};
  static const RelatedRule unreached_backward = {"AM0801", "unreached-backward"};
  static const RelatedRule unsupported_backward = {"AM0802", "unsupported-backward"};
  static const RelatedRule whole_call = {"AM0517", "whole-call"};
  static const std::map<std::string, std::vector<RelatedRule>> table = {
      {"initial-values", {outside_value, outside_entropy}},
      {"ranks-start-apart", {prepare, prepare_in_constructor, outside_value, outside_entropy, unprepared_optimizer}},
      {"ranks-drift", {prepare, prepare_in_constructor, unprepared_optimizer, rank_local_use, divergent_branch}},
      {"not-reduced", {prepare, prepare_in_constructor, backward, unprepared_optimizer, unprepared_parameter}},
      {"plain-backward", {backward, backward_sum, unreached_backward, unsupported_backward, unfollowed_backward}},
      {"buffers-not-synchronised", {prepare, prepare_in_constructor, batch_statistics}},
      {"not-sharded", {training_loader, own_batch, opaque_loader}},
      {"rows", {training_loader, own_batch, batch_size, batch_rows}},
      {"times-ranks", {backward, backward_sum, metric_share}},
      {"divided-by-ranks", {backward, backward_sum}},
      {"constant-factor", {backward, backward_sum, metric_share, class_weight}},
      {"penalty", {backward_sum, metric_share}},
      {"gradient-only", {backward, unprepared_parameter, gradient_hook}},
      {"update", {prepare, prepare_in_constructor, unprepared_optimizer, divergent_branch}},
      {"batch-statistics", {batch_statistics}},
      {"other-rows-or-draws",
       {training_loader, row_noise, row_noise_like, whole_call, batch_noise, dropout, data_draw, collation,
        coupled_loss}},
      {"rounding-grows", {}},
      {"sequence", {training_loader, own_batch, divergent_branch, divergent_training}},
      {"tensors", {outside_value, divergent_branch}},
      {"metric-partial", {metric_reduce, metric_after_loop, metric_sum}},
      {"metric-counted-again", {metric_reduce, metric_after_loop, metric_sum}},
      {"metric", {metric_mean, metric_mine, metric_max, metric_min, metric_gather, whole_call, rank_local_use}},
      {"saved", {save, save_archive, metric_reduce, metric_after_loop, metric_gather, whole_call, rank_local_use}},
      {"text", {divergent_branch, rank_local_use}},
      {"files", {save, save_archive, output_file, output_file_open, output_file_stdio, awaited_file, file_change}},
      {"file-by-several",
       {save, save_archive, output_file, output_file_open, output_file_stdio, output_file_both, output_file_other,
        file_change}},
      {"hang", {divergent_branch, divergent_training, divergent_collective}},
      {"failed", {}},
      {"not-deterministic", {}},
  };
  return table;
}

}  // namespace

std::vector<RelatedRule> RelatedRules(const std::string& kind) {
  const auto found = Table().find(kind);
  return found == Table().end() ? std::vector<RelatedRule>() : found->second;
}

std::vector<std::string> DifferenceKinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, rules] : Table()) kinds.push_back(kind);
  return kinds;
}

}  // namespace accelerate::launch
