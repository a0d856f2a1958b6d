#include "plan/build/local_program.h"

#include "graph/arguments.h"
#include "graph/operators.h"
#include "graph/states.h"
#include "plan/build/gather.h"

namespace cleave::plan {

using graph::Argument;
using graph::Node;
using graph::NodeKind;
using graph::TensorType;

LocalProgram::LocalProgram(const solve::Problem& problem, const solve::Solution& solution)
    : m_graph(*problem.graph),
      m_solution(solution),
      m_ranks(problem.context.worldSize),
      m_writer(m_graph),
      m_valueOf(m_graph.values.size()),
      m_wholeOf(m_graph.values.size()) {}

ValueId LocalProgram::whole(ValueId value) {
  const Placement& placement = m_solution.of(value);
  if (placement.isReplicated() || m_ranks == 1) return held(value);
  ValueId& gathered = m_wholeOf[value.index()];
  if (!gathered.isValid()) gathered = gather(held(value), placement, m_graph.value(value).name + ".gathered", value);
  return gathered;
}

Result<TensorType> LocalProgram::localType(ValueId id) const {
  const graph::Value& value = m_graph.value(id);
  const Placement& placement = m_solution.computed(id);
  if (placement.isReplicated()) return value.type;
  auto shape = placement.localShape(value.type.shape, m_ranks);
  if (!shape) {
    return fail(ErrorCode::BadInput, "{} cannot be {} on {} ranks: {}.", value.name, placement.text(), m_ranks,
                placement.whyNotDivisible(value.type.shape, m_ranks));
  }
  return TensorType{value.type.dtype, std::move(*shape)};
}

std::vector<Argument> LocalProgram::mapped(std::vector<Argument> args, ValueId from, ValueId to) const {
  graph::changeOperands(args, [&](ValueId value) { return value == from ? to : held(value); });
  return args;
}

std::vector<Argument> LocalProgram::localArguments(NodeId id) const {
  const Node& node = m_graph.node(id);
  std::vector<Placement> operands, results;
  bool anySplit = false;
  for (ValueId operand : graph::operandsOf(node)) operands.push_back(m_solution.of(operand));
  for (ValueId result : node.results) results.push_back(m_solution.computed(result));
  for (const auto* list : {&operands, &results}) {
    for (const Placement& placement : *list) anySplit = anySplit || placement.isSplit();
  }
  if (!anySplit || m_ranks == 1) return node.args;
  return rules::localArguments({m_graph, id, operands, m_ranks}, results);
}

Result<void> LocalProgram::addSource(NodeId id) {
  const Node& node = m_graph.node(id);
  const ValueId result = node.results[0];
  const graph::Value& value = m_graph.value(result);
  CLEAVE_TRY(TensorType type, localType(result));
  const bool isConstant = node.kind == NodeKind::Constant;
  hold(result, m_writer.addSource(m_graph, id, isConstant ? value.type : type));
  const Placement& placement = m_solution.of(result);
  if (isConstant && !placement.isReplicatedOn(m_ranks)) {
    std::vector<Argument> args{held(result), std::int64_t{placement.firstDim()}};
    hold(result, call(graph::kShard, std::move(args), std::move(type), value.name + ".part", result));
  }
  return {};
}

Result<void> LocalProgram::copy(NodeId id, ValueId from, ValueId to) {
  const Node& node = m_graph.node(id);
  std::vector<TensorType> types;
  for (ValueId result : node.results) {
    CLEAVE_TRY(types.emplace_back(), localType(result));
  }
  const auto results =
      m_writer.copy(m_graph, id, m_graph.opName(node), mapped(localArguments(id), from, to), std::move(types), id);
  for (std::size_t i = 0; i < results.size(); ++i) hold(node.results[i], results[i]);
  return {};
}

ValueId LocalProgram::gather(ValueId part, const Placement& placement, const std::string& name, ValueId of) {
  const auto append = [&](std::string_view op, std::vector<Argument> args, TensorType type) {
    return call(op, std::move(args), std::move(type), name, of);
  };
  return addGather(m_writer.current(), append, part, placement, m_graph.value(of).type, m_ranks);
}

Result<Lowered> LocalProgram::finish(const std::vector<graph::Output>& outputs, bool gathers) && {
  for (const graph::Output& output : outputs) {
    const bool isGathered = gathers && !graph::isPresent(output.name);
    m_writer.addOutput(output.name, isGathered ? whole(output.value) : held(output.value));
  }
  Lowered lowered;
  lowered.completes = m_writer.completes();
  CLEAVE_TRY(lowered.program, std::move(m_writer).finish());
  lowered.valueOf = std::move(m_valueOf);
  lowered.wholeOf = std::move(m_wholeOf);
  return lowered;
}

}  // namespace cleave::plan
