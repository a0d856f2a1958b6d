#pragma once
/// A rank program together with its relation to the ATen graph it was made from.
#include "plan/plan.h"

#include <vector>

namespace cleave::plan {

struct Lowered {
  Graph program;
  std::vector<ValueId> valueOf;  ///< by ATen value: see Plan::programValueOf
  std::vector<ValueId> wholeOf;  ///< by ATen value: its parts, gathered for the layers and outputs that need all of it;
                                 ///< invalid: not gathered
  std::vector<ValueId> completes;  ///< by program node: the ATen value that a call completes or feeds; invalid for a
                                   ///< source, and for an ATen operator on local shapes
};

}  // namespace cleave::plan
