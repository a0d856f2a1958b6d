#pragma once
/// The destination of a click: a node, a value, a module, a step of the search, or a why-not question. Table rows
/// return it (`kTargetRole`); links in rich text contain it as `toLink`; other code passes the value. Ids belong to the
/// open graph.
///
///     html += link(Target(node), "linear_3");          // <a href="node:12">linear_3</a>
///     if (const auto target = parseLink(clicked)) selection.follow(*target);
#include <QModelIndex>
#include <QString>
#include <optional>
#include <variant>

#include "graph/graph.h"
#include "rules/strategies.h"

namespace cleave::views {

struct StepTarget {
  std::uint64_t step = 0;
  bool operator==(const StepTarget&) const = default;
};

/// A strategy of a layer, or a placement of a value, that the plan does not use.
struct WhyNotTarget {
  std::variant<rules::Strategy, rules::Placement> choice;
  bool operator==(const WhyNotTarget&) const = default;
  /// "row", "S(1)"
  QString text() const;
  static std::optional<WhyNotTarget> parse(const QString& text);
};

using Target = std::variant<graph::NodeId, graph::ValueId, graph::ScopeId, StepTarget, WhyNotTarget>;

/// "node:12", "value:7", "scope:3", "step:120", "whynot:row".
QString toLink(const Target& target);
/// nullopt for anything that `toLink` does not write.
std::optional<Target> parseLink(const QString& link);

/// A link inside the window's rich text: `<a href="node:12">text</a>` with the text escaped.
QString link(const Target& target, const QString& text);
QString nodeLink(const graph::Graph& graph, graph::NodeId node);
QString stepLink(std::uint64_t step);

inline constexpr int kTargetRole = Qt::UserRole + 103;  ///< the row's Target
/// nullopt: the row has no target.
std::optional<Target> targetOf(const QModelIndex& row);
std::size_t qHash(const Target& target, std::size_t seed = 0);

}  // namespace cleave::views

Q_DECLARE_METATYPE(cleave::views::Target)
