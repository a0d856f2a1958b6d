#pragma once
/// The layers of a plan as a reader wants them: equal ones of repeated blocks in one row.
#include "plan/plan.h"

#include <string>
#include <vector>

namespace cleave::plan {

struct FoldedLayer {
  std::string name;      ///< "model.layers.{0-31}.self_attn.q_proj"
  std::string strategy;  ///< "column+gather"; what comes to a copy on every rank is "replicated"
  std::string reason;    ///< of the first of them
};
std::vector<FoldedLayer> foldedLayers(const Plan& plan);

}  // namespace cleave::plan
