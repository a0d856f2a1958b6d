#pragma once
/// What the colours of the canvas show: how values and layers are split, or amounts such as time or memory.
///
/// Owns what the painter needs for it: the board of placements with collectives and conflicts, and the field of
/// amounts. `make` follows each new model; amounts and collectives of the same graph survive it.
///
///     Colors colors;
///     colors.make(model, counts, conflicts);
///     colors.setAmounts(ColorBy::Time, amounts, {}, {});
///     if (const HeatField* heat = colors.heat()) legend.scale = colors.scale();
#include <QString>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/model/placement_board.h"
#include "views/graph/scene/legend_drawing.h"

namespace cleave::views {

class Colors {
 public:
  /// Both outlive the colours, or the next `drop`.
  void make(const GraphModel& model, const SplitCounts& counts, std::span<const NodeId> conflicts);
  void drop();         ///< forgets the model; keeps amounts and collectives
  void forgetGraph();  ///< forgets amounts and collectives: they belong to another graph

  /// The collectives of a plan of `graph`. Null: no plan. False: nothing changed, because there was no plan before.
  bool setPlan(const plan::Plan* plan, const graph::Graph* graph);
  void setConflicts(std::span<const NodeId> nodes);
  /// Axis: no amounts. `note` replaces the scale while there are no amounts. True: the colours mean something else now.
  bool setAmounts(ColorBy what, HeatAmounts amounts, HeatGaps gaps, const QString& note);

  ColorBy by() const { return m_by; }
  const PlacementBoard* board() const { return m_board.get(); }  ///< null: no model
  const HeatField* heat() const { return m_heat.get(); }         ///< null: colours show the axis
  HeatScale scale() const;                                       ///< for the legend; empty without amounts

 private:
  void makeHeat();

  const GraphModel* m_model = nullptr;
  std::unique_ptr<PlacementBoard> m_board;
  std::map<ValueId, std::vector<CollectiveBadge>> m_collectives;
  ColorBy m_by = ColorBy::Axis;
  HeatAmounts m_amounts;
  HeatGaps m_gaps;
  QString m_note;
  std::unique_ptr<HeatField> m_heat;
};

}  // namespace cleave::views
