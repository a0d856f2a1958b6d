#pragma once
/// The variables of a search: which nodes are steps, what each one reads and what its choice places.
///
/// Every node is a step, in topological order (ascending NodeId), except a parameter that layers own: such a parameter
/// is placed by the first of its layers, and the other layers that share it (tied weights) must choose the same
/// placement. A parameter is owned when every use of it is as weight or bias of a layer; any other parameter, an input
/// or a constant is a step whose only candidate is R, as in Optimum. Derived from the problem alone, so engines,
/// cursors and explanations agree on it. Immutable; share it between threads.
#include "solve/problem/choice.h"
#include "solve/problem/problem.h"

#include <cstdint>
#include <span>

namespace cleave::solve {

/// What an operand is to a node.
enum class Role : std::uint8_t { Operand, LayerInput, Weight, Bias, Target, Down, Routing };

/// One operand whose placement decides what a node may take.
struct Read {
  ValueId value;
  Role role = Role::Operand;
};

/// All values replicated, no layer with a strategy.
Solution emptySolution(const Graph& graph);
/// Makes `choice` of `node` part of a solution; `writes`: Variables::writes(node).
void take(const Graph& graph, NodeId node, std::span<const ValueId> writes, const Choice& choice, Solution& solution);
/// The same where all placements are there already.
void takeStrategy(const Graph& graph, NodeId node, const Choice& choice, Solution& solution);

class Variables {
 public:
  explicit Variables(const Problem& problem);

  /// Nodes in the order of the search.
  const std::vector<NodeId>& deciders() const { return m_deciders; }
  bool isStep(NodeId node) const { return !m_placedBy[node.index()].isValid(); }
  /// The node whose choice places this one's result: the owning layer of a parameter, else the node itself.
  NodeId decider(NodeId node) const { return isStep(node) ? node : m_placedBy[node.index()]; }
  /// Steps before `node` in the order; the depth of the search when it arrives there.
  std::uint32_t decidersBefore(NodeId node) const { return m_decidersBefore[node.index()]; }

  const std::optional<graph::LayerShape>& layer(NodeId node) const;
  /// Operands that are placed before `node` is: for a layer its input, target, and the weight and bias that other nodes
  /// place; for any other call its operands in argument order.
  std::span<const Read> reads(NodeId node) const { return range(m_reads, m_readsBegin, node); }
  /// Values that a choice of `node` places: its results; for a layer then its weight and its bias, for experts also
  /// their down projections (invalid: placed elsewhere).
  std::span<const ValueId> writes(NodeId node) const { return range(m_writes, m_writesBegin, node); }
  /// Pins that speak of `node` or of a value it places, as indices into Problem::pins; mostly none.
  std::span<const std::uint32_t> pins(NodeId node) const;
  const PinTargets& pinTargets(std::uint32_t pin) const { return m_pinTargets[pin]; }
  /// The first of Problem::rulesOff that switches the rule of `node` off.
  std::optional<std::uint32_t> ruleOff(NodeId node) const;
  /// True when the user allows `value` to change its placement after it is computed.
  bool isRedistributable(ValueId value) const {
    return !m_isRedistributable.empty() && m_isRedistributable[value.index()];
  }
  /// True when `node` makes such a value.
  bool redistributes(NodeId node) const;

 private:
  template <class T>
  static std::span<const T> range(const std::vector<T>& pool, const std::vector<std::uint32_t>& begins, NodeId node) {
    return {pool.data() + begins[node.index()], begins[node.index() + 1] - begins[node.index()]};
  }
  void findOwners(const Graph& graph);
  void addNode(const Graph& graph, NodeId node);
  void resolvePins(const Problem& problem);
  void resolveSwitches(const Problem& problem);

  std::vector<NodeId> m_deciders;
  std::vector<NodeId> m_placedBy;               ///< by NodeId; valid for owned parameters only
  std::vector<std::uint32_t> m_decidersBefore;  ///< by NodeId
  std::vector<std::uint32_t> m_layerIndex;      ///< by NodeId: 1 + index into m_layers; 0: not a layer
  std::vector<std::optional<graph::LayerShape>> m_layers;
  std::vector<Read> m_reads;
  std::vector<std::uint32_t> m_readsBegin;
  std::vector<ValueId> m_writes;
  std::vector<std::uint32_t> m_writesBegin;
  std::vector<PinTargets> m_pinTargets;                                  ///< by index into Problem::pins
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> m_pins;  ///< by raw NodeId of the deciding node
  std::unordered_map<std::uint32_t, std::uint32_t> m_rulesOff;  ///< by raw NodeId: index into Problem::rulesOff
  std::vector<bool> m_isRedistributable;                        ///< by ValueId; empty: none
};

/// Of a layer, under the problem's settings; pins and switched-off rules do not count.
rules::LayerStrategies layerStrategiesOf(const Problem& problem, const Variables& variables, NodeId layer);

}  // namespace cleave::solve
