#pragma once
/// Finds changes that lead to a plan if a rank has too little memory. Each change is solved alone before it is offered.
/// Only these offers change ranks, device, budget, engine, sequence parallelism or inputs; solve/explain/remedy.h
/// changes demands.
#include "libtorch/capture/capture.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solved.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

struct Fit {
  std::string change;  ///< "16 ranks", "the device h200", "no loss", "batch 2", "sequence 4096", "bfloat16"
  std::string flags;   ///< flags for this change: "--ranks 16"
  std::int64_t rankBytes = 0;
  Femtoseconds femtoseconds;
  spec::PlanSpec spec;    ///< asked so, the model gets this plan
  spec::InputSpec input;  ///< of the capture that it is for
};

/// A change without an answer.
struct NotKnown {
  std::string change;  ///< "other batches, lengths and types"
  std::string why;     ///< one sentence
};

struct Fits {
  std::vector<Fit> found;             ///< changes that fit: ranks, settings, devices, then smaller steps
  std::vector<std::string> tooLarge;  ///< changes with no plan that fits: "9 to 64 ranks", "batch 1"
  std::vector<NotKnown> notKnown;     ///< changes that were not tried, or whose search stopped early
};

/// For a solve with `isOverBudget` (over_budget.h), or for a plan over the budget from an engine that ignores budgets.
/// The latter gets two offers: the engine `optimal`, and a budget for that plan. Blocking; captures the model again for
/// other batches, lengths and types, without reading its folder.
Result<Fits> whatFits(const Model& model, const Solved& solved, const Progress& progress = {});

/// "What fits, each tried alone: …" with one line per change, and restText.
std::string toText(const Fits& fits);
/// One line for the changes that do not fit, and one for each unknown change.
std::string restText(const Fits& fits);

}  // namespace cleave::pipeline
