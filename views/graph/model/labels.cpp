#include "views/graph/model/labels.h"

#include <QFontDatabase>
#include <algorithm>
#include <cmath>

#include "graph/layers.h"
#include "views/graph/model/module_path.h"

namespace cleave::views {
namespace {

constexpr double kChipRoom = 44;  ///< "S1-2×4", "+1.25 ms"
constexpr double kMaxNodeWidth = 320, kMinNodeWidth = 84, kMinModuleWidth = 190, kMaxChipRow = 240, kChipGap = 4;

QString text(std::string_view s) { return QString::fromUtf8(s.data(), static_cast<qsizetype>(s.size())); }

QFont sized(QFont font, double pixels, QFont::Weight weight) {
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(pixels))));
  font.setWeight(weight);
  font.setHintingPreference(QFont::PreferNoHinting);  // glyphs scale smoothly with the zoom
  return font;
}

}  // namespace

Metrics::Metrics(double s, const QFont& font)
    : scale(s),
      label(sized(font, 12 * s, QFont::Medium)),
      strong(sized(font, 12 * s, QFont::DemiBold)),
      small(sized(font, 11 * s, QFont::Normal)),
      digits(sized(QFontDatabase::systemFont(QFontDatabase::FixedFont), 10.5 * s, QFont::Normal)),
      labelMetrics(label),
      strongMetrics(strong),
      smallMetrics(small),
      digitsMetrics(digits),
      band(22 * s),
      row(17 * s),
      chipRow(20 * s),
      header(26 * s),
      pad(8 * s),
      radius(4 * s),
      sheetOffset(4 * s),
      button(14 * s) {}

std::vector<HubLabel> Labels::hubLabels(const std::vector<ValueId>& read, const std::vector<ValueId>& made) const {
  std::vector<HubLabel> labels;
  for (const ValueId v : read) labels.push_back({v, text(m_model.hubName(v)), false});
  for (const ValueId v : made) labels.push_back({v, text(m_model.hubName(v)), true});
  return labels;
}

QString abbreviated(QString op) { return op.replace(QLatin1String("scaled_dot_product_"), QLatin1String("sdp ")); }

const NodeLabel& Labels::node(NodeId id) {
  if (const auto known = m_nodes.find(id.raw()); known != m_nodes.end()) return known->second;
  const auto& graph = m_model.graph();
  const graph::Node& node = graph.node(id);
  const Trimmings& trimmings = m_model.trimmings(id);
  NodeLabel label;
  label.title = node.kind == graph::NodeKind::Call ? text(shortOpName(graph.opName(node)))
                                                   : text(graph.value(node.results[0]).name);
  label.title = abbreviated(label.title);
  label.tail = text(trimmings.tail);
  label.isLayer = node.kind == graph::NodeKind::Call && graph::layerShape(graph, id).has_value();
  if (!node.results.empty()) label.shape = shapeText(graph.shapeOf(node.results[0]));
  for (const ValueId v : trimmings.docked)
    label.docks.push_back({v, text(lastPart(graph.value(v).name)), shapeText(graph.shapeOf(v))});
  std::vector<ValueId> made;
  for (const ValueId v : node.results)
    if (m_model.isHub(v) && node.kind == graph::NodeKind::Call) made.push_back(v);
  label.hubs = hubLabels(trimmings.hubs, made);
  return m_nodes.emplace(id.raw(), std::move(label)).first->second;
}

const ModuleLabel& Labels::module(ModuleId first, ModuleId last) {
  const std::uint64_t key = (std::uint64_t(first.raw()) << 32) | last.raw();
  if (const auto known = m_modules.find(key); known != m_modules.end()) return known->second;
  const Module& module = m_model.module(first);
  ModuleLabel label;
  label.title = text(module.title);
  std::uint64_t operators = module.operatorCount;
  if (module.kind == ModuleKind::Scope)  // folded helpers are always shown
    operators = m_model.tree().operatorsIn(module.scope);
  if (first != last) {
    const int end = m_model.module(last).listIndex;
    label.title = QStringLiteral("%1 %2–%3").arg(text(module.listName)).arg(module.listIndex).arg(end);
    operators *= static_cast<std::uint64_t>(end - module.listIndex + 1);
  }
  label.kind = module.kind == ModuleKind::Rotary ? QStringLiteral("helper") : text(module.className);
  label.counts = countedText(operators, QStringLiteral("op"));
  label.hubs = hubLabels(module.hubs, module.madeHubs);
  return m_modules.emplace(key, std::move(label)).first->second;
}

QString Labels::outputTitle(int output) const {
  return text(m_model.graph().outputs[static_cast<std::size_t>(output)].name);
}

double Labels::chipWidth(const HubLabel& hub) const {
  return m_metrics.smallMetrics.horizontalAdvance(hub.name) + 20 * m_metrics.scale;
}

double Labels::chipsWidth(const std::vector<HubLabel>& hubs) const {
  double width = 0, widest = 0;
  for (const HubLabel& hub : hubs) {
    width += chipWidth(hub) + kChipGap;
    widest = std::max(widest, chipWidth(hub));
  }
  return std::max(widest, std::min(width, kMaxChipRow * m_metrics.scale)) + 2 * m_metrics.pad;
}

