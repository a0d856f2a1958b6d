#pragma once
/// What would bring a plan where the memory of a rank is in the way. Each change is made alone and solved for before it is told.
#include "pipeline/pipeline.h"

namespace cleave::pipeline {

struct Fit {
  std::string change;        ///< "16 ranks", "the device h200", "no loss", "batch 2", "sequence 4096", "bfloat16"
  std::string flags;         ///< the same on the command line: "--ranks 16"
  std::int64_t rankBytes = 0;
  Femtoseconds femtoseconds;
  SolveOptions options;                   ///< the question that has this answer: what to solve with to have the plan
  torch_capture::CaptureOptions capture;  ///< of the graph it is asked about
};

/// True when the budget is what leaves no plan, alone or with demands of the user's.
bool isOverBudget(const solve::SolveResult& result);
/// What the smallest plan that was found holds, by kind, and how much is too much; empty where the engine did not come to that.
std::string overBudgetText(const solve::SolveResult& result);

/// Ranks first, then settings, devices, and what makes the model's step smaller. Empty: nothing that was tried fits. Blocking; captures
/// the model again for other batches, lengths and types.
Result<std::vector<Fit>> whatFits(const Model& model, const SolveOptions& options, const Progress& progress = {});

/// "What fits, each of it tried alone: …", for people; "Nothing …" where the list is empty.
std::string toText(const std::vector<Fit>& fits);

}  // namespace cleave::pipeline
