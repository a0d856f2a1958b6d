#include "solve/problem/variables.h"

#include <algorithm>

namespace cleave::solve {

Solution emptySolution(const Graph& graph) {
  Solution solution;
  solution.placements.resize(graph.values.size());
  solution.strategies.resize(graph.nodes.size());
  return solution;
}

void applyChoice(const Graph& graph, NodeId node, std::span<const ValueId> writes, const Choice& choice,
                 Solution& solution) {
  auto written = writes.begin();
  forEachPlacement(choice, [&](const Placement& placement) {
    if (written->isValid()) solution.placements[written->index()] = placement;
    ++written;
  });
  applyStrategy(graph, node, choice, solution);
}

void applyStrategy(const Graph& graph, NodeId node, const Choice& choice, Solution& solution) {
  solution.strategies[node.index()] = choice.strategy;
  for (std::size_t i = 0; i < choice.computedAs.size(); ++i) {
    if (choice.computedAs[i] != choice.results[i])
      solution.computedAs.emplace(graph.node(node).results[i], choice.computedAs[i]);
  }
}

namespace {

/// Number of uses of a value in a node's arguments.
std::size_t useCount(const graph::Node& node, ValueId value) {
  std::size_t count = 0;
  graph::forEachOperand(node, [&](ValueId operand) { count += operand == value; });
  return count;
}

/// True if `layer`, whose node is `user`, uses the parameter once, as its weight or bias.
bool ownsParameter(const Graph& graph, const graph::LayerShape& layer, NodeId user, ValueId parameter) {
  const bool isRole = layer.weight == parameter || layer.bias == parameter || layer.down == parameter;
  return isRole && useCount(graph.node(user), parameter) == 1;
}

}  // namespace

Variables::Variables(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const std::size_t count = graph.nodes.size();
  m_layerIndex.assign(count, 0);
  m_layers.emplace_back();       // index 0: not a layer
  std::vector<bool> mayBeLayer;  // by OpId
  for (const std::string& op : graph.ops) mayBeLayer.push_back(graph::mayBeLayer(op));
  for (NodeId n : idRange<NodeId>(count)) {
    if (graph.node(n).kind != graph::NodeKind::Call || !mayBeLayer[graph.node(n).op.index()]) continue;
    if (auto layer = graph::layerShape(graph, n)) {
      m_layerIndex[n.index()] = static_cast<std::uint32_t>(m_layers.size());
      m_layers.push_back(layer);
    }
  }
  findOwners(graph);
  m_decidersBefore.reserve(count);
  m_readsBegin.reserve(count + 1);
  m_writesBegin.reserve(count + 1);
  for (NodeId n : idRange<NodeId>(count)) addNode(graph, n);
  m_readsBegin.push_back(static_cast<std::uint32_t>(m_reads.size()));
  m_writesBegin.push_back(static_cast<std::uint32_t>(m_writes.size()));
  resolvePins(problem);
  resolveSwitches(problem);
}

const std::optional<graph::LayerShape>& Variables::layer(NodeId node) const {
  return m_layers[m_layerIndex[node.index()]];
}

std::span<const std::uint32_t> Variables::pins(NodeId node) const {
  if (m_pins.empty()) return {};
  const auto found = m_pins.find(node.raw());
  return found == m_pins.end() ? std::span<const std::uint32_t>() : std::span<const std::uint32_t>(found->second);
}

std::optional<std::uint32_t> Variables::ruleOff(NodeId node) const {
  if (m_rulesOff.empty()) return std::nullopt;
  const auto found = m_rulesOff.find(node.raw());
  return found == m_rulesOff.end() ? std::nullopt : std::optional(found->second);
}

bool Variables::redistributes(NodeId node) const {
  if (m_isRedistributable.empty() || !isStep(node)) return false;
  const auto written = writes(node);
  return std::any_of(written.begin(), written.end(), [&](ValueId v) { return v.isValid() && isRedistributable(v); });
}

void Variables::findOwners(const Graph& graph) {
  m_placedBy.assign(graph.nodes.size(), NodeId());
  std::vector<bool> isOutput(graph.values.size(), false);
  for (const auto& output : graph.outputs) isOutput[output.value.index()] = true;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph.node(n).kind != graph::NodeKind::Parameter) continue;
    const ValueId parameter = graph.node(n).results.front();
    const auto& users = graph.value(parameter).users;
    const bool isOwned =
        !users.empty() && !isOutput[parameter.index()] && std::all_of(users.begin(), users.end(), [&](NodeId user) {
          const auto& shape = layer(user);
          return shape && ownsParameter(graph, *shape, user, parameter);
        });
    if (isOwned) m_placedBy[n.index()] = users.front();
  }
}

void Variables::addNode(const Graph& graph, NodeId node) {
  m_decidersBefore.push_back(static_cast<std::uint32_t>(m_deciders.size()));
  m_readsBegin.push_back(static_cast<std::uint32_t>(m_reads.size()));
  m_writesBegin.push_back(static_cast<std::uint32_t>(m_writes.size()));
  if (!isStep(node)) return;
  m_deciders.push_back(node);
  const graph::Node& n = graph.node(node);
  m_writes.insert(m_writes.end(), n.results.begin(), n.results.end());
  const auto& shape = layer(node);
  if (!shape) {
    graph::forEachOperand(n, [&](ValueId v) { m_reads.push_back({v, Role::Operand}); });
    return;
  }
  m_reads.push_back({shape->input, Role::LayerInput});
  const bool hasExperts = shape->kind == graph::LayerKind::Experts;
  if (shape->target.isValid()) m_reads.push_back({shape->target, hasExperts ? Role::Routing : Role::Target});
  if (shape->shares.isValid()) m_reads.push_back({shape->shares, Role::Routing});
  const auto addParameter = [&](ValueId value, Role role) {
    const bool isPlacedHere = value.isValid() && m_placedBy[graph.value(value).producer.index()] == node;
    if (value.isValid() && !isPlacedHere) m_reads.push_back({value, role});
    m_writes.push_back(isPlacedHere ? value : ValueId());
  };
  addParameter(shape->weight, Role::Weight);
  addParameter(shape->bias, Role::Bias);
  if (hasExperts) addParameter(shape->down, Role::Down);
}

void Variables::resolvePins(const Problem& problem) {
  for (std::size_t i = 0; i < problem.pins.size(); ++i) {
    const auto add = [&](NodeId node) {
      auto& list = m_pins[node.raw()];
      if (list.empty() || list.back() != i) list.push_back(static_cast<std::uint32_t>(i));
    };
    const PinTargets& targets = m_pinTargets.emplace_back(targetsOf(problem.pins[i], *problem.graph));
    for (NodeId layer : targets.layers) add(layer);
    for (ValueId v : targets.values) add(decider(problem.graph->value(v).producer));
  }
}

void Variables::resolveSwitches(const Problem& problem) {
  const Graph& graph = *problem.graph;
  for (std::size_t i = 0; i < problem.rulesOff.size(); ++i) {
    for (NodeId n : nodesWithOperator(problem.rulesOff[i], graph)) {
      m_rulesOff.try_emplace(n.raw(), static_cast<std::uint32_t>(i));
    }
  }
  for (const std::string& pattern : problem.redistributable) {
    m_isRedistributable.resize(graph.values.size(), false);
    for (ValueId v : redistributableValues(pattern, graph)) m_isRedistributable[v.index()] = true;
  }
}

rules::LayerStrategies layerStrategiesOf(const Problem& problem, const Variables& variables, NodeId layer) {
  return rules::layerStrategies(*problem.graph, layer, *variables.layer(layer), problem.context);
}

}  // namespace cleave::solve
