#pragma once
/// A model that runs at several shapes one after the other, in the same processes on the same weights. Each shape has a
/// plan of its own whose parameters are split as those of the first (planOnSameWeights), or is padded to one that has.
///
///     ShapePlanner planner({.open = open, .replicas = 1});
///     CLEAVE_TRY(auto first, planner.first(model, plan, 1, 16, progress));
///     CLEAVE_TRY(auto next, planner.next(2, 64, progress));
///     CLEAVE_TRY(auto reports, runShapes({.run = request, .shapes = {first, next}}, observer, progress));
///
/// That nothing was loaded again is checked: on each rank the parameters of all shapes lie at the same addresses, and
/// the first alone read anything.
#include "pipeline/open.h"
#include "pipeline/run.h"

#include <functional>
#include <map>
#include <vector>

namespace cleave::pipeline {

struct ShapeRun {
  std::int64_t batch = 1, sequence = 1;    ///< of all replicas
  std::shared_ptr<const plan::Plan> plan;  ///< of one replica; the same for shapes that run the same program
  std::shared_ptr<const Model> model;      ///< of all replicas, without padding: what an unsplit run computes
  bool isPadded = false;                   ///< to the plan's batch and sequence
};

struct ShapePlanning {
  /// The model at a shape.
  std::function<Result<std::shared_ptr<const Model>>(std::int64_t batch, std::int64_t sequence)> open;
  int replicas = 1;
  bool padsToPlanned =
      false;  ///< a shape that fits into one that was planned before is padded to the smallest of those
};

/// Plans shapes of one model, each once. Not thread-safe.
class ShapePlanner {
 public:
  explicit ShapePlanner(ShapePlanning how) : m_how(std::move(how)) {}
  /// The shape that has a plan: its batch is that of all replicas.
  Result<ShapeRun> first(std::shared_ptr<const plan::Plan> plan, std::int64_t batch, std::int64_t sequence);
  /// BadUsage where padding would change what counts; Negative where no plan splits the parameters as the first one.
  Result<ShapeRun> next(std::int64_t batch, std::int64_t sequence, const Progress& progress = {});

 private:
  using Shape = std::pair<std::int64_t, std::int64_t>;
  const ShapeRun* roomFor(const Shape& shape) const;
  Result<ShapeRun> padded(const Shape& shape, const ShapeRun& room);
  ShapePlanning m_how;
  std::map<Shape, ShapeRun> m_planned;
  std::shared_ptr<const plan::Plan> m_first;
};

struct ShapesRequest {
  RunRequest run;  ///< of all; its plan is that of the first shape
  std::vector<ShapeRun> shapes;
};

/// As runPlan, one report a shape; of ranks that failed those of the shapes until then. Inputs are made up, and what is
/// compared with is an unsplit run of each shape.
Result<std::vector<RunReport>> runShapes(const ShapesRequest& request, const launch::Observer& observer,
                                         const Progress& progress = {});

}  // namespace cleave::pipeline
