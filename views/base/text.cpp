#include "views/base/text.h"

namespace cleave::views {

QString toQ(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }
std::string toStd(const QString& text) { return text.toStdString(); }

QString ranksText(int ranks) { return countedText(static_cast<std::uint64_t>(ranks), "rank"); }

Qt::TextElideMode elideModeOf(const QString& name) {
  const bool isNumbered = !name.isEmpty() && name.back().isDigit();
  return isNumbered || name.contains(QLatin1Char('.')) ? Qt::ElideLeft : Qt::ElideRight;
}

QString capitalized(QString clause) {
  if (!clause.isEmpty()) clause[0] = clause[0].toUpper();
  return clause;
}

QString prose(std::string_view text) { return toQ(text).remove(QLatin1Char('`')); }

QString shortOp(std::string_view op) {
  const std::size_t space = op.find("::");
  if (space != std::string_view::npos) op.remove_prefix(space + 2);
  return toQ(op.substr(0, op.find('.')));
}

QString nodeKindText(const graph::Graph& graph, graph::NodeId node) {
  switch (graph.node(node).kind) {
    case graph::NodeKind::Input: return QStringLiteral("input");
    case graph::NodeKind::Parameter: return QStringLiteral("parameter");
    case graph::NodeKind::Constant: return QStringLiteral("constant");
    case graph::NodeKind::Call: break;
  }
  return shortOp(graph.opName(graph.node(node)));
}

QString nodeName(const graph::Graph& graph, graph::NodeId node) {
  if (!node.isValid() || node.index() >= graph.nodes.size()) return {};
  const auto& results = graph.node(node).results;
  return results.empty() ? QStringLiteral("node %1").arg(node.raw()) : toQ(graph.value(results[0]).name);
}

QString shortScope(std::string_view path, int parts) {
  std::size_t from = path.size();
  for (int i = 0; i < parts; ++i) {
    const std::size_t dot = from == 0 ? std::string_view::npos : path.rfind('.', from - 1);
    if (dot == std::string_view::npos) return toQ(path);
    from = dot;
  }
  return QStringLiteral("…") + toQ(path.substr(from + 1));
}

bool scopeContains(std::string_view path, std::string_view part) {
  if (part.empty()) return true;
  for (std::size_t at = path.find(part); at != std::string_view::npos; at = path.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || path[at - 1] == '.') && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

}  // namespace cleave::views
