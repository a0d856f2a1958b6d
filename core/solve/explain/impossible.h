#pragma once
/// What cannot be whatever the rest of the plan is: sizes that do not divide, strategies that a layer or an operator
/// does not have. Looks at one node only; the user's pins do not count.
#include "solve/candidates/domains.h"
#include "solve/problem/constraint.h"

namespace cleave::solve {

struct Impossible : Constraint {
  std::optional<Problem> wider;  ///< a CandidateSet: the problem with the settings that it names, under which the node
                                 ///< has such a strategy
};

/// Why `value` can never be `placement`; nullopt: its node has such a strategy, or it is not known.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, Domains& domains,
                                        Work& work, ValueId value, const Placement& placement);
/// Why `layer` can never take `strategy`.
std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, NodeId layer,
                                        rules::Strategy strategy);

/// The strategies that a layer has here: "column and replicated".
std::string strategiesOf(const Problem& problem, const Variables& variables, NodeId layer);

}  // namespace cleave::solve
