#include "canvas/heat_field.h"

#include <algorithm>
#include <cmath>

#include "canvas/quantities.h"
#include "solve/cost/cost_model.h"

namespace cleave::views {

namespace {
/// Below this part of the most, differences do not matter and would eat the scale.
constexpr double kWidestSpan = 1e5;
/// The least amount above zero is still told apart from nothing.
constexpr double kFaintest = 0.04;

struct Wording {
  const char *name, *title;
};
constexpr Wording kWordings[kColorByCount] = {
    {"axis", "Axis: the dimension that is split"},
    {"regret", "Regret: what the next best choice would cost more"},
    {"time", "Time: of one step on a rank, collectives included"},
    {"memory", "Memory: bytes that stay on a rank"},
    {"traffic", "Traffic: bytes of the tensors that ranks exchange"},
};
}  // namespace

QString colorName(ColorBy what) {
  return QLatin1String(kWordings[static_cast<int>(what)].name);
}

QString colorTitle(ColorBy what) {
  return QLatin1String(kWordings[static_cast<int>(what)].title);
}

std::optional<ColorBy> parseColorBy(const QString& name) {
  for (int i = 0; i < kColorByCount; ++i)
    if (name == QLatin1String(kWordings[i].name)) return static_cast<ColorBy>(i);
  return std::nullopt;
}

HeatField::HeatField(const GraphModel& model, ColorBy what, std::span<const std::optional<double>> amounts)
    : m_model(model), m_what(what), m_nodes(model.graph().nodes.size()), m_modules(model.moduleCount()) {
  for (const NodeId node : idRange<NodeId>(std::min(amounts.size(), m_nodes.size()))) {
    const auto& amount = amounts[node.index()];
    if (!amount) continue;
    const NodeId shown = model.shownNode(node);
    if (!shown.isValid()) continue;
    add(m_nodes[shown.index()], amount);
    for (ModuleId id = model.moduleOf(shown); id.isValid(); id = model.module(id).parent)
      add(m_modules[id.index()], amount);
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

std::optional<double> HeatField::of(ModuleId first, ModuleId last) const {
  std::optional<double> all = m_modules[first.index()];
  if (first == last) return all;
  bool isInside = false;
  for (const Member& member : m_model.module(m_model.module(first).parent).members) {
    if (isInside && member.module.isValid()) add(all, m_modules[member.module.index()]);
    isInside |= member.module == first;
    if (member.module == last) break;
  }
  return all;
}

double HeatField::fraction(double amount) const {
  if (amount <= 0 || m_most <= 0) return 0;
  if (m_most <= m_least) return 1;
  const double span = std::log(m_most / m_least);
  const double at = std::log(amount / m_least) / span;
  return std::clamp(at, kFaintest, 1.0);
}

double HeatField::amountAt(double fraction) const {
  if (m_most <= 0) return 0;
  return m_least * std::pow(m_most / m_least, fraction);
}

QString HeatField::text(double amount) const {
  const auto time = [&] { return QString::fromStdString(solve::timeText(static_cast<Wide>(amount))); };
  switch (m_what) {
    case ColorBy::Axis: break;
    case ColorBy::Regret: return QStringLiteral("+") + time();
    case ColorBy::Time: return time();
    case ColorBy::Memory:
    case ColorBy::Traffic: return bytesText(static_cast<std::int64_t>(amount));
  }
  return {};
}

QString HeatField::moduleText(double amount) const {
  return (isSum() ? QStringLiteral("Σ ") : QStringLiteral("max ")) + text(amount);
}

}  // namespace cleave::views
