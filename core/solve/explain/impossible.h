#pragma once
/// Placements and strategies that are impossible in every plan: sizes that do not divide, strategies that a layer or an
/// operator does not have. It looks at one node and ignores the user's pins.
#include "solve/candidates/domains.h"
#include "solve/problem/constraint.h"

#include <functional>

namespace cleave::solve {

/// Settings that allow more strategies than the problem's own settings, and the problem with them.
struct Wider {
  const char* name;  ///< "the full candidate set"
  Problem problem;
  std::vector<Change> changes;  ///< changes that make these settings
};
struct Impossible : Constraint {
  std::optional<Wider> wider;  ///< CandidateSet: the named settings, under which the node has such a strategy
};

/// Why `value` can never have `placement`; nullopt if its node has such a strategy, or if the answer is not known.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, Domains& domains,
                                        Work& work, ValueId value, const Placement& placement);
/// Why `layer` can never have `strategy`.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, NodeId layer,
                                        rules::Strategy strategy);

/// The smallest widening of the settings for which `has(problem)` is true; nullopt if there is no such setting.
std::optional<Wider> widerWith(const Problem& problem, const std::function<bool(const Problem&)>& has);

/// The strategies that a layer has here: "column and replicated".
std::string strategiesOf(const Problem& problem, const Variables& variables, NodeId layer);

}  // namespace cleave::solve
