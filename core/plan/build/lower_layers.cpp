#include "plan/build/lower_layers.h"

#include "graph/operators.h"

namespace cleave::plan {
namespace {

using graph::Argument;
using graph::LayerKind;
using graph::LayerShape;
using graph::Node;
using graph::TensorType;
using rules::CollectiveKind;
using rules::LayerStrategy;

/// partial sum → all-reduce or reduce-scatter → bias.
Result<void> addReduction(LocalProgram& program, ValueId result, CollectiveKind kind, ValueId partial, ValueId bias) {
  const std::string& name = program.graph().value(result).name;
  CLEAVE_TRY(const TensorType type, program.localType(result));
  std::vector<Argument> args{partial};
  if (kind == CollectiveKind::ReduceScatter)
    args.push_back(std::int64_t{program.solution().computed(result).firstDim()});
  const std::string_view op = kind == CollectiveKind::ReduceScatter ? graph::kReduceScatter : graph::kAllReduce;
  ValueId reduced = program.call(op, std::move(args), type, bias.isValid() ? name + ".reduced" : name, result);
  if (bias.isValid())
    reduced = program.call("aten::add.Tensor", {reduced, program.held(bias), std::int64_t{1}}, type, name, result);
  program.hold(result, reduced);
  return {};
}

/// column+gather: the layer's part of its result, gathered at once.
Result<void> addGatheredLinear(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option,
                               std::vector<Argument> args) {
  const ValueId result = program.graph().node(id).results[0];
  const graph::Value& info = program.graph().value(result);
  const int last = static_cast<int>(info.type.shape.size()) - 1;
  const Placement split = option.weight.shifted(last - layer.outAxis);
  const auto shape = split.localShape(info.type.shape, program.ranks());
  if (!shape) {
    return fail(ErrorCode::BadInput, "{} cannot be computed as {} on {} ranks.", info.name, split.text(),
                program.ranks());
  }
  const std::string_view op = program.graph().opName(program.graph().node(id));
  const ValueId part = program.call(op, std::move(args), {info.type.dtype, *shape}, info.name + ".part", result);
  program.hold(result, program.gather(part, split, info.name, result));
  return {};
}

Result<void> addLinear(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option) {
  const bool gathers = option.before == CollectiveKind::AllGather;
  const ValueId input = gathers ? program.whole(layer.input) : program.held(layer.input);
  if (!option.after) return program.copy(id, layer.input, input);
  const Node& node = program.graph().node(id);
  std::vector<Argument> args = program.mapped(node.args, layer.input, input);
  if (*option.after == CollectiveKind::AllGather) return addGatheredLinear(program, id, layer, option, std::move(args));
  // A bias added before the reduction would be added once a rank.
  std::string_view op = program.graph().opName(node);
  if (layer.bias.isValid()) {
    const graph::LayerArguments& row = *graph::operatorOf(op).layer;
    if (row.withoutBias.empty()) {
      args[static_cast<std::size_t>(row.bias)] = std::monostate();
    } else {
      op = row.withoutBias;
      args = {args[static_cast<std::size_t>(row.input)], args[static_cast<std::size_t>(row.weight)]};
    }
  }
  const graph::Value& info = program.graph().value(node.results[0]);
  const ValueId partial = program.call(op, std::move(args), info.type, info.name + ".partial", node.results[0]);
  return addReduction(program, node.results[0], *option.after, partial, layer.bias);
}

Result<void> addEmbedding(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option) {
  if (rules::axisOf(option.strategy) != "vocab") return program.copy(id);
  const Node& node = program.graph().node(id);
  const graph::Value& info = program.graph().value(node.results[0]);
  const std::int64_t vocab = program.graph().shapeOf(layer.weight)[static_cast<std::size_t>(layer.outAxis)];
  const Argument padding = node.args.size() > 2 ? node.args[2] : Argument(std::int64_t{-1});
  const ValueId partial =
      program.call(graph::kVocabEmbedding, {program.held(layer.weight), program.held(layer.input), vocab, padding},
                   info.type, info.name + ".partial", node.results[0]);
  return addReduction(program, node.results[0], option.after.value_or(CollectiveKind::AllReduce), partial, {});
}

Result<void> addExperts(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option) {
  if (!option.after) return program.copy(id);
  const Node& node = program.graph().node(id);
  const graph::Value& info = program.graph().value(node.results[0]);
  std::vector<Argument> args = program.mapped(node.args);
  const bool isByExpert = option.strategy == rules::Strategy::ByExpert;
  if (isByExpert) args.push_back(program.graph().shapeOf(layer.weight)[0]);
  const ValueId partial = program.call(isByExpert ? graph::kLocalExperts : graph::kMoeExperts, std::move(args),
                                       info.type, info.name + ".partial", node.results[0]);
  return addReduction(program, node.results[0], *option.after, partial, {});
}

Result<void> addCrossEntropy(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option) {
  if (rules::axisOf(option.strategy) != "vocab") return program.copy(id);
  const Node& node = program.graph().node(id);
  const ValueId result = node.results[0];
  const graph::Value& info = program.graph().value(result);
  std::vector<Argument> args = program.mapped(node.args);
  const std::vector<Argument> defaults{{}, {}, {}, std::int64_t{1}, std::int64_t{-100}, 0.0};
  while (args.size() < defaults.size()) args.push_back(defaults[args.size()]);
  args.push_back(program.graph().shapeOf(layer.input).back());
  program.hold(result, program.call(graph::kVocabCrossEntropy, std::move(args), info.type, info.name, result));
  return {};
}

}  // namespace

Result<void> lowerLayer(LocalProgram& program, NodeId id, const LayerShape& layer, const LayerStrategy& option) {
  switch (layer.kind) {
    case LayerKind::Linear: return addLinear(program, id, layer, option);
    case LayerKind::Embedding: return addEmbedding(program, id, layer, option);
    case LayerKind::CrossEntropy: return addCrossEntropy(program, id, layer, option);
    case LayerKind::Experts: return addExperts(program, id, layer, option);
  }
  return {};
}

}  // namespace cleave::plan
