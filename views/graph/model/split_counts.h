#pragma once
/// How a graph is split: the placement of each value, the strategy of each layer, and for each item of its module tree
/// the layers by strategy with bytes and FLOPs (plan/text/work.h) and the values by placement. An opened model has one
/// instance (views/session/splits.h). The canvas, its legend, the modules tree and the table of operators all read it,
/// so that their numbers agree.
///
/// Follows a search by changes. An update costs the changed nodes times the depth of modules. The first result of each
/// operator counts as a value, aliases included. Only layers with a parameter count. One thread at a time.
///
///     SplitCounts counts(std::make_shared<const ModuleTree>(graph));
///     counts.reset({placementOf, strategyOf, ranks});
///     counts.update(changedNodes);
///     counts.of(scope).work.of(LayerSplit::Row).layers;
#include <array>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/dimensions.h"
#include "graph/layers.h"
#include "plan/text/work.h"
#include "views/base/theme.h"
#include "views/graph/model/module_tree.h"

namespace cleave::views {

using PlacementSource = std::function<MaybePlacement(ValueId)>;
using StrategySource = std::function<std::optional<rules::Strategy>(NodeId)>;

/// The source of placements and strategies. Empty functions: nothing is decided.
struct SplitSource {
  PlacementSource placement;
  StrategySource strategy;
  int ranks = 0;  ///< 0: unknown
};

struct SplitTally {
  plan::WorkTally work;
  std::array<std::uint32_t, kTintCount> values{};
  std::array<double, kTintCount> flops{};  ///< of operators that do not count as layers (attention), by their first
                                           ///< result
  SplitTally& operator+=(const SplitTally& other);
  bool operator==(const SplitTally&) const = default;
};

class SplitCounts {
 public:
  explicit SplitCounts(std::shared_ptr<const ModuleTree> tree);

  const ModuleTree& tree() const { return *m_tree; }
  const std::shared_ptr<const ModuleTree>& sharedTree() const { return m_tree; }
  const graph::Graph& graph() const { return m_tree->graph(); }

  void reset(SplitSource source);
  /// Reads the placements of these nodes again, and the layers that use them as weights. Returns the layers that
  /// changed and the makers of the values that changed, ascending, without duplicates.
  std::vector<NodeId> update(std::span<const NodeId> nodes);

  const MaybePlacement& placement(ValueId value) const { return m_placements[value.index()]; }
  std::optional<rules::Strategy> strategy(NodeId node) const { return m_strategies[node.index()]; }
  LayerSplit split(NodeId node) const { return m_splits[node.index()]; }  ///< Open: not a layer, or not decided
  bool isLayer(NodeId node) const { return m_work[node.index()].isLayer; }
  /// The layer's sizes. nullptr: not a layer.
  const graph::LayerShape* layer(NodeId node) const;
  Tint tint(ValueId value) const { return tintOf(m_placements[value.index()], m_source.ranks); }
  int ranks() const { return m_source.ranks; }

  const SplitTally& whole() const { return m_tallies.front(); }
  const SplitTally& of(TreeItemId item) const { return m_tallies[item.index()]; }
  const SplitTally& of(ScopeId scope) const { return of(m_tree->itemOf(scope)); }
  /// The tally of these nodes only; computed at each call.
  SplitTally of(std::span<const NodeId> nodes) const;
  /// The meaning of a placement's dimension for this value. Unknown if no rule defines it.
  graph::Meaning meaning(ValueId value) const;
  /// For the values with this tint: how many have each meaning, most frequent first.
  std::vector<std::pair<graph::Meaning, std::uint32_t>> meanings(Tint tint) const;
  bool isEmpty() const { return m_assigned == 0; }

 private:
  void read(NodeId node, std::vector<NodeId>* changed);
  void count(NodeId node, int times);
  void add(SplitTally& tally, NodeId node, int times) const;
  bool countsValue(NodeId node) const;

  std::shared_ptr<const ModuleTree> m_tree;
  std::vector<plan::NodeWork> m_work;
  std::vector<std::vector<graph::Meaning>> m_meanings;
  std::vector<graph::LayerShape> m_layers;
  std::vector<std::uint32_t> m_layerOf;                               ///< by NodeId: 1 + index into m_layers; 0: not a
                                                                      ///< layer
  std::unordered_map<std::uint32_t, std::vector<NodeId>> m_layersOn;  ///< by the node that makes a weight or bias
  SplitSource m_source;
  std::vector<MaybePlacement> m_placements;
  std::vector<std::optional<rules::Strategy>> m_strategies;
  std::vector<LayerSplit> m_splits;
  std::vector<SplitTally> m_tallies;  ///< by TreeItemId
  std::array<std::array<std::uint32_t, graph::kMeanings>, kTintCount> m_meant{};
  std::size_t m_assigned = 0;
};

/// "12 column · 3 row · 2 replicated", with bytes and FLOPs, then values. One line per strategy, for tooltips and
/// accessible texts.
QStringList splitLines(const SplitTally& tally);

}  // namespace cleave::views
