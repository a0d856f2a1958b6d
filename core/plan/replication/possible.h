#pragma once
/// The nodes that some plan of a problem splits, with any budget. One search answers for all nodes. Internal to this
/// room.
#include "plan/replication_reason.h"
#include "solve/optimal/optimum.h"

#include <optional>
#include <vector>

namespace cleave::plan {

using Times = std::vector<std::optional<Femtoseconds>>;

enum class Part { Weight, Work };
bool splits(const solve::Choice& choice, Part part, int ranks);

/// The nodes that the plans of a problem can split.
struct Possible {
  bool isKnown = false;
  Times weight, work;  ///< by NodeId: least time of the plans that split it; nullopt: no plan does
  const Times& of(Part part) const { return part == Part::Weight ? weight : work; }
  bool has(graph::NodeId node, Part part) const { return !of(part).empty() && of(part)[node.index()]; }

  /// The result of a search of its own, not an engine's plan.
  struct Fastest {
    solve::Problem problem;  ///< with the memory budget
    solve::Variables variables;
    solve::Solution solution;
    Femtoseconds time;
    std::int64_t bytes = 0;
    std::optional<Femtoseconds> leastWithin;  ///< bound of plans within the budget; nullopt: not computed yet
    struct Within {
      solve::Solution solution;
      Femtoseconds time;
    };
    std::optional<Within> within;  ///< the fastest plan within the budget, if that is proved
  };
  std::optional<Fastest> fastest;
};

Possible possibleBy(const solve::Optimum& optimum, int ranks);
/// Searches with any budget and slack.
Possible possibleIn(solve::Problem problem, const Progress& progress);

}  // namespace cleave::plan
