#pragma once
#include "formats/weight_files.h"
#include "plan/plan.h"
#include "solve/optimal/optimum.h"

#include <memory>

namespace cleave::plan {

/// A solution and everything that a plan of it needs.
struct PlanRequest {
  ModelInfo model;
  std::shared_ptr<const solve::Problem> problem;
  std::shared_ptr<const Graph> captured;  ///< for Plan::origins; may be null
  std::shared_ptr<const solve::Solution> solution;
  solve::Engine engine = solve::Engine::Reference;
  solve::SearchStats search;
  std::shared_ptr<const solve::Optimum> optimum;  ///< of the engine `optimal`, whose plan `solution` is; null: another
                                                  ///< engine
  formats::WeightSources checkpoint;              ///< empty for a folder with a config alone
  std::uint64_t seed = 0;
  bool gatherOutputs = true;  ///< split graph outputs are gathered at the end, so that the user gets whole tensors
};

}  // namespace cleave::plan
