#pragma once
/// Solves a model for several world sizes and judges each by the work and the weights that its plan splits. A verdict
/// depends only on its own world size.
#include "plan/shares.h"

#include <span>

namespace cleave::plan {

enum class WorldSizeVerdict : std::uint8_t {
  Works,        ///< the plan splits, and every layer with a weight and all attention can be split (or one rank)
  Partly,       ///< the plan splits, but a layer or attention cannot be split here
  Nothing,      ///< nothing can be split here
  DoesNotPay,   ///< nothing is split, or only within the slack: no plan is faster than one rank, and the model fits one
                ///< rank
  NotAskedFor,  ///< nothing is split because a setting excludes it
  NoSolution,   ///< pins, or a candidate set without `replicated`, allow no plan
  OverBudget,   ///< no plan fits the memory budget, or the engine ignores the budget and its plan does not fit
};
/// "works", "partly", "nothing splits", "does not pay", "not asked for", "no solution", "over the budget".
std::string_view toText(WorldSizeVerdict verdict);

struct WorldSize {
  int ranks = 1;
  WorldSizeVerdict verdict = WorldSizeVerdict::Works;
  bool hasPlan = false;  ///< also true for a plan over the budget
  solve::LayerCount layers;
  double flopsShare = 0, weightShare = 0;  ///< Shares::flopsShare and weightShare
  Femtoseconds replicatedFs;               ///< time per step for replicated work
  std::int64_t rankBytes = 0;              ///< PlanCost::bytes; OverBudget without a plan: of the smallest plan found
  std::int64_t overBytes = 0;              ///< OverBudget: part of rankBytes beyond the budget
  bool isProved = true;                    ///< OverBudget without a plan: false if the search stopped at its limit
  Femtoseconds femtoseconds;
  std::string heads;  ///< "28 heads do not divide by 8 ranks", the first reason to print; empty if heads divide, if
                      ///< ranks share KV heads, or if heads are not the reason for a missing plan
  std::string why;    ///< the first reason for a replicated part or a missing plan, with numbers; may be empty
  bool fitsBudget() const { return overBytes == 0; }
};

/// Solves with the problem's options by `engine`. Reports progress; when cancelled, returns the results so far.
std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks,
                                  const Progress& progress = {});

/// `heads` and `why`.
std::string reasonText(const WorldSize& size);
/// "over by 12.3 GiB"; empty if it fits.
std::string overBudgetText(const WorldSize& size);
/// Short text, for OverBudget without `why`: "works in part: 28 heads do not divide by 8 ranks; attention in
/// `model.layers.0.self_attn` cannot be split; 226 of 226 layers, …".
std::string toText(const WorldSize& size);

}  // namespace cleave::plan
