#pragma once
/// Holds a plan file against the model it names: `cleave-cli check PLAN`.
///
/// Nothing that a plan says of itself is believed but what was asked for: the model and its inputs, ranks, engine,
/// candidate set, sequence parallelism, seed, demands, budget, slack, training and optimizer, and a device of the
/// user's own. From these the plan is made again, and every field of the file but its timings (plan/plan_fields.h) must
/// be the same. Of a plan that another version of Cleave made, sentences and the effort of the search are not compared.
#include "plan/plan.h"

#include <string_view>

namespace cleave::pipeline {

struct PlanCheck {
  std::vector<std::string> findings;  ///< what is wrong, one sentence each
  /// Why the model could not be read, and what only it could have told: the rest was checked on the plan's own graph.
  /// Empty when everything was checked.
  std::string unchecked;
  /// That another version made it, and what was not compared for that; empty for a plan of this version.
  std::string otherVersion;
  /// What its certificate proves, or that it has none; empty where something else is wrong already, and for engines
  /// that prove nothing.
  std::string proof;
  /// Its engine writes one, and it has none: those of earlier programs, or one that was taken out.
  bool lacksCertificate = false;
  std::shared_ptr<const plan::Plan> plan;  ///< as read
  bool holds() const { return findings.empty() && unchecked.empty(); }
};

/// Captures the model again, lets the independent checker judge the plan's placements and strategies, holds its
/// certificate against the rules and the cost model, and makes the plan again. BadInput when the text is no plan at
/// all.
Result<PlanCheck> checkPlan(std::string_view text, const Progress& progress = {});

}  // namespace cleave::pipeline
