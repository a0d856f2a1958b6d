#include "views/base/target.h"

#include <QHashFunctions>
#include <array>
#include <limits>

#include "views/base/text.h"

namespace cleave::views {

namespace {
const std::array kKinds = {QLatin1String("node:"), QLatin1String("value:"), QLatin1String("scope:"),
                           QLatin1String("step:"), QLatin1String("whynot:")};
static_assert(kKinds.size() == std::variant_size_v<Target>);

QString rest(graph::NodeId node) { return QString::number(node.raw()); }
QString rest(graph::ValueId value) { return QString::number(value.raw()); }
QString rest(graph::ScopeId scope) { return QString::number(scope.raw()); }
QString rest(StepTarget target) { return QString::number(target.step); }
QString rest(const WhyNotTarget& target) { return target.text(); }

template <class IdType>
std::optional<Target> idTarget(std::uint64_t number) {
  if (number >= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return Target(IdType(static_cast<std::size_t>(number)));
}

/// Digits only, without sign, space or leading zero.
std::optional<std::uint64_t> parseNumber(const QString& text) {
  bool isNumber = false;
  const qulonglong number = text.toULongLong(&isNumber);
  return isNumber && QString::number(number) == text ? std::optional<std::uint64_t>(number) : std::nullopt;
}
}  // namespace

QString WhyNotTarget::text() const {
  if (const auto* strategy = std::get_if<rules::Strategy>(&choice)) return toQ(rules::toText(*strategy));
  return toQ(std::get<rules::Placement>(choice).text());
}

std::optional<WhyNotTarget> WhyNotTarget::parse(const QString& text) {
  if (const auto strategy = rules::parseStrategy(toStd(text))) return WhyNotTarget{*strategy};
  if (const auto placement = rules::Placement::parse(toStd(text))) return WhyNotTarget{*placement};
  return std::nullopt;
}

QString toLink(const Target& target) {
  return kKinds[target.index()] + std::visit([](const auto& place) { return rest(place); }, target);
}

std::optional<Target> parseLink(const QString& link) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    if (!link.startsWith(kKinds[kind])) continue;
    const QString text = link.mid(kKinds[kind].size());
    if (kind == Target(WhyNotTarget()).index()) {
      const auto question = WhyNotTarget::parse(text);
      return question ? std::optional<Target>(*question) : std::nullopt;
    }
    const auto number = parseNumber(text);
    if (!number) return std::nullopt;
    switch (kind) {
      case 0: return idTarget<graph::NodeId>(*number);
      case 1: return idTarget<graph::ValueId>(*number);
      case 2: return idTarget<graph::ScopeId>(*number);
      default: return Target(StepTarget{*number});
    }
  }
  return std::nullopt;
}

QString link(const Target& target, const QString& text) {
  return QStringLiteral("<a href=\"%1\">%2</a>").arg(toLink(target).toHtmlEscaped(), text.toHtmlEscaped());
}

QString nodeLink(const graph::Graph& graph, graph::NodeId node) { return link(node, nodeName(graph, node)); }

QString stepLink(std::uint64_t step) { return link(StepTarget{step}, countText(step)); }

std::optional<Target> targetOf(const QModelIndex& row) {
  const QVariant target = row.data(kTargetRole);
  return target.canConvert<Target>() ? std::optional<Target>(target.value<Target>()) : std::nullopt;
}

std::size_t qHash(const Target& target, std::size_t seed) { return ::qHash(toLink(target), seed); }

}  // namespace cleave::views
