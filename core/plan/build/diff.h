#pragma once
/// Compares two plans of one model: changed layers and values, and the change in time and memory. Pure; any thread.
#include "plan/plan.h"
#include "solve/cost/memory_parts.h"

namespace cleave::plan {

struct ValueChange {
  std::string name;
  ValueId value;  ///< in both graphs: plans of one capture have equal ATen graphs
  Placement before, after;
};
struct LayerChange {
  std::string name;
  NodeId node;
  rules::Strategy before = rules::Strategy::Replicated, after = rules::Strategy::Replicated;
  std::string reasonBefore, reasonAfter;
};
struct TimeFigure {
  Femtoseconds before, after;
  Femtoseconds change() const { return after - before; }
};
struct Figure {
  std::int64_t before = 0, after = 0;
  std::int64_t change() const { return after - before; }
};

struct PlanDiff {
  int ranksBefore = 1, ranksAfter = 1;
  std::string labelBefore, labelAfter;                  ///< "optimal, 4 ranks", "reference, 2 ranks, lm_head=row"
  std::vector<LayerChange> layers;                      ///< changed ones, in graph order
  std::vector<ValueChange> values;                      ///< changed ones, in graph order
  Figure splitLayers, layerCount;                       ///< layers with a weight (solve::countLayers)
  std::pair<double, double> splitFlops, splitWeights;   ///< before and after: Shares::flopsShare and weightShare
  TimeFigure femtoseconds;                              ///< predicted step time (PlanCost)
  Figure rankBytes;                                     ///< peak bytes per rank (PlanCost)
  std::array<Figure, solve::kMemoryParts> memoryParts;  ///< of `rankBytes`, in the order of solve::memoryParts
  std::map<rules::CollectiveKind, std::pair<Traffic, Traffic>> collectives;
  bool isSame() const { return layers.empty() && values.empty() && ranksBefore == ranksAfter; }
};

/// BadUsage if the plans have different graphs (another model, shape or flag); names the first difference.
Result<PlanDiff> diff(const Plan& before, const Plan& after);

/// The difference of two solutions of a problem. Needs no plans, so it takes a tenth of the time.
struct SolutionDiff {
  std::vector<LayerChange> layers;  ///< as PlanDiff::layers, without reasons
  std::map<rules::CollectiveKind, std::pair<Traffic, Traffic>> collectives;
};
Result<SolutionDiff> diff(const std::shared_ptr<const solve::Problem>& problem, const solve::Solution& before,
                          const solve::Solution& after);

/// Changed layers, equal ones of repeated blocks together: "model.layers.{0-11}.mlp.up_proj: column becomes
/// replicated (12 layers)".
std::vector<std::string> layerLines(const std::vector<LayerChange>& layers);
/// Text for a terminal: figures, then changed layers, equal ones of repeated blocks together.
std::string toText(const PlanDiff& diff);
/// Schema "cleave.diff/1".
std::string toJson(const PlanDiff& diff);

}  // namespace cleave::plan
