#pragma once
/// How names, shapes, sizes and counts are written in the window: one spelling for every panel.
#include <QString>
#include <QStringList>

#include "graph/graph.h"
#include "views/base/quantities.h"
#include "views/base/target.h"

namespace cleave::views {

QString toQ(std::string_view text);
std::string toStd(const QString& text);
QString ranksText(int ranks);  ///< "1 rank", "8 ranks"
/// A sentence of the core for the window: without the back quotes that mark names in a terminal.
QString prose(std::string_view text);
/// A clause as the beginning of a sentence or a label.
QString capitalized(QString clause);

/// "aten::sum.dim_IntList" → "sum".
QString shortOp(std::string_view op);
/// Operator of a node in short form, or "input", "parameter", "constant".
QString nodeKindText(const graph::Graph& graph, graph::NodeId node);
/// The name a node goes by: that of its first result.
QString nodeName(const graph::Graph& graph, graph::NodeId node);
/// The last `parts` parts of a dotted path with "…" in front when some were left out: names are shortened at the front.
QString shortScope(std::string_view path, int parts = 3);
/// "layers.3" → true for "model.layers.3" and all modules inside it; compares whole parts of the path.
bool scopeContains(std::string_view path, std::string_view part);

/// Where a name that has too little room is cut: a path and a name with a number keep their end, any other its
/// beginning, because that is what tells one from another.
Qt::TextElideMode elideModeOf(const QString& name);

/// A link inside the window's rich text: `<a href="node:12">text</a>` with the text escaped.
QString link(const Target& target, const QString& text);
QString nodeLink(const graph::Graph& graph, graph::NodeId node);
QString stepLink(std::uint64_t step);

}  // namespace cleave::views
