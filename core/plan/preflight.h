#pragma once
/// What can be said of a model before any search: what will not split, why, what that costs, and for which world sizes it
/// works. Pure; a few milliseconds for one world size of a large model, so run it off the GUI thread.
#include "plan/plan.h"

namespace cleave::plan {

/// An operator of the graph that no rule knows: its operands must be whole.
struct UnknownOperator {
  std::string op;
  std::size_t count = 0;
  NodeId first;
  bool matters = false;      ///< a layer's split result could have reached it
  std::string text;          ///< what follows from it, one sentence
};

/// A layer (or a group of equal ones) that does not divide, with the numbers.
struct IndivisibleLayers {
  std::string pattern;       ///< "model.layers.*.self_attn.k_proj"
  std::size_t count = 0;
  NodeId first;
  std::string reason;        ///< "3 heads do not split over 2 ranks"
  std::int64_t bytes = 0;    ///< of their weights, whole
};

/// Weights that every rank holds whole, and their bytes.
struct WholeWeights {
  std::string pattern;
  std::size_t count = 0;
  NodeId first;
  std::int64_t bytes = 0;
  std::string why;
};

/// Works: every layer splits that splits on any of the world sizes asked together (on one rank there is nothing to split, and
/// it works). Partly: some of them. Nothing: every layer is whole. NoSolution: pins, or a menu without `whole`, leave none.
enum class WorldSizeVerdict : std::uint8_t { Works, Partly, Nothing, NoSolution };
/// How a model does on one world size, under the options of the problem.
struct WorldSize {
  int ranks = 1;
  WorldSizeVerdict verdict = WorldSizeVerdict::Works;
  std::size_t splitLayers = 0, layers = 0;  ///< layers with a parameter
  std::int64_t rankBytes = 0;       ///< PlanCost::bytes
  Femtoseconds femtoseconds;
  bool fitsBudget = true;
  std::string why;                  ///< not Works: the first reason, with the numbers; empty else
};

struct Preflight {
  std::vector<UnknownOperator> unknownOperators;
  std::vector<IndivisibleLayers> indivisible;
  std::vector<WholeWeights> whole;
  std::int64_t wholeBytes = 0;
};

/// For the problem's own world size. Asks rules and layer options only; no search.
Preflight preflight(const solve::Problem& problem);
/// Solves for each world size with `engine` (an engine that takes the first solution answers fastest; DESIGN: 1-64).
/// Reports progress; answers what it has when cancelled.
std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks,
                                  const Progress& progress = {});

}  // namespace cleave::plan
