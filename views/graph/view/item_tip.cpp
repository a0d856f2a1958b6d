#include "views/graph/view/item_tip.h"

#include "views/base/quantities.h"
#include "views/graph/scene/scene_painter.h"

namespace cleave::views {
namespace {

/// On a line of its own; empty text: no line.
QString lineOf(const QString& text) { return text.isEmpty() ? QString() : QStringLiteral("<br>") + text; }

QString valueTip(const DrawnGraph& drawn, const Colors& colors, ValueId v) {
  const graph::Value& value = drawn.graph()->value(v);
  const SplitCounts& counts = *drawn.splits();
  const MaybePlacement& placement = colors.board()->of(v);
  QString how = describe(placement);
  if (const auto meaning = graph::toText(counts.meaning(v)); !meaning.empty())
    how += QStringLiteral(" (%1)").arg(QString::fromUtf8(meaning.data(), static_cast<qsizetype>(meaning.size())));
  if (placement && placement->isSplit() && counts.tint(v) == Tint::Replicated)
    how += QStringLiteral(": replicated, each rank has a full copy");
  return QStringLiteral("<b>%1</b>&nbsp; %2 %3<br>%4: %5")
      .arg(QString::fromStdString(value.name).toHtmlEscaped(),
           QString::fromUtf8(graph::toText(value.type.dtype).data()), shapeText(value.type.shape),
           placement ? QString::fromStdString(placement->text()) : QStringLiteral("–"), how);
}

QString nodeTip(const DrawnGraph& drawn, const Colors& colors, NodeId id) {
  const graph::Graph& graph = *drawn.graph();
  const graph::Node& node = graph.node(id);
  QString text = node.results.empty() ? QString() : valueTip(drawn, colors, node.results[0]);
  if (drawn.splits()->isLayer(id)) text += lineOf(describe(drawn.splits()->split(id)));
  if (node.kind == graph::NodeKind::Call) text += lineOf(QString::fromStdString(graph.opName(node)).toHtmlEscaped());
  if (node.scope.index() < graph.scopes.size())
    text += lineOf(QString::fromStdString(graph.scope(node.scope).path).toHtmlEscaped());
  if (colors.heat()) text += lineOf(colors.heat()->tip(id));
  return text;
}

QString moduleTip(const DrawnGraph& drawn, const Colors& colors, const SceneItem& item) {
  const PlacementBoard& board = *colors.board();
  QString text = QStringLiteral("<b>%1</b>&nbsp; %2")
                     .arg(drawn.labels().module(item.module, item.lastModule).title.toHtmlEscaped(),
                          QString::fromStdString(drawn.model()->module(item.module).className).toHtmlEscaped());
  if (colors.heat()) text += lineOf(colors.heat()->tip(item.module, item.lastModule));
  for (const QString& line : splitLines(board.tally(item.module, item.lastModule).split))
    text += QStringLiteral("<br>") + line.toHtmlEscaped();
  if (item.kind != ItemKind::Stack) return text;
  text += QStringLiteral("<br>equal modules; + unfolds the first, the list button lists all");
  if (const auto unlike = board.unlike(item.module, item.lastModule); unlike > 0)
    text += QStringLiteral("<br><b>%1</b> of them are split differently from the first").arg(unlike);
  return text;
}

}  // namespace

QString itemTip(const DrawnGraph& drawn, const Colors& colors, std::uint32_t index, const QPointF& world) {
  const SceneItem& item = drawn.scene()->items()[index];
  if (const HubLabel* hub = ScenePainter::chipAt(item, drawn.labels(), world))
    return valueTip(drawn, colors, hub->value) +
           QStringLiteral("<br>read all over the model; click to go to its source");
  if (item.node.isValid()) return nodeTip(drawn, colors, item.node);
  if (item.output >= 0)
    return valueTip(drawn, colors, drawn.graph()->outputs[static_cast<std::size_t>(item.output)].value);
  if (item.kind == ItemKind::Frame && !ScenePainter::header(item, drawn.metrics()).contains(world)) return {};
  return moduleTip(drawn, colors, item);
}

}  // namespace cleave::views
