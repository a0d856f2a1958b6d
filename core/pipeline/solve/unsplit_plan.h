#pragma once
/// Plans of a model on one rank, for the comparison with a split run.
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "plan/plan.h"

#include <memory>

namespace cleave::pipeline {

/// The plan of the model on one rank.
Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const std::shared_ptr<const Model>& model,
                                                      const plan::Plan& split, const Progress& progress = {});
/// The same with its sums in another order (graph/reordered_sums.h), in `reorderedParts` parts. Its difference from
/// `unsplitPlan` is the ruler.
Result<std::shared_ptr<const plan::Plan>> reorderedPlan(const std::shared_ptr<const Model>& model,
                                                        const plan::Plan& split, const Progress& progress = {},
                                                        int again = 0);
/// max(2, ranks of `split`) + `again`, the number of earlier measurements.
int reorderedParts(const plan::Plan& split, int again);

}  // namespace cleave::pipeline
