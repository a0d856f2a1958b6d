#include "views/graph/model/split_counts.h"

#include <algorithm>

#include "views/base/quantities.h"

namespace cleave::views {

std::vector<std::uint32_t> operatorsByScope(const graph::Graph& graph) {
  std::vector<std::uint32_t> operators(graph.scopes.size(), 0);
  for (const graph::Node& node : graph.nodes)
    if (node.kind == graph::NodeKind::Call)
      for (ScopeId scope = node.scope; scope.isValid(); scope = graph.scope(scope).parent) ++operators[scope.index()];
  return operators;
}

SplitTally& SplitTally::operator+=(const SplitTally& other) {
  work += other.work;
  for (int i = 0; i < kTintCount; ++i) values[i] += other.values[i], flops[i] += other.flops[i];
  return *this;
}

SplitCounts::SplitCounts(std::shared_ptr<const graph::Graph> graph, std::vector<std::uint32_t> groupOf)
    : m_graph(std::move(graph)),
      m_work(plan::workOf(*m_graph)),
      m_meanings(graph::dimensionMeanings(*m_graph)),
      m_groupOf(std::move(groupOf)),
      m_layerOf(m_graph->nodes.size(), 0) {
  for (const NodeId node : idRange<NodeId>(m_graph->nodes.size())) {
    if (!m_work[node.index()].isLayer) continue;
    m_layers.push_back(*graph::layerShape(*m_graph, node));
    m_layerOf[node.index()] = static_cast<std::uint32_t>(m_layers.size());
  }
  std::uint32_t groups = 0;
  for (const std::uint32_t group : m_groupOf)
    if (group != kNoGroup) groups = std::max(groups, group + 1);
  m_groups.resize(groups);
  m_scopes.resize(m_graph->scopes.size());
  reset({});
}

const graph::LayerShape* SplitCounts::layer(NodeId node) const {
  const std::uint32_t at = m_layerOf[node.index()];
  return at == 0 ? nullptr : &m_layers[at - 1];
}

const SplitTally& SplitCounts::ofGroup(std::uint32_t group) const {
  static const SplitTally kNothing;
  return group < m_groups.size() ? m_groups[group] : kNothing;
}

bool SplitCounts::countsValue(NodeId node) const {
  const graph::Node& n = m_graph->node(node);
  return n.kind == graph::NodeKind::Call && !n.results.empty();
}

void SplitCounts::reset(SplitSource source) {
  m_source = std::move(source);
  m_placements.assign(m_graph->values.size(), std::nullopt);
  m_strategies.assign(m_graph->nodes.size(), std::nullopt);
  m_forms.assign(m_graph->nodes.size(), LayerForm::Open);
  std::fill(m_scopes.begin(), m_scopes.end(), SplitTally());
  std::fill(m_groups.begin(), m_groups.end(), SplitTally());
  m_whole = {};
  m_meant = {};
  m_assigned = 0;
  for (const NodeId node : idRange<NodeId>(m_graph->nodes.size())) {
    read(node, nullptr);
    count(node, +1);
  }
}

std::vector<NodeId> SplitCounts::update(std::span<const NodeId> nodes) {
  std::vector<NodeId> changed;
  for (const NodeId node : nodes) {
    count(node, -1);
    read(node, &changed);
    count(node, +1);
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

/// The node's results, and the parameters that it places as a layer: those may be made by another node, which has
/// changed then, whoever is read first.
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
    note(m_graph->value(value).producer);
  };
  for (const ValueId result : m_graph->node(node).results) take(result);
  LayerForm form = LayerForm::Open;
  if (const graph::LayerShape* shape = layer(node)) {
    for (const ValueId parameter : {shape->weight, shape->bias, shape->down}) take(parameter);
    auto strategy = m_source.strategy ? m_source.strategy(node) : std::nullopt;
    if (strategy != m_strategies[node.index()]) note(node);
    m_strategies[node.index()] = std::move(strategy);
    const MaybePlacement weight = shape->weight.isValid() ? m_placements[shape->weight.index()] : std::nullopt;
    form = plan::layerForm(m_strategies[node.index()], weight.value_or(rules::Placement()), m_source.ranks);
  }
  if (form != m_forms[node.index()]) note(node);
  m_forms[node.index()] = form;
}

void SplitCounts::count(NodeId node, int times) {
  if (!countsValue(node)) return;
  const ValueId result = m_graph->node(node).results[0];
  const auto at = static_cast<std::size_t>(tint(result));
  m_meant[at][static_cast<std::size_t>(meaning(result))] += static_cast<std::uint32_t>(times);
  const auto add = [&](SplitTally& tally) {
    tally.values[at] += static_cast<std::uint32_t>(times);
    tally.work.add(m_work[node.index()], m_forms[node.index()], times);
    if (!m_work[node.index()].isCounted) tally.flops[at] += times * m_work[node.index()].flops;
  };
  add(m_whole);
  if (!m_groupOf.empty() && m_groupOf[node.index()] != kNoGroup) add(m_groups[m_groupOf[node.index()]]);
  for (ScopeId scope = m_graph->node(node).scope; scope.isValid() && scope.index() < m_scopes.size();
       scope = m_graph->scope(scope).parent)
    add(m_scopes[scope.index()]);
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
  const plan::FormTally total = tally.work.total();
  for (std::size_t i = 0; i < kLayerForms; ++i) {
    const plan::FormTally& form = tally.work.forms[i];
    if (form.layers == 0) continue;
    QString line = QStringLiteral("%1 %2").arg(countedText(form.layers, QStringLiteral("layer")),
                                               formText(static_cast<LayerForm>(i)));
    if (total.weightBytes > 0)
      line += QStringLiteral(", %1 of the weight bytes")
                  .arg(percentText(double(form.weightBytes) / double(total.weightBytes)));
    if (tally.work.flops > 0)
      line += QStringLiteral(", %1 of the forward FLOPs").arg(percentText(form.flops / tally.work.flops));
    lines << line;
  }
  for (int t = 0; t < kTintCount; ++t)
    if (const auto n = tally.values[static_cast<std::size_t>(t)])
      lines << QStringLiteral("%1 %2").arg(countedText(n, QStringLiteral("value")), describe(static_cast<Tint>(t)));
  return lines;
}

}  // namespace cleave::views
