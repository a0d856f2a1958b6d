#include "views/graph/model/split_counts.h"

#include <algorithm>

#include "plan/text/shares_text.h"
#include "views/base/quantities.h"

namespace cleave::views {

SplitTally& SplitTally::operator+=(const SplitTally& other) {
  work += other.work;
  for (int i = 0; i < kTintCount; ++i) values[i] += other.values[i], flops[i] += other.flops[i];
  return *this;
}

SplitCounts::SplitCounts(std::shared_ptr<const ModuleTree> tree)
    : m_tree(std::move(tree)),
      m_work(plan::workOf(graph())),
      m_meanings(graph::dimensionMeanings(graph())),
      m_layerOf(graph().nodes.size(), 0),
      m_tallies(m_tree->size()) {
  for (const NodeId node : idRange<NodeId>(graph().nodes.size())) {
    if (!m_work[node.index()].isLayer) continue;
    m_layers.push_back(*graph::layerShape(graph(), node));
    m_layerOf[node.index()] = static_cast<std::uint32_t>(m_layers.size());
    for (const ValueId parameter : {m_layers.back().weight, m_layers.back().bias, m_layers.back().down})
      if (parameter.isValid()) m_layersOn[graph().value(parameter).producer.raw()].push_back(node);
  }
  reset({});
}

const graph::LayerShape* SplitCounts::layer(NodeId node) const {
  const std::uint32_t at = m_layerOf[node.index()];
  return at == 0 ? nullptr : &m_layers[at - 1];
}

bool SplitCounts::countsValue(NodeId node) const {
  const graph::Node& n = graph().node(node);
  return n.kind == graph::NodeKind::Call && !n.results.empty();
}

void SplitCounts::reset(SplitSource source) {
  m_source = std::move(source);
  m_placements.assign(graph().values.size(), std::nullopt);
  m_strategies.assign(graph().nodes.size(), std::nullopt);
  m_splits.assign(graph().nodes.size(), LayerSplit::Open);
  std::fill(m_tallies.begin(), m_tallies.end(), SplitTally());
  m_meant = {};
  m_assigned = 0;
  for (const NodeId node : idRange<NodeId>(graph().nodes.size())) {
    read(node, nullptr);
    count(node, +1);
  }
}

std::vector<NodeId> SplitCounts::update(std::span<const NodeId> nodes) {
  std::vector<NodeId> changed;
  const auto readAgain = [&](NodeId node) {
    count(node, -1);
    read(node, &changed);
    count(node, +1);
  };
  for (const NodeId node : nodes) {
    readAgain(node);
    if (const auto layers = m_layersOn.find(node.raw()); layers != m_layersOn.end())
      std::for_each(layers->second.begin(), layers->second.end(), readAgain);
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

/// The node's results, and the parameters that it places as a layer. Another node may make those parameters; it counts
/// as changed too, in any order of reading.
void SplitCounts::read(NodeId node, std::vector<NodeId>* changed) {
  const auto note = [&](NodeId differs) {
    if (changed) changed->push_back(differs);
  };
  const auto take = [&](ValueId value) {
    if (!value.isValid()) return;
    MaybePlacement now = m_source.placement ? m_source.placement(value) : std::nullopt;
    MaybePlacement& before = m_placements[value.index()];
    if (now == before) return;
    m_assigned += now.has_value();
    m_assigned -= before.has_value();
    before = std::move(now);
    note(graph().value(value).producer);
  };
  for (const ValueId result : graph().node(node).results) take(result);
  const auto strategy = m_source.strategy ? m_source.strategy(node) : std::nullopt;
  if (strategy != m_strategies[node.index()]) note(node);
  m_strategies[node.index()] = strategy;
  LayerSplit split = LayerSplit::Open;
  if (const graph::LayerShape* shape = layer(node)) {
    for (const ValueId parameter : {shape->weight, shape->bias, shape->down}) take(parameter);
    const MaybePlacement weight = shape->weight.isValid() ? m_placements[shape->weight.index()] : std::nullopt;
    split = plan::layerSplit(m_strategies[node.index()], weight.value_or(rules::Placement()), m_source.ranks);
  }
  if (split != m_splits[node.index()]) note(node);
  m_splits[node.index()] = split;
}

void SplitCounts::count(NodeId node, int times) {
  if (!countsValue(node)) return;
  const ValueId result = graph().node(node).results[0];
  const auto at = static_cast<std::size_t>(tint(result));
  m_meant[at][static_cast<std::size_t>(meaning(result))] += static_cast<std::uint32_t>(times);
  for (TreeItemId id = m_tree->itemOf(graph().node(node).scope); id.isValid(); id = m_tree->item(id).parent)
    add(m_tallies[id.index()], node, times);
}

void SplitCounts::add(SplitTally& tally, NodeId node, int times) const {
  const plan::NodeWork& work = m_work[node.index()];
  const auto at = static_cast<std::size_t>(tint(graph().node(node).results[0]));
  tally.values[at] += static_cast<std::uint32_t>(times);
  tally.work.add(work, m_splits[node.index()], times);
  if (!work.isCounted) tally.flops[at] += times * work.flops;
}

SplitTally SplitCounts::of(std::span<const NodeId> nodes) const {
  SplitTally tally;
  for (const NodeId node : nodes)
    if (countsValue(node)) add(tally, node, 1);
  return tally;
}

graph::Meaning SplitCounts::meaning(ValueId value) const {
  const MaybePlacement& placement = m_placements[value.index()];
  if (!placement || !placement->isSplit()) return graph::Meaning::Unknown;
  const auto dim = static_cast<std::size_t>(placement->firstDim());
  const auto& meanings = m_meanings[value.index()];
  return dim < meanings.size() ? meanings[dim] : graph::Meaning::Unknown;
}

std::vector<std::pair<graph::Meaning, std::uint32_t>> SplitCounts::meanings(Tint tint) const {
  std::vector<std::pair<graph::Meaning, std::uint32_t>> found;
  const auto& counts = m_meant[static_cast<std::size_t>(tint)];
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) found.emplace_back(static_cast<graph::Meaning>(i), counts[i]);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return found;
}

QStringList splitLines(const SplitTally& tally) {
  QStringList lines;
  const plan::LayerTally total = tally.work.total();
  for (std::size_t i = 0; i < kLayerSplits; ++i) {
    const plan::LayerTally& split = tally.work.splits[i];
    if (split.layers == 0) continue;
    QString line = QStringLiteral("%1 %2").arg(countedText(split.layers, QStringLiteral("layer")),
                                               strategyText(static_cast<LayerSplit>(i)));
    if (total.weightBytes > 0)
      line += QStringLiteral(", %1 of the weight bytes")
                  .arg(percentText(double(split.weightBytes) / double(total.weightBytes)));
    if (tally.work.flops > 0)
      line += QStringLiteral(", %1 of the forward FLOPs").arg(percentText(split.flops / tally.work.flops));
    lines << line;
  }
  for (int t = 0; t < kTintCount; ++t)
    if (const auto n = tally.values[static_cast<std::size_t>(t)])
      lines << QStringLiteral("%1 %2").arg(countedText(n, QStringLiteral("value")), describe(static_cast<Tint>(t)));
  return lines;
}

}  // namespace cleave::views
