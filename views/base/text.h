#pragma once
/// How the window writes names, shapes, sizes and counts. All panels use the same spelling.
#include <QString>
#include <QStringList>

#include "graph/graph.h"
#include "views/base/quantities.h"

namespace cleave::views {

QString toQ(std::string_view text);
std::string toStd(const QString& text);
QString ranksText(int ranks);  ///< "1 rank", "8 ranks"
/// A sentence from core for the window, without the back quotes that mark names in a terminal.
QString prose(std::string_view text);
/// The clause with a capital first letter, for the start of a sentence or a label.
QString capitalized(QString clause);

/// "aten::sum.dim_IntList" → "sum".
QString shortOp(std::string_view op);
/// Operator of a node in short form, or "input", "parameter", "constant".
QString nodeKindText(const graph::Graph& graph, graph::NodeId node);
/// The node's name: the name of its first result.
QString nodeName(const graph::Graph& graph, graph::NodeId node);
/// The last `parts` parts of a dotted path, with "…" in front if parts were left out. Names are shortened at the front.
QString shortScope(std::string_view path, int parts = 3);
/// "layers.3" → true for "model.layers.3" and all modules inside it. Compares whole parts of the path.
bool scopeContains(std::string_view path, std::string_view part);

/// The end at which a long name is shortened. A path and a name with a number keep their end, and any other name keeps
/// its beginning, because that part differs between names.
Qt::TextElideMode elideModeOf(const QString& name);

}  // namespace cleave::views
