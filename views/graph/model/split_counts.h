#pragma once
/// How a graph is split, counted for each module: layers by form with bytes and FLOPs (plan/work.h), and values by
/// placement. The canvas, its legend and the modules tree take their numbers from here, so that they cannot differ.
///
/// Follows a search by changes: an update costs the changed nodes times the depth of modules. Every operator's first
/// result is counted as a value, aliases included; layers are counted where they have a parameter.
///
///     SplitCounts counts(graph);
///     counts.reset({placementOf, strategyOf, ranks});
///     counts.update(changedNodes);
///     counts.of(scope).work.of(LayerForm::Row).layers;
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "graph/dimensions.h"
#include "graph/layers.h"
#include "plan/work.h"
#include "views/base/theme.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;

using PlacementSource = std::function<MaybePlacement(ValueId)>;
using StrategySource = std::function<std::optional<rules::Strategy>(NodeId)>;

/// Where placements and strategies are read; empty functions: nothing is decided.
struct SplitSource {
  PlacementSource placement;
  StrategySource strategy;
  int ranks = 0;  ///< 0: not known
};

/// Operators in each scope and below it, by ScopeId: what tree and canvas say of a module.
std::vector<std::uint32_t> operatorsByScope(const graph::Graph& graph);

struct SplitTally {
  plan::WorkTally work;
  std::array<std::uint32_t, kTintCount> values{};
  std::array<double, kTintCount> flops{};  ///< of operators that are no counted layer (attention), by their first
                                           ///< result
  SplitTally& operator+=(const SplitTally& other);
  bool operator==(const SplitTally&) const = default;
};

class SplitCounts {
 public:
  /// `groupOf`, by NodeId: a further bucket that a node counts in, kNoGroup: none. Empty: no groups.
  static constexpr std::uint32_t kNoGroup = 0xFFFFFFFF;
  explicit SplitCounts(std::shared_ptr<const graph::Graph> graph, std::vector<std::uint32_t> groupOf = {});

  void reset(SplitSource source);
  /// Reads these and what they place again; answers the layers that differ from before and the makers of the values
  /// that do, each once.
  std::vector<NodeId> update(std::span<const NodeId> nodes);

  const MaybePlacement& placement(ValueId value) const { return m_placements[value.index()]; }
  std::optional<rules::Strategy> strategy(NodeId node) const { return m_strategies[node.index()]; }
  LayerForm form(NodeId node) const { return m_forms[node.index()]; }  ///< Open: no layer, or not decided
  bool isLayer(NodeId node) const { return m_work[node.index()].isLayer; }
  /// What the layer reads and holds; nullptr: no layer.
  const graph::LayerShape* layer(NodeId node) const;
  Tint tint(ValueId value) const { return tintOf(m_placements[value.index()], m_source.ranks); }
  int ranks() const { return m_source.ranks; }

  const SplitTally& whole() const { return m_whole; }
  const SplitTally& of(ScopeId scope) const { return m_scopes[scope.index()]; }
  const SplitTally& ofGroup(std::uint32_t group) const;
  /// What the dimension of a placement means for this value; Unknown: nobody says.
  graph::Meaning meaning(ValueId value) const;
  /// Of the values with this tint, how many mean what; the most first.
  std::vector<std::pair<graph::Meaning, std::uint32_t>> meanings(Tint tint) const;
  bool isEmpty() const { return m_assigned == 0; }

 private:
  void read(NodeId node, std::vector<NodeId>* changed);
  void count(NodeId node, int times);
  bool countsValue(NodeId node) const;

  std::shared_ptr<const graph::Graph> m_graph;
  std::vector<plan::NodeWork> m_work;
  std::vector<std::vector<graph::Meaning>> m_meanings;
  std::vector<std::uint32_t> m_groupOf;
  std::vector<graph::LayerShape> m_layers;
  std::vector<std::uint32_t> m_layerOf;  ///< by NodeId: 1 + index into m_layers; 0: none
  SplitSource m_source;
  std::vector<MaybePlacement> m_placements;
  std::vector<std::optional<rules::Strategy>> m_strategies;
  std::vector<LayerForm> m_forms;
  std::vector<SplitTally> m_scopes, m_groups;
  SplitTally m_whole;
  std::array<std::array<std::uint32_t, graph::kMeanings>, kTintCount> m_meant{};
  std::size_t m_assigned = 0;
};

/// "12 column · 3 row · 2 replicated", with bytes and FLOPs; then values. One line a form: tooltips and accessible
/// texts.
QStringList splitLines(const SplitTally& tally);

}  // namespace cleave::views
