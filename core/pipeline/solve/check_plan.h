#pragma once
/// Checks a plan file against its model: `cleave-cli check PLAN`.
///
/// The check trusts only the settings in a plan: the model and its inputs, ranks, engine, candidate set, sequence
/// parallelism, seed, demands, budget, slack, training, optimizer, and a device profile that is not bundled. It
/// recomputes the plan from them. Every field of the file except its timings (plan/file/plan_fields.h) must be the
/// same. If another version of Cleave made the plan, sentences and search effort are not compared.
#include "plan/plan.h"

#include <string_view>

namespace cleave::pipeline {

struct PlanCheck {
  std::vector<std::string> findings;  ///< errors in the plan, one sentence each
  /// Why the model could not be read, and what was not checked without it. The rest was checked on the plan's graph.
  /// Empty if everything was checked.
  std::string unchecked;
  /// A sentence about the other version that made the plan, and what was not compared; empty for this version.
  std::string otherVersion;
  /// A sentence about the plan's certificate; empty if there are findings, and for engines without proofs.
  std::string proof;
  /// True if the plan lacks the certificate that its engine writes: an earlier version made it, or it was removed.
  bool lacksCertificate = false;
  std::shared_ptr<const plan::Plan> plan;  ///< as read
  bool holds() const { return findings.empty() && unchecked.empty(); }
};

/// Captures the model again, runs the independent checker on the plan's placements and strategies, checks its
/// certificate against the rules and the cost model, and recomputes the plan. BadInput if the text is not a plan.
Result<PlanCheck> checkPlan(std::string_view text, const Progress& progress = {});

}  // namespace cleave::pipeline
