#pragma once
/// The weights of a plan whose model came from the Hub.
#include "base/progress.h"
#include "hub/snapshot.h"
#include "plan/plan.h"

#include <memory>

namespace cleave::pipeline {

/// The plan with the weights that its run reads; downloads them if they are missing. A plan that was made without
/// weights is made again with its settings; any other plan stays the same.
Result<std::shared_ptr<const plan::Plan>> fetchPlanWeights(std::shared_ptr<const plan::Plan> plan,
                                                           const hub::Watcher& watcher, const Progress& progress);

}  // namespace cleave::pipeline
