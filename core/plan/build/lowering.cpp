#include "plan/build/lowering.h"

#include "graph/arguments.h"
#include "graph/operators.h"
#include "plan/build/local_program.h"
#include "plan/build/lower_layers.h"

namespace cleave::plan {
namespace {

using graph::Argument;
using graph::Node;
using graph::NodeKind;
using graph::TensorType;

/// What is dropped is the same however the value is split, and where it is not.
Result<void> lowerDropout(LocalProgram& program, NodeId id) {
  const Node& node = program.graph().node(id);
  const ValueId result = node.results[0];
  const graph::Value& info = program.graph().value(result);
  CLEAVE_TRY(TensorType type, program.localType(result));
  std::vector<Argument> args{program.held(graph::operandAt(node, 0)), graph::numberAt(node, 1).value_or(0),
                             static_cast<std::int64_t>(id.index()), info.type.shape,
                             program.solution().computed(result).text()};
  program.hold(result, program.call(graph::kDropout, std::move(args), std::move(type), info.name, result));
  return {};
}

Result<void> lowerNode(LocalProgram& program, NodeId id) {
  const Node& node = program.graph().node(id);
  if (node.kind != NodeKind::Call) return program.addSource(id);
  if (graph::isDropout(program.graph(), node)) return lowerDropout(program, id);
  const auto& option = program.solution().strategies[id.index()];
  if (!option || program.ranks() == 1) return program.copy(id);
  const auto layer = graph::layerShape(program.graph(), id);
  CLEAVE_CHECK(layer.has_value(), "node {} has a strategy, but is not a layer", id.index());
  return lowerLayer(program, id, *layer, *option);
}

/// A value that the user lets change its placement right after it is computed: gathered, or cut on each rank.
Result<void> redistributeValue(LocalProgram& program, ValueId value, const Placement& from) {
  const graph::Value& info = program.graph().value(value);
  const Placement& to = program.solution().of(value);
  const auto shape = to.localShape(info.type.shape, program.ranks());
  if (!(from.isPlainSplit() && to.isReplicated()) && !(from.isReplicated() && to.isPlainSplit() && shape)) {
    return fail(ErrorCode::BadInput, "{} cannot go from {} to {} on {} ranks.", info.name, from.text(), to.text(),
                program.ranks());
  }
  const ValueId before = program.held(value);
  program.passNameOn(value, info.name + (to.isReplicated() ? ".part" : ".whole"));
  program.hold(value, to.isReplicated() ? program.gather(before, from, info.name, value)
                                        : program.call(graph::kShard, {before, std::int64_t{to.firstDim()}},
                                                       {info.type.dtype, *shape}, info.name, value));
  return {};
}

}  // namespace

Result<Lowered> lower(const PlanRequest& request, const std::vector<graph::Output>& outputs) {
  LocalProgram program(*request.problem, *request.solution);
  const auto& computedAs = request.solution->computedAs;
  for (NodeId id : idRange<NodeId>(program.graph().nodes.size())) {
    CLEAVE_TRY_VOID(lowerNode(program, id));
    for (const ValueId result : program.graph().node(id).results) {
      const auto changed = computedAs.find(result);
      if (changed == computedAs.end() || program.ranks() == 1) continue;
      CLEAVE_TRY_VOID(redistributeValue(program, result, changed->second));
    }
  }
  return std::move(program).finish(outputs, request.gatherOutputs);
}

}  // namespace cleave::plan
