#include "views/graph/model/heat_field.h"

#include <QStringList>
#include <algorithm>
#include <cmath>

#include "solve/cost/cost_model.h"
#include "views/base/quantities.h"

namespace cleave::views {

namespace {
/// Below this fraction of the maximum, differences do not matter and would use up the scale.
constexpr double kWidestSpan = 1e5;
/// The smallest amount above zero stays visibly different from zero.
constexpr double kFaintest = 0.04;

struct Wording {
  const char *name, *title;
};

/// "=", "3.4 %", "12×": a fraction of the tolerance, short enough for a node's head.
QString partText(double part) {
  if (agreementOf(part) == Agreement::Equal) return QStringLiteral("=");
  if (!std::isfinite(part)) return QStringLiteral("≠");
  return agreementOf(part) == Agreement::Within
             ? QStringLiteral("%1 %").arg(QString::number(100 * part, 'g', 100 * part < 99.5 ? 2 : 3))
             : QStringLiteral("%1×").arg(part, 0, 'f', part < 10 ? 1 : 0);
}

QString gapText(HeatGap gap) {
  switch (gap) {
    case HeatGap::None: return {};
    case HeatGap::OverBudget: return QStringLiteral("over budget");
    case HeatGap::NotKnown: return QStringLiteral("unknown");
    case HeatGap::NotCompared: return QStringLiteral("not compared");
  }
  return {};
}

constexpr Wording kWordings[kColorByCount] = {
    {"axis", "Axis: the dimension that is split"},
    {"regret", "Regret: extra time of the fastest plan with another choice"},
    {"time", "Time: per step and rank under the plan, with collectives"},
    {"memory", "Memory: bytes stored on each rank under the plan"},
    {"traffic", "Traffic: bytes that ranks exchange under the plan"},
    {"error", "Error: difference between the ranks' values and an unsplit run"},
};
}  // namespace

QString colorName(ColorBy what) { return QLatin1String(kWordings[static_cast<int>(what)].name); }

QString colorTitle(ColorBy what) { return QLatin1String(kWordings[static_cast<int>(what)].title); }

std::optional<ColorBy> parseColorBy(const QString& name) {
  for (int i = 0; i < kColorByCount; ++i)
    if (name == QLatin1String(kWordings[i].name)) return static_cast<ColorBy>(i);
  return std::nullopt;
}

Agreement agreementOf(double partOfTolerance) {
  return partOfTolerance == 0 ? Agreement::Equal : partOfTolerance <= 1 ? Agreement::Within : Agreement::Beyond;
}

QString agreementName(Agreement agreement) {
  switch (agreement) {
    case Agreement::Equal: return QStringLiteral("equal");
    case Agreement::Within: return QStringLiteral("within tolerance");
    case Agreement::Beyond: break;
  }
  return QStringLiteral("above tolerance");
}

/// From light to strong, so that they differ in grey too.
QColor agreementColor(const Theme& theme, Agreement agreement) {
  switch (agreement) {
    case Agreement::Equal: return blend(theme.ground, theme.color(Tint::Dim2), 0.28);
    case Agreement::Within: return theme.color(Tint::Dim4Plus);
    case Agreement::Beyond: break;
  }
  return theme.dark ? theme.conflict.lighter(110) : theme.conflict.darker(130);
}

HeatField::HeatField(const GraphModel& model, ColorBy what, std::span<const std::optional<double>> amounts,
                     std::span<const HeatGap> gaps)
    : m_model(model),
      m_what(what),
      m_nodes(model.graph().nodes.size()),
      m_modules(model.moduleCount()),
      m_nodeGaps(m_nodes.size()),
      m_moduleGaps(m_modules.size()) {
  for (const NodeId node : idRange<NodeId>(std::min(amounts.size(), m_nodes.size()))) {
    const auto& amount = amounts[node.index()];
    const HeatGap gap = node.index() < gaps.size() ? gaps[node.index()] : HeatGap::None;
    const NodeId shown = model.shownNode(node);
    if (!shown.isValid() || (!amount && gap == HeatGap::None)) continue;
    add(m_nodes[shown.index()], amount);
    m_nodeGaps[shown.index()] = std::max(m_nodeGaps[shown.index()], gap);
    m_hasNegative |= amount.value_or(0) < 0;
    for (ModuleId id = model.moduleOf(shown); id.isValid(); id = model.module(id).parent) {
      add(m_modules[id.index()], amount);
      m_moduleGaps[id.index()] = std::max(m_moduleGaps[id.index()], gap);
    }
  }
  const auto stretch = [this](const std::optional<double>& amount) {
    if (!amount || *amount <= 0) return;
    m_most = std::max(m_most, *amount);
    m_least = m_least == 0 ? *amount : std::min(m_least, *amount);
  };
  for (const auto& amount : m_nodes) stretch(amount);
  for (const ModuleId id : idRange<ModuleId>(m_modules.size()))
    if (id != model.root()) stretch(m_modules[id.index()]);
  m_least = std::max(m_least, m_most / kWidestSpan);
}

void HeatField::add(std::optional<double>& to, const std::optional<double>& amount) const {
  if (!amount) return;
  to = !to ? *amount : isSum() ? *to + *amount : std::max(*to, *amount);
}

void HeatField::forEach(ModuleId first, ModuleId last, const std::function<void(ModuleId)>& visit) const {
  visit(first);
  if (first == last) return;
  bool isInside = false;
  for (const Member& member : m_model.module(m_model.module(first).parent).members) {
    if (isInside && member.module.isValid()) visit(member.module);
    isInside |= member.module == first;
    if (member.module == last) break;
  }
}

std::optional<double> HeatField::of(ModuleId first, ModuleId last) const {
  std::optional<double> all;
  forEach(first, last, [&](ModuleId id) { add(all, m_modules[id.index()]); });
  return all;
}

HeatGap HeatField::gapOf(ModuleId first, ModuleId last) const {
  HeatGap gap = HeatGap::None;
  forEach(first, last, [&](ModuleId id) { gap = std::max(gap, m_moduleGaps[id.index()]); });
  return gap;
}

double HeatField::fraction(double amount) const {
  if (amount <= 0 || m_most <= 0) return 0;
  if (m_most <= m_least) return 1;
  const double span = std::log(m_most / m_least);
  const double at = std::log(amount / m_least) / span;
  return std::clamp(at, kFaintest, 1.0);
}

QColor HeatField::color(const Theme& theme, const std::optional<double>& amount) const {
  if (m_what == ColorBy::Error) return amount ? agreementColor(theme, agreementOf(*amount)) : theme.ground;
  return theme.heat(amount ? fraction(*amount) : 0);
}

double HeatField::amountAt(double fraction) const {
  if (m_most <= 0) return 0;
  return m_least * std::pow(m_most / m_least, fraction);
}

QString HeatField::text(double amount) const {
  const auto time = [&] { return QString::fromStdString(solve::timeText(static_cast<Wide>(amount))); };
  switch (m_what) {
    case ColorBy::Axis: break;
    case ColorBy::Regret:
      if (amount == 0) return QStringLiteral("±0");
      return amount > 0 ? QStringLiteral("+") + time()
                        : QStringLiteral("−") + QString::fromStdString(solve::timeText(static_cast<Wide>(-amount)));
    case ColorBy::Time: return time();
    case ColorBy::Memory:
    case ColorBy::Traffic: return bytesText(static_cast<std::int64_t>(amount));
    case ColorBy::Error:
      if (agreementOf(amount) == Agreement::Equal) return QStringLiteral("equal");
      return (agreementOf(amount) == Agreement::Within ? QStringLiteral("within, %1") : QStringLiteral("beyond, %1"))
          .arg(partText(amount));
  }
  return {};
}

QString HeatField::moduleText(double amount) const {
  if (m_what == ColorBy::Error) return text(amount);
  return (isSum() ? QStringLiteral("Σ ") : QStringLiteral("max ")) + text(amount);
}

QString HeatField::label(NodeId shown) const {
  const auto amount = of(shown);
  if (!amount) return gapText(gapOf(shown));
  if (m_what == ColorBy::Error) return partText(*amount);  // the colours show the rest, and the tooltip has the words
  return *amount != 0 || !isSum() ? text(*amount) : QString();
}

QString HeatField::label(ModuleId first, ModuleId last) const {
  const auto amount = of(first, last);
  return amount ? moduleText(*amount) : gapText(gapOf(first, last));
}

QString HeatField::tip(NodeId shown) const {
  const auto amount = of(shown);
  return tipOf(amount, m_what == ColorBy::Error && amount ? text(*amount) : label(shown), gapOf(shown));
}

QString HeatField::tip(ModuleId first, ModuleId last) const {
  return tipOf(of(first, last), label(first, last), gapOf(first, last));
}

QString HeatField::tipOf(const std::optional<double>& amount, const QString& label, HeatGap gap) const {
  if (label.isEmpty() && gap == HeatGap::None) return {};
  QStringList lines{QStringLiteral("%1: %2").arg(colorName(m_what), label)};
  if (amount && *amount < 0)
    lines << QStringLiteral("faster, but needs more memory per rank: rejected within the slack");
  if (gap == HeatGap::OverBudget) lines << QStringLiteral("every plan with another choice exceeds the memory budget");
  if (amount && m_what == ColorBy::Error)
    lines << QStringLiteral("fraction of the tolerance, relative to the value's size");
  if (gap == HeatGap::NotCompared) lines << QStringLiteral("only one of the two runs has this value");
  if (gap == HeatGap::NotKnown)
    lines << QStringLiteral("the search stopped at its limit, before it found plans to compare with");
  return lines.join(QStringLiteral("<br>"));
}

}  // namespace cleave::views
