#pragma once
/// Amounts on the canvas: what each operator costs, or the extra cost of another choice. A folded module shows the sum
/// or the maximum of its operators. All amounts share one logarithmic scale, so that an operator and a layer are
/// comparable.
///
///     const HeatField heat(model, ColorBy::Time, amounts);   // femtoseconds by NodeId
///     theme.heat(heat.fraction(*heat.of(node)));  heat.text(*heat.of(node));  // "1.25 ms"
///
/// Immutable once made; making it is linear in nodes.
#include <QString>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "views/base/theme.h"
#include "views/graph/model/graph_model.h"

namespace cleave::views {

/// What the colours of the canvas show.
enum class ColorBy : std::uint8_t { Axis, Regret, Time, Memory, Traffic, Error };
inline constexpr int kColorByCount = 6;
constexpr bool isHeat(ColorBy what) { return what != ColorBy::Axis; }
QString colorName(ColorBy what);   ///< "axis", "regret", ...: the name in scripts and settings
QString colorTitle(ColorBy what);  ///< "Regret: extra time of the fastest plan with another choice"
std::optional<ColorBy> parseColorBy(const QString& name);

/// How far a value is from the same value of another run, as a fraction of the tolerance.
enum class Agreement : std::uint8_t { Equal, Within, Beyond };
Agreement agreementOf(double partOfTolerance);
QString agreementName(Agreement agreement);  ///< "equal", "within tolerance", "above tolerance": the legend's words
QColor agreementColor(const Theme& theme, Agreement agreement);

/// By NodeId: femtoseconds (Regret, Time), bytes (Memory, Traffic) or fractions of the tolerance (Error). nullopt:
/// unknown for this node.
using HeatAmounts = std::vector<std::optional<double>>;
/// Why an amount is missing. A module has the last gap of its nodes.
enum class HeatGap : std::uint8_t { None, OverBudget, NotKnown, NotCompared };
using HeatGaps = std::vector<HeatGap>;  ///< by NodeId; may be empty

class HeatField {
 public:
  HeatField(const GraphModel& model, ColorBy what, std::span<const std::optional<double>> amounts,
            std::span<const HeatGap> gaps = {});

  ColorBy what() const { return m_what; }
  /// The amount of a drawn node, including everything drawn as part of it.
  std::optional<double> of(NodeId shown) const { return m_nodes[shown.index()]; }
  /// The amount of a folded module, or of equal modules `first` to `last` of one list.
  std::optional<double> of(ModuleId first, ModuleId last) const;
  HeatGap gapOf(NodeId shown) const { return m_nodeGaps[shown.index()]; }
  HeatGap gapOf(ModuleId first, ModuleId last) const;
  /// True: folded modules show the sum. False: the maximum.
  bool isSum() const { return m_what != ColorBy::Regret && m_what != ColorBy::Error; }
  bool isEmpty() const { return m_most == 0; }        ///< no amount above zero anywhere
  bool hasNegative() const { return m_hasNegative; }  ///< some choices are faster but were rejected
  double least() const { return m_least; }            ///< smallest amount above zero on the scale
  double most() const { return m_most; }
  /// 0 for zero, else the position of the amount between least and most on a logarithmic scale, above 0.
  double fraction(double amount) const;
  /// The amount at a fraction of the scale, for the legend's numbers.
  double amountAt(double fraction) const;
  /// The fill colour of an amount. The ground colour without an amount.
  QColor color(const Theme& theme, const std::optional<double>& amount) const;
  QString text(double amount) const;        ///< "1.25 ms", "+830 µs", "−13.1 µs", "12 MiB", "within, 3.4 %"
  QString moduleText(double amount) const;  ///< "Σ 1.25 ms", "max +830 µs"
  // The text on a node or a folded module, and its tooltip. Empty: no text.
  QString label(NodeId shown) const;
  QString label(ModuleId first, ModuleId last) const;
  QString tip(NodeId shown) const;
  QString tip(ModuleId first, ModuleId last) const;

 private:
  QString tipOf(const std::optional<double>& amount, const QString& label, HeatGap gap) const;
  void forEach(ModuleId first, ModuleId last, const std::function<void(ModuleId)>& visit) const;
  void add(std::optional<double>& to, const std::optional<double>& amount) const;
  const GraphModel& m_model;
  ColorBy m_what;
  HeatAmounts m_nodes, m_modules;
  HeatGaps m_nodeGaps, m_moduleGaps;
  double m_least = 0, m_most = 0;
  bool m_hasNegative = false;
};

}  // namespace cleave::views
