#pragma once
/// Amounts on the canvas: what each operator costs (or what leaving its choice would cost), summed or at its most over
/// folded modules, on one logarithmic scale so that an operator and a layer of operators can share it.
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

/// What the colours of the canvas say.
enum class ColorBy : std::uint8_t { Axis, Regret, Time, Memory, Traffic, Error };
inline constexpr int kColorByCount = 6;
constexpr bool isHeat(ColorBy what) { return what != ColorBy::Axis; }
QString colorName(ColorBy what);   ///< "axis", "regret", ...: as scripts and settings write it
QString colorTitle(ColorBy what);  ///< "Regret: what any other choice would cost more"
std::optional<ColorBy> parseColorBy(const QString& name);

/// How far a value is from the same one of another run: Error's amounts are parts of what is tolerated.
enum class Agreement : std::uint8_t { Equal, Within, Beyond };
Agreement agreementOf(double partOfTolerance);
QString agreementName(Agreement agreement);  ///< "equal", "within tolerance", "beyond it": as the legend has them
QColor agreementColor(const Theme& theme, Agreement agreement);

/// By NodeId; femtoseconds (Regret, Time), bytes (Memory, Traffic) or parts of the tolerance (Error), as pictures need
/// them. nullopt: nothing is known of this node.
using HeatAmounts = std::vector<std::optional<double>>;
/// Why there is no amount where one could be; of a module the last of these that it holds.
enum class HeatGap : std::uint8_t { None, OverBudget, NotKnown, NotCompared };
using HeatGaps = std::vector<HeatGap>;  ///< by NodeId; may be empty

class HeatField {
 public:
  HeatField(const GraphModel& model, ColorBy what, std::span<const std::optional<double>> amounts,
            std::span<const HeatGap> gaps = {});

  ColorBy what() const { return m_what; }
  /// Of a drawn node, with what is drawn as part of it.
  std::optional<double> of(NodeId shown) const { return m_nodes[shown.index()]; }
  /// Of a folded module, or of equal modules `first` to `last` of one list.
  std::optional<double> of(ModuleId first, ModuleId last) const;
  HeatGap gapOf(NodeId shown) const { return m_nodeGaps[shown.index()]; }
  HeatGap gapOf(ModuleId first, ModuleId last) const;
  /// Else folded modules show their most.
  bool isSum() const { return m_what != ColorBy::Regret && m_what != ColorBy::Error; }
  bool isEmpty() const { return m_most == 0; }        ///< no amount above zero anywhere
  bool hasNegative() const { return m_hasNegative; }  ///< there are better choices that were given up
  double least() const { return m_least; }            ///< smallest amount above zero on the scale
  double most() const { return m_most; }
  /// 0 for nothing, else where the amount lies between least and most on a logarithmic scale, above 0.
  double fraction(double amount) const;
  /// The amount at a fraction of the scale: for the legend's numbers.
  double amountAt(double fraction) const;
  /// How an amount is filled; the ground where there is none.
  QColor color(const Theme& theme, const std::optional<double>& amount) const;
  QString text(double amount) const;        ///< "1.25 ms", "+830 µs", "−13.1 µs", "12 MiB", "within, 3.4 %"
  QString moduleText(double amount) const;  ///< "Σ 1.25 ms", "max +830 µs"
  // What is written on a node or a folded module, and its tool tip; empty: there is nothing to say of it.
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
