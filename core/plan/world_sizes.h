#pragma once
/// How a model does on other numbers of ranks: each is solved for, and judged by the work and the weights that its plan
/// divides. A verdict depends on its own number alone, not on which others are asked with it.
#include "plan/shares.h"

#include <span>

namespace cleave::plan {

enum class WorldSizeVerdict : std::uint8_t {
  Works,        ///< something is split, and every layer with a weight and all attention can be (or there is one rank)
  Partly,       ///< something is split, but a layer or attention cannot be here
  Nothing,      ///< nothing can be split here
  DoesNotPay,   ///< nothing is split, or only what the slack admits, because no plan is faster than one rank, which has
                ///< room for the model
  NotAskedFor,  ///< nothing is split, because a setting leaves it out
  NoSolution,   ///< pins, or a candidate set without `replicated`, leave no plan
  OverBudget,   ///< no plan fits the memory of a rank, or the engine found one without looking at it that does not
};
/// "works", "partly", "nothing splits", "does not pay", "not asked for", "no solution", "over the budget".
std::string_view toText(WorldSizeVerdict verdict);

struct WorldSize {
  int ranks = 1;
  WorldSizeVerdict verdict = WorldSizeVerdict::Works;
  bool hasPlan = false;  ///< true as well of one that is over the budget
  solve::LayerCount layers;
  double flopsShare = 0, weightShare = 0;  ///< Shares::flopsShare and weightShare
  Femtoseconds replicatedFs;               ///< of each rank's step: on what every rank computes in full
  std::int64_t rankBytes = 0;  ///< PlanCost::bytes; OverBudget without a plan: of the leanest that was found
  std::int64_t overBytes = 0;  ///< OverBudget: of rankBytes, beyond the budget
  bool isProved = true;  ///< OverBudget without a plan: false where the search for one that fits ended at its limit
  Femtoseconds femtoseconds;
  std::string heads;  ///< "28 heads do not divide by 8 ranks": comes before all other reasons; empty: they do, or ranks
                      ///< share them, or they are not why there is no plan
  std::string why;    ///< the first reason that something is not split, or that there is no plan, with the numbers; or
                      ///< empty
  bool fitsBudget() const { return overBytes == 0; }
};

/// Under the options of the problem, by `engine`. Reports progress; answers what it has when cancelled.
std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks,
                                  const Progress& progress = {});

/// `heads` and `why`.
std::string reasonText(const WorldSize& size);
/// "over by 12.3 GiB"; empty: it fits.
std::string overBudgetText(const WorldSize& size);
/// In brief, OverBudget without `why`: "works in part: 28 heads do not divide by 8 ranks; attention in
/// `model.layers.0.self_attn` cannot be split; 226 of 226 layers, …".
std::string toText(const WorldSize& size);

}  // namespace cleave::plan
