#pragma once
/// Checks what a verdict promises about placements it was not asked about.
///
/// A search that remembers failures (solve/learning.h) relies on three of them: the culprits of a conflict suffice for
/// a conflict, so does each of its further sets, and the decider of a claim alone fixes the results (see rule.h). Here
/// the operands that a promise leaves free are placed otherwise, at random, and the rule is asked again.
#include "rules/rule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::rules {

/// Placements worth trying for a tensor: replicated, every plain split that divides, and, unless `isPlainOnly`, some of
/// each other strategy.
std::vector<Placement> placementsWorthTrying(const Shape& shape, int worldSize, bool isPlainOnly);

struct BrokenPromise {
  std::vector<Placement> operands;  ///< with which the rule answers otherwise
  std::string detail;               ///< what was promised, and what it answers
};

/// A promise that `verdict`, the rule's answer to `call`, does not keep; nullopt when `draws` random placements of the
/// free operands refute none. Deterministic for a seed.
std::optional<BrokenPromise> findBrokenPromise(const OpCall& call, const Verdict& verdict, std::uint64_t seed,
                                               int draws);

}  // namespace cleave::rules
