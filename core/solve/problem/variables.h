#pragma once
/// The variables of a search: the nodes that are steps, the operands each one reads and the values its choice places.
///
/// Every node is a step, in topological order (ascending NodeId), except a parameter that layers own. The first of its
/// layers places such a parameter, and other layers that share it (tied weights) must choose the same placement. A
/// parameter is owned if every use of it is as weight or bias of a layer. Any other parameter, input or constant is a
/// step whose only candidate is R, as in Optimum. The variables depend only on the problem, so engines, cursors and
/// explanations agree on them. They are immutable and can be shared between threads.
#include "solve/problem/choice.h"
#include "solve/problem/problem.h"

#include <cstdint>
#include <span>

namespace cleave::solve {

/// The role of an operand in a node.
enum class Role : std::uint8_t { Operand, LayerInput, Weight, Bias, Target, Down, Routing };

/// One operand, whose placement limits the choices of the node.
struct Read {
  ValueId value;
  Role role = Role::Operand;
};

/// A solution with all values replicated and no strategies.
Solution emptySolution(const Graph& graph);
/// Writes `choice` of `node` into a solution; `writes`: Variables::writes(node).
void applyChoice(const Graph& graph, NodeId node, std::span<const ValueId> writes, const Choice& choice,
                 Solution& solution);
/// The same without placements, which the solution already has.
void applyStrategy(const Graph& graph, NodeId node, const Choice& choice, Solution& solution);

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
  /// Operands that are placed before `node`. For a layer: its input, its target, and the weight and bias if other nodes
  /// place them. For any other call: its operands in argument order.
  std::span<const Read> reads(NodeId node) const { return range(m_reads, m_readsBegin, node); }
  /// Values that a choice of `node` places: its results, then for a layer its weight and bias, and for experts the down
  /// projections. An id is invalid if another node places the value.
  std::span<const ValueId> writes(NodeId node) const { return range(m_writes, m_writesBegin, node); }
  /// Pins of `node` or of a value it places, as indices into Problem::pins; usually empty.
  std::span<const std::uint32_t> pins(NodeId node) const;
  const PinTargets& pinTargets(std::uint32_t pin) const { return m_pinTargets[pin]; }
  /// Index of the first entry of Problem::rulesOff that matches `node`.
  std::optional<std::uint32_t> ruleOff(NodeId node) const;
  /// True if the user allows redistribution of `value`.
  bool isRedistributable(ValueId value) const {
    return !m_isRedistributable.empty() && m_isRedistributable[value.index()];
  }
  /// True if `node` writes such a value.
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
  std::vector<bool> m_isRedistributable;                        ///< by ValueId; empty if no value is redistributable
};

/// Strategies of a layer under the problem's settings; pins and switched-off rules do not matter.
rules::LayerStrategies layerStrategiesOf(const Problem& problem, const Variables& variables, NodeId layer);

}  // namespace cleave::solve
