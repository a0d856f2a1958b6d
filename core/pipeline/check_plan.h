#pragma once
/// Holds a plan file against the model it names: `cleave-cli check PLAN`.
#include "pipeline/pipeline.h"

namespace cleave::pipeline {

/// Captures the model again, lets the independent checker judge the plan's placements and strategies, makes the plan anew
/// from them and compares shards and rank program. One sentence a finding; empty: the plan holds.
Result<std::vector<std::string>> checkPlan(const plan::Plan& plan, const Progress& progress = {});

}  // namespace cleave::pipeline
