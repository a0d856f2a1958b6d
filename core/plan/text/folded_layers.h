#pragma once
/// The layers of a plan for a table: equal layers of repeated blocks share a row.
#include "plan/plan.h"

#include <string>
#include <vector>

namespace cleave::plan {

struct FoldedLayer {
  std::string name;      ///< "model.layers.{0-31}.self_attn.q_proj"
  std::string strategy;  ///< "column+gather"; "replicated" if every rank has a copy
  std::string reason;    ///< reason of the first layer
};
std::vector<FoldedLayer> foldedLayers(const Plan& plan);

}  // namespace cleave::plan
