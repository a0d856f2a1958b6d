#pragma once
/// Where a click leads: a node, a value, a module, a step of the search, or the question why a choice was not taken.
/// Rows of tables answer it (`kTargetRole`), links of rich text carry it as `toLink`; all else passes the value. Ids
/// are of the graph that is open.
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

/// A strategy of a layer, or a placement of a value, that could have been chosen.
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

inline constexpr int kTargetRole = Qt::UserRole + 103;  ///< what a row stands for, as a Target
/// nullopt: the row stands for nothing.
std::optional<Target> targetOf(const QModelIndex& row);
std::size_t qHash(const Target& target, std::size_t seed = 0);

}  // namespace cleave::views

Q_DECLARE_METATYPE(cleave::views::Target)
