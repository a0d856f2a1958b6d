#include "solve/candidates/domains.h"

namespace cleave::solve {
namespace {

Problem withoutDemands(Problem problem) {
  problem.pins.clear();
  problem.rulesOff.clear();
  return problem;
}

}  // namespace

Domains::Domains(const Problem& problem, std::shared_ptr<CandidateTable> table, Work& work)
    : m_problem(withoutDemands(problem)),
      m_variables(m_problem),
      m_table(std::move(table)),
      m_reach({m_problem, m_variables}, *m_table) {
  m_reach.follow(work);
  for (const ValueId v : idRange<ValueId>(m_problem.graph->values.size()))
    m_isComplete = m_isComplete && m_reach.isComplete(v);
}

bool Domains::isSource(ValueId value) const {
  const NodeId producer = m_problem.graph->value(value).producer;
  return m_problem.graph->node(producer).kind != graph::NodeKind::Call && m_variables.isStep(producer);
}

bool Domains::fits(ValueId value, const Placement& placement) const {
  return placement.localShape(m_problem.graph->shapeOf(value), m_problem.context.worldSize).has_value();
}

void Domains::addOfLayer(NodeId node, ValueId value, IdTuple& domain) {
  const auto& layer = m_variables.layer(node);
  if (!layer) return;
  const auto add = [&](const Placement& placement) {
    if (fits(value, placement)) addOnce(domain, m_table->intern(placement));
  };
  for (const auto& option : rules::layerStrategies(*m_problem.graph, node, *layer, m_problem.context).offered) {
    if (layer->input == value) add(option.input);
    if (layer->weight == value) add(option.weight);
    if (layer->bias == value) add(option.bias);
    if (layer->down == value && option.down) add(*option.down);
    if (m_problem.graph->node(node).results.front() == value) add(option.result);
  }
}

const IdTuple& Domains::widened(ValueId value) {
  const auto [found, isNew] = m_widened.try_emplace(value.raw(), IdTuple{kReplicated});
  IdTuple& domain = found->second;
  if (!isNew || isSource(value)) return domain;
  const Graph& graph = *m_problem.graph;
  for (int dim = 0; dim < static_cast<int>(graph.shapeOf(value).size()); ++dim) {
    if (fits(value, Placement::split(dim))) domain.push_back(m_table->intern(Placement::split(dim)));
  }
  addOfLayer(graph.value(value).producer, value, domain);
  for (const NodeId user : graph.value(value).users) addOfLayer(user, value, domain);
  for (const PlacementId id : of(value)) addOnce(domain, id);
  return domain;
}

Answer Domains::gives(ValueId value, const Placement& placement, Work& work) {
  const NodeId node = m_variables.decider(m_problem.graph->value(value).producer);
  std::vector<IdTuple> choices;
  bool areComplete = true;
  for (const Read& read : m_variables.reads(node)) {
    areComplete = areComplete && isComplete(read.value);
    choices.push_back(widened(read.value));
  }
  const Answer answer = m_reach.gives(node, value, m_table->intern(placement), choices, work);
  return answer == Answer::Fails && !areComplete ? Answer::Unknown : answer;
}

}  // namespace cleave::solve
