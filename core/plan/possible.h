#pragma once
/// Which nodes some plan of a problem splits, budget or not: one search answers it for all of them. Internal to this
/// room.
#include "plan/standing.h"
#include "solve/optimal/optimum.h"

#include <optional>
#include <vector>

namespace cleave::plan {

using Times = std::vector<std::optional<Femtoseconds>>;

enum class Part { Weight, Work };
bool splits(const solve::Choice& choice, Part part, int ranks);

/// What all plans of a problem could split.
struct Possible {
  bool isKnown = false;
  Times weight, work;  ///< by NodeId: least time of the plans that split it; nullopt: none does
  const Times& of(Part part) const { return part == Part::Weight ? weight : work; }
  bool has(graph::NodeId node, Part part) const { return !of(part).empty() && of(part)[node.index()]; }

  /// Searched for on purpose, not an engine's own plan.
  struct Fastest {
    solve::Problem problem;  ///< with the memory budget
    solve::Variables variables;
    solve::Solution solution;
    Femtoseconds time;
    std::int64_t bytes = 0;
    std::optional<Femtoseconds> leastWithin;  ///< bound of plans within the budget; nullopt: not asked yet
    struct Within {
      solve::Solution solution;
      Femtoseconds time;
    };
    std::optional<Within> within;  ///< the fastest of these, where that is proved
  };
  std::optional<Fastest> fastest;
};

Possible possibleBy(const solve::Optimum& optimum, int ranks);
/// By searching, whatever the problem's budget and slack are.
Possible possibleIn(solve::Problem problem, const Progress& progress);

}  // namespace cleave::plan
