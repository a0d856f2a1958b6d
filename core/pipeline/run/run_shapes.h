#pragma once
/// Runs a model at several shapes in turn, in the same processes on the same weights. Each shape has its own plan with
/// the parameter splits of the first plan (planOnSameWeights), or is padded to a shape with such a plan.
///
///     ShapePlanner planner({.open = open, .replicas = 1});
///     CLEAVE_TRY(auto first, planner.first(model, plan, 1, 16, progress));
///     CLEAVE_TRY(auto next, planner.next(2, 64, progress));
///     CLEAVE_TRY(auto reports, runShapes({.run = request, .shapes = {first, next}}, observer, progress));
///
/// The run checks that each rank loads its weights once: the parameters of all shapes must be at the same addresses,
/// and only the first shape may read weights.
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/model/model.h"
#include "pipeline/report/run_report.h"
#include "pipeline/run/run_request.h"

#include <functional>
#include <map>
#include <vector>

namespace cleave::pipeline {

struct ShapeRun {
  std::int64_t batch = 1, sequence = 1;    ///< shape of all replicas together
  std::shared_ptr<const plan::Plan> plan;  ///< plan of one replica; shapes with the same program share one
  std::shared_ptr<const Model> model;      ///< model of all replicas without padding, for the unsplit run
  bool isPadded = false;                   ///< true: padded to the plan's batch and sequence
};

struct ShapePlanning {
  /// Opens the model at a shape.
  std::function<Result<std::shared_ptr<const Model>>(std::int64_t batch, std::int64_t sequence)> open;
  int replicas = 1;
  bool padsToPlanned = false;  ///< pad a shape to the smallest planned one that it fits into
};

/// Plans each shape of one model once. Not thread-safe.
class ShapePlanner {
 public:
  explicit ShapePlanner(ShapePlanning how) : m_how(std::move(how)) {}
  /// The first shape, which has a plan already. `batch` counts the rows of all replicas.
  Result<ShapeRun> first(std::shared_ptr<const plan::Plan> plan, std::int64_t batch, std::int64_t sequence);
  /// BadUsage if padding would change the results; Negative if no plan has the parameter splits of the first one.
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
  RunRequest run;  ///< request for all shapes, with the plan of the first one
  std::vector<ShapeRun> shapes;
};

/// Like runPlan, with one report per shape. If a rank fails, there are reports up to the shape that failed. Inputs are
/// random, and each shape is compared with its unsplit run.
Result<std::vector<RunReport>> runShapes(const ShapesRequest& request, const launch::Observer& observer,
                                         const Progress& progress = {});

}  // namespace cleave::pipeline
