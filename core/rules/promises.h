#pragma once
/// Checks the promises that a verdict makes about other placements.
///
/// A search that remembers failures (solve/learning.h) relies on three promises. The culprits of a conflict suffice for
/// a conflict, each of its further sets does too, and the decider of a claim alone fixes the results (see rule.h). The
/// check draws random placements for the operands that a promise leaves free, and applies the rule again.
#include "rules/rule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::rules {

/// Placements to try for a tensor: replicated, every plain split that divides, and, unless `isPlainOnly`, some of each
/// other kind.
std::vector<Placement> placementsWorthTrying(const Shape& shape, int worldSize, bool isPlainOnly);

struct BrokenPromise {
  std::vector<Placement> operands;  ///< a counterexample to the promise
  std::string detail;               ///< the promise, and the rule's verdict on `operands`
};

/// A promise of `verdict`, the rule's verdict on `call`, that is broken. nullopt if `draws` random placements of the
/// free operands do not refute any. Deterministic for a seed.
std::optional<BrokenPromise> findBrokenPromise(const OpCall& call, const Verdict& verdict, std::uint64_t seed,
                                               int draws);

}  // namespace cleave::rules