std::vector<QRectF> Labels::chipRects(const std::vector<HubLabel>& hubs, double width) const {
  std::vector<QRectF> rects;
  const double height = m_metrics.chipRow - 4 * m_metrics.scale;
  double x = m_metrics.pad, y = 0;
  for (const HubLabel& hub : hubs) {
    const double w = std::min(chipWidth(hub), width - 2 * m_metrics.pad);
    if (x > m_metrics.pad && x + w > width - m_metrics.pad) x = m_metrics.pad, y += m_metrics.chipRow;
    rects.emplace_back(x, y + 1, w, height);
    x += w + kChipGap;
  }
  return rects;
}

QSizeF Labels::nodeSize(NodeId id) {
  const NodeLabel& label = node(id);
  const Metrics& m = m_metrics;
  const bool isInput = m_model.graph().node(id).kind == graph::NodeKind::Input;
  // Reserves room for every colouring and every strategy, so that neither a step nor another colouring needs a new
  // layout.
  const double chip =
      std::max(kChipRoom * m.scale, m.smallMetrics.horizontalAdvance(QStringLiteral("+99.9 µs")) + 20 * m.scale);
  double width = m.labelMetrics.horizontalAdvance(label.title) + chip + 2.5 * m.pad;
  if (label.isLayer) {  // room for any strategy: a step of the search must not need a new layout
    const double name = label.tail.isEmpty() ? 0 : m.strongMetrics.horizontalAdvance(label.tail) + m.pad;
    width += name + 14 * m.scale;
    const double notch = m.smallMetrics.horizontalAdvance(QStringLiteral("column+gather")) +
                         m.digitsMetrics.horizontalAdvance(QStringLiteral("S2 → S2")) + 24 * m.scale;
    width = std::max(width, notch + m.digitsMetrics.horizontalAdvance(label.shape) + 2.5 * m.pad);
  } else if (!isInput || !label.shape.isEmpty()) {
    const double tail = label.tail.isEmpty() ? 0 : m.smallMetrics.horizontalAdvance(label.tail) + 1.5 * m.pad;
    width = std::max(width, tail + m.digitsMetrics.horizontalAdvance(label.shape) + 2 * m.pad);
  }
  for (const DockLabel& dock : label.docks) {
    QString longest;  // any dimension may be split, and no shard is longer than the dimension
    for (const QString& size : dock.shape.split(QChar(0xD7)))
      if (size.size() > longest.size()) longest = size;
    const QString widest = QStringLiteral("%1 → %2 per rank").arg(dock.shape, longest);
    width = std::max(width, m.smallMetrics.horizontalAdvance(dock.name) + m.digitsMetrics.horizontalAdvance(widest) +
                                14 * m.scale + 3.5 * m.pad);
  }
  if (!label.hubs.empty()) width = std::max(width, chipsWidth(label.hubs));
  width = std::ceil(std::clamp(width, kMinNodeWidth * m.scale, kMaxNodeWidth * m.scale));
  double height = m.band + m.row + static_cast<double>(label.docks.size()) * m.row;
  if (!label.hubs.empty()) height += chipRects(label.hubs, width).back().bottom() + 3 * m.scale;
  return {width, std::ceil(height)};
}

QSizeF Labels::outputSize(int output) {
  const Metrics& m = m_metrics;
  const double width = m.labelMetrics.horizontalAdvance(outputTitle(output)) + 34 * m.scale + 2.5 * m.pad;
  return {std::ceil(std::clamp(width, kMinNodeWidth * m.scale, kMaxNodeWidth * m.scale)), m.band};
}

bool Labels::isCompact(ModuleId first, ModuleId last) const {
  return first == last && m_model.module(first).listIndex >= 0;
}

QSizeF Labels::moduleSize(ModuleId first, ModuleId last) {
  const ModuleLabel& label = module(first, last);
  const Metrics& m = m_metrics;
  double width = m.strongMetrics.horizontalAdvance(label.title) + m.button + 3 * m.pad;
  if (isCompact(first, last))  // one row, so that long lists stay readable
    return {std::ceil(width + 110 * m.scale + m.smallMetrics.horizontalAdvance(label.counts) + 40 * m.scale), m.header};
  const bool isStack = first != last;
  if (!label.kind.isEmpty()) width += m.smallMetrics.horizontalAdvance(label.kind) + m.pad;
  if (isStack) width += 2 * m.button + 3 * m.pad;
  if (!label.hubs.empty()) width = std::max(width, chipsWidth(label.hubs));
  width = std::ceil(std::clamp(width, kMinModuleWidth * m.scale, 1.4 * kMaxNodeWidth * m.scale));
  double height = m.header + m.row + 2 * m.scale;
  if (!label.hubs.empty()) height += chipRects(label.hubs, width).back().bottom() + 3 * m.scale;
  const double sheets = isStack ? 2 * m.sheetOffset : 0;
  return {width + sheets, std::ceil(height) + sheets};
}

double Labels::frameWidth(ModuleId id) {
  const ModuleLabel& label = module(id, id);
  const Metrics& m = m_metrics;
  double width = m.strongMetrics.horizontalAdvance(label.title) + m.smallMetrics.horizontalAdvance(label.kind) +
                 m.button + 5 * m.pad;
  return std::ceil(width + m.smallMetrics.horizontalAdvance(label.counts) + 60 * m.scale);
}

}  // namespace cleave::views
