#pragma once
/// How a model does on other numbers of ranks: each is solved for, and judged by the work and the weights that its plan divides.
#include "plan/shares.h"

#include <span>

namespace cleave::plan {

enum class WorldSizeVerdict : std::uint8_t {
  Works,        ///< all that any of the numbers asked together can split can be split here, and something is (or there is one rank)
  Partly,       ///< something is split, but a layer or attention that splits elsewhere cannot here
  Nothing,      ///< nothing can be split here
  DoesNotPay,   ///< nothing is split, because whole costs less
  NotAskedFor,  ///< nothing is split, because a setting leaves it out
  NoSolution,   ///< pins, or a menu without `whole`, leave no plan
  OverBudget,   ///< no plan fits the memory of a rank
};
/// "works", "partly", "nothing splits", "does not pay", "not asked for", "no solution", "over the budget".
std::string_view toText(WorldSizeVerdict verdict);
/// False for NoSolution and OverBudget.
bool hasPlan(WorldSizeVerdict verdict);

struct WorldSize {
  int ranks = 1;
  WorldSizeVerdict verdict = WorldSizeVerdict::Works;
  solve::LayerCount layers;
  double flopsShare = 0, weightShare = 0;  ///< Shares::flopsShare and weightShare
  Femtoseconds replicatedFs;        ///< of each rank's step: on what every rank computes whole
  std::int64_t rankBytes = 0;       ///< PlanCost::bytes; OverBudget: of the leanest plan that was found, where it is known
  Femtoseconds femtoseconds;
  bool fitsBudget = true;           ///< engines that do not look at the budget answer plans beyond it
  std::string why;                  ///< not Works: the first reason, with the numbers; else what every rank computes whole, or empty
};

/// Under the options of the problem, by `engine`. Reports progress; answers what it has when cancelled.
std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks,
                                  const Progress& progress = {});

/// "works in part: `model.layers.*.self_attn` cannot be split: 28 heads do not divide by 8 ranks; 226 of 226 layers, …".
std::string toText(const WorldSize& size);

}  // namespace cleave::plan
