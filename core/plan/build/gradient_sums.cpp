#include "plan/build/gradient_sums.h"

#include "graph/arguments.h"
#include "graph/operators.h"
#include "plan/build/program_writer.h"

namespace cleave::plan {
namespace {

using graph::Argument;
using graph::Node;
using graph::NodeKind;
using graph::TensorType;

/// Writes the inference program again, node by node, with the added nodes at their places.
class GradientSumWriter {
 public:
  GradientSumWriter(const Lowered& inference, const TrainedGraph& trained)
      : m_from(inference),
        m_facts(findGradientFacts(inference, trained)),
        m_writer(trained.graph),
        m_new(inference.program.values.size()),
        m_summed(inference.program.values.size()) {
    m_writer.reserveNames(inference.program);
  }

  Result<Lowered> write(const std::vector<bool>& isGatheredAgain) && {
    const Graph& program = m_from.program;
    for (NodeId id : idRange<NodeId>(program.nodes.size())) {
      const Node& node = program.node(id);
      if (node.kind == NodeKind::Call) {
        copyCall(id, isGatheredAgain[node.results[0].index()] ? graph::kGatherInput : program.opName(node));
      } else {
        m_new[node.results[0].index()] = m_writer.addSource(program, id, program.value(node.results[0]).type);
      }
      for (const ValueId result : node.results) {
        if (m_facts.isFromParts[result.index()]) addSame(result);
      }
    }
    for (const graph::Output& output : program.outputs) m_writer.addOutput(output.name, m_new[output.value.index()]);
    Lowered training;
    training.completes = m_writer.completes();
    training.valueOf = renumbered(m_from.valueOf);
    training.wholeOf = renumbered(m_from.wholeOf);
    CLEAVE_TRY(training.program, std::move(m_writer).finish());
    return training;
  }

 private:
  void copyCall(NodeId id, std::string_view op) {
    const Graph& program = m_from.program;
    const Node& node = program.node(id);
    std::vector<Argument> args = node.args;
    const bool sums = m_facts.sumsOperands[id.index()];
    graph::changeOperands(args, [&](ValueId value) {
      return sums && m_facts.alikeFor[value.index()].isValid() ? summed(value) : m_new[value.index()];
    });
    std::vector<TensorType> types;
    for (const ValueId result : node.results) types.push_back(program.value(result).type);
    const auto results =
        m_writer.copy(program, id, op, std::move(args), std::move(types), node.origin, m_from.completes[id.index()]);
    for (std::size_t i = 0; i < results.size(); ++i) m_new[node.results[i].index()] = results[i];
  }

  /// What different work reads in place of a value that the ranks hold alike: its gradients are parts of a sum.
  ValueId summed(ValueId value) {
    ValueId& sum = m_summed[value.index()];
    if (!sum.isValid()) {
      const graph::Value& info = m_from.program.value(value);
      sum = m_writer.call(graph::kGradAllReduce, {m_new[value.index()]}, info.type, info.name + ".summed",
                          m_facts.alikeFor[value.index()]);
    }
    return sum;
  }

  void addSame(ValueId value) {
    const graph::Value& info = m_from.program.value(value);
    const ValueId of = m_facts.alikeFor[value.index()];
    ValueId& held = m_new[value.index()];
    m_writer.passNameOn(held, info.name + ".own", of);
    held = m_writer.call(graph::kSame, {held}, info.type, info.name, of);
  }

  std::vector<ValueId> renumbered(std::vector<ValueId> values) const {
    for (ValueId& value : values) {
      if (value.isValid()) value = m_new[value.index()];
    }
    return values;
  }

  const Lowered& m_from;
  const GradientFacts m_facts;
  ProgramWriter m_writer;
  std::vector<ValueId> m_new;     ///< by value of the inference program: the same in the new one
  std::vector<ValueId> m_summed;  ///< by value of the inference program: its sum; invalid: not yet
};

/// By value of the inference program: gathered for layers by one all-gather, which the backward pass can repeat.
std::vector<bool> findGatheredAgain(const Lowered& inference, const solve::Solution& solution) {
  std::vector<bool> isGatheredAgain(inference.program.values.size());
  for (ValueId value : idRange<ValueId>(inference.wholeOf.size())) {
    const ValueId whole = inference.wholeOf[value.index()];
    if (whole.isValid() && solution.of(value).isPlainSplit()) isGatheredAgain[whole.index()] = true;
  }
  return isGatheredAgain;
}

}  // namespace

Result<Lowered> addGradientSums(const Lowered& inference, const TrainedGraph& trained) {
  const std::vector<bool> isGatheredAgain = findGatheredAgain(inference, trained.solution);
  return GradientSumWriter(inference, trained).write(isGatheredAgain);
}

}  // namespace cleave::plan
