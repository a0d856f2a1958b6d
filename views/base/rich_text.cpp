#include "views/base/rich_text.h"

#include <QFontDatabase>
#include <QObject>

#include "graph/layers.h"
#include "views/base/target.h"
#include "views/base/text.h"

namespace cleave::views {

TextColors TextColors::of(const QPalette& palette) {
  const Theme theme = Theme::of(palette);
  return {theme.textQuiet.name(), theme.good.name(), theme.conflict.name(), theme.warning.name()};
}

QString richTextStyle(const QPalette& palette) {
  const QString fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont).family();
  return QStringLiteral("<style>a{color:%1;text-decoration:none} code{font-family:'%2'} p{margin:2px 0 4px 0}</style>")
      .arg(palette.color(QPalette::Link).name(), fixed);
}

QString escaped(std::string_view text) { return toQ(text).toHtmlEscaped(); }

QString quiet(const QString& html, const TextColors& colors) {
  return html.isEmpty() ? html : QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colors.quiet, html);
}

QString mono(const QString& text) { return QStringLiteral("<code>%1</code>").arg(text.toHtmlEscaped()); }

QString heading(const QString& text, const TextColors& colors) {
  return QStringLiteral("<p style=\"margin:10px 0 2px 0\"><b style=\"color:%1\">%2</b></p>").arg(colors.quiet, text);
}

QString chip(const MaybePlacement& placement, int ranks) {
  if (!placement) return QStringLiteral("not assigned yet");
  const Theme theme = Theme::light();
  const QColor color = theme.placementColor(placement, ranks);
  return QStringLiteral("<span style=\"background-color:%1;color:%2\">&nbsp;%3&nbsp;</span>")
      .arg(color.name(), theme.textOn(color).name(), escaped(placement->text()));
}

QString lineList(const QStringList& htmls) {
  QStringList rows;
  for (const QString& html : htmls) rows << QStringLiteral("<tr><td>%1</td></tr>").arg(html);
  return QStringLiteral("<table cellspacing=\"0\" cellpadding=\"1\">%1</table>").arg(rows.join(QString()));
}

QString cell(const QString& html, int columns) {
  return columns == 1 ? QStringLiteral("<td>%1&nbsp;</td>").arg(html)
                      : QStringLiteral("<td colspan=\"%1\">%2&nbsp;</td>").arg(columns).arg(html);
}

QString nameCell(const QString& html) {
  return QStringLiteral("<td style=\"white-space:nowrap\">%1&nbsp;</td>").arg(html);
}

QString numberCell(const QString& html) {
  return QStringLiteral("<td align=\"right\" style=\"white-space:nowrap\">&nbsp;%1&nbsp;</td>").arg(html);
}

QString row(const QStringList& cells) { return QStringLiteral("<tr>%1</tr>").arg(cells.join(QString())); }

QString table(const QStringList& rows) {
  return QStringLiteral("<table cellspacing=\"0\" cellpadding=\"2\">%1</table>").arg(rows.join(QString()));
}

QString valueLink(const graph::Graph& graph, graph::ValueId value) { return link(value, toQ(graph.value(value).name)); }

QString scopeLink(const graph::Graph& graph, graph::ScopeId scope) {
  const std::string& path = graph.scope(scope).path;
  return link(scope, path.empty() ? QStringLiteral("the model") : shortScope(path, 3));
}

QString whyNotLink(std::string_view choice) {
  const auto question = WhyNotTarget::parse(toQ(choice));
  return question ? link(*question, QStringLiteral("why not?")) : QString();
}

QString layerLink(const graph::Graph& graph, const std::string& name) {
  for (const graph::NodeId node : idRange<graph::NodeId>(graph.nodes.size()))
    if (graph.node(node).kind == graph::NodeKind::Call && graph.scope(graph.node(node).scope).path == name &&
        graph::layerShape(graph, node))
      return link(node, shortScope(name));
  const graph::ScopeId scope = graph.findScope(name);
  return scope.isValid() ? link(scope, shortScope(name)) : escaped(name);
}

QString sentenceHtml(const solve::Sentence& sentence, const graph::Graph& graph) {
  QString html;
  for (const solve::SentencePart& part : sentence) {
    const QString text = prose(part.text);
    std::optional<Target> target;
    if (const auto* value = std::get_if<graph::ValueId>(&part.link); value && value->index() < graph.values.size())
      target = *value;
    else if (const auto* node = std::get_if<graph::NodeId>(&part.link); node && node->isValid())
      target = *node;
    else if (const auto* seek = std::get_if<solve::SeekTo>(&part.link))
      target = StepTarget{seek->step};
    html += target ? link(*target, text) : text.toHtmlEscaped();
  }
  return html;
}

QString proseHtml(std::string_view text, const graph::Graph& graph) {
  QString html;
  const QStringList parts = toQ(text).split(QLatin1Char('`'));
  for (qsizetype i = 0; i < parts.size(); ++i) {
    const bool isName = i % 2 == 1 && i + 1 < parts.size() && !parts[i].isEmpty();
    if (!isName)
      html += parts[i].toHtmlEscaped();
    else if (const graph::ValueId value = graph.findValue(toStd(parts[i])); value.isValid())
      html += valueLink(graph, value);
    else
      html += layerLink(graph, toStd(parts[i]));
  }
  return html;
}

}  // namespace cleave::views
