#pragma once
/// What would bring a plan where the memory of a rank is in the way. Each change is made alone and solved for before it
/// is told; these are the only offers that change ranks, device, budget, engine, sequence parallelism or inputs
/// (solve/explain/remedy.h has the demands).
#include "pipeline/solve.h"

namespace cleave::pipeline {

struct Fit {
  std::string change;  ///< "16 ranks", "the device h200", "no loss", "batch 2", "sequence 4096", "bfloat16"
  std::string flags;   ///< the same on the command line: "--ranks 16"
  std::int64_t rankBytes = 0;
  Femtoseconds femtoseconds;
  SolveOptions options;                   ///< the question that has this answer: what to solve with to have the plan
  torch_capture::CaptureOptions capture;  ///< of the graph it is asked about
};

/// Neither found to fit nor found not to.
struct NotKnown {
  std::string change;  ///< "other batches, lengths and types"
  std::string why;     ///< one sentence
};

struct Fits {
  std::vector<Fit> found;             ///< ranks first, then settings, devices, and what makes the model's step smaller
  std::vector<std::string> tooLarge;  ///< tried, and no plan fits: "9 to 64 ranks", "batch 1"
  std::vector<NotKnown> notKnown;     ///< not tried, or the search for it ended without an answer
};

/// True when the budget is what leaves no plan, alone or with demands of the user's.
bool isOverBudget(const solve::SolveResult& result);
/// True when a plan needs more than the budget that was asked for, as only `optimal` keeps one: an answer that is no.
bool exceedsAskedBudget(const plan::Plan& plan);
/// What the smallest plan that was found holds, by kind, and how much is too much; empty where the engine did not come
/// to that.
std::string overBudgetText(const solve::SolveResult& result);

/// Of a solve for which `isOverBudget`; or of a plan over the budget, found by an engine that does not keep it: then
/// the engine that does, and a budget as large as that plan. Blocking; captures the model again for other batches,
/// lengths and types, without its folder.
Result<Fits> whatFits(const Model& model, const Solved& solved, const Progress& progress = {});

/// "What fits, each tried alone: …" and the rest; for people.
std::string toText(const Fits& fits);
/// What does not fit and what is not known, a line each.
std::string restText(const Fits& fits);

}  // namespace cleave::pipeline
