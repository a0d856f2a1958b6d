#pragma once
/// What cannot be whatever the rest of the plan is: sizes that do not divide, strategies that a layer or an operator
/// does not have. Looks at one node only; the user's pins do not count.
#include "solve/candidates/domains.h"
#include "solve/problem/constraint.h"

#include <functional>

namespace cleave::solve {

/// Settings that leave more strategies than the problem's own, and the problem under them.
struct Wider {
  const char* name;  ///< "the full candidate set"
  Problem problem;
  std::vector<Change> changes;  ///< that make it
};
struct Impossible : Constraint {
  std::optional<Wider> wider;  ///< a CandidateSet: the settings that it names, under which the node has such a strategy
};

/// Why `value` can never be `placement`; nullopt: its node has such a strategy, or it is not known.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, Domains& domains,
                                        Work& work, ValueId value, const Placement& placement);
/// Why `layer` can never take `strategy`.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, NodeId layer,
                                        rules::Strategy strategy);

/// The least of the wider settings under which `has(problem)`; nullopt: none, or there are none.
std::optional<Wider> widerWith(const Problem& problem, const std::function<bool(const Problem&)>& has);

/// The strategies that a layer has here: "column and replicated".
std::string strategiesOf(const Problem& problem, const Variables& variables, NodeId layer);

}  // namespace cleave::solve
