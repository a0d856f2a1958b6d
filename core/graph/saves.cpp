#include "graph/saves.h"

#include "graph/operators.h"

namespace cleave::graph {
namespace {

using Visit = std::function<void(ValueId)>;

void visitFactors(const Graph& graph, const Gradients& gradients, std::vector<ValueId> operands, int added,
                  const Visit& visit) {
  if (added >= 0 && added < std::ssize(operands)) operands.erase(operands.begin() + added);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    bool isNeeded = false;
    for (std::size_t j = 0; j < operands.size(); ++j) isNeeded = isNeeded || (j != i && gradients.of(operands[j]));
    if (isNeeded && isReal(graph, operands[i])) visit(operands[i]);
  }
}

}  // namespace

bool forEachSaved(const Graph& graph, const Gradients& gradients, NodeId id, const Visit& visit) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::Call || !gradients.of(id)) return false;
  const std::vector<ValueId> operands = operandsOf(node);
  const auto visitAll = [&](const std::vector<ValueId>& values, bool areReal, std::size_t count) {
    for (std::size_t i = 0; i < std::min(count, values.size()); ++i) {
      if (isReal(graph, values[i]) == areReal) visit(values[i]);
    }
  };
  constexpr std::size_t kAll = SIZE_MAX, kQueryKeyValue = 3;
  const Operator& row = operatorOf(graph.opName(node));
  switch (row.saves) {
    case Saves::Nothing: return false;
    case Saves::Mask:
    case Saves::Experts:
    case Saves::Loss: return true;
    case Saves::Factors: visitFactors(graph, gradients, operands, row.added, visit); return false;
    case Saves::Quotient:
      if (operands.size() < 2) return false;
      visit(operands[1]);
      if (gradients.of(operands[1])) visit(operands[0]);
      return false;
    case Saves::First: visit(operands.front()); return false;
    case Saves::Operands: visitAll(operands, true, kAll); return false;
    case Saves::FirstAndResult: visit(operands.front()); [[fallthrough]];
    case Saves::Result: visit(node.results.front()); return false;
    case Saves::Discrete:
      visitAll(operands, false, kAll);
      visitAll(node.results, false, kAll);
      return false;
    case Saves::Attention:
      visitAll(operands, true, kQueryKeyValue);
      visit(node.results.front());
      return true;
    case Saves::Everything:
      visitAll(operands, true, kAll);
      visitAll(node.results, true, kAll);
      return false;
  }
  return false;
}

}  // namespace cleave::graph
