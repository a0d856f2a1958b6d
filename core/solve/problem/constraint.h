#pragma once
/// Constraints that prevent a plan, with a text for the user and, for the user's own demands, a way to lift them.
#include "solve/problem/problem.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

enum class ChangeKind : std::uint8_t {
  AddPin,            ///< `argument`: text for Pin::parse
  LiftPin,           ///< `argument`: text of a pin of the problem
  RuleOn,            ///< `argument`: an entry of Problem::rulesOff
  Redistribute,      ///< `argument`: a pattern of values for Problem::redistributable
  FullCandidateSet,  ///< all placements and strategies instead of those of the reference engine
  SequenceParallel,  ///< `argument`: "off", "on" or "auto"
  Ranks,             ///< `argument`: a world size
  LiftBudget,        ///< the device's memory instead of the user's budget
};
/// One change to a problem (explain/change.h).
struct Change {
  ChangeKind kind = ChangeKind::AddPin;
  std::string argument;
  bool operator==(const Change&) const = default;
};

enum class ConstraintKind : std::uint8_t {
  Pin,           ///< a demand of the user; `lift` removes it
  RuleOff,       ///< a rule that the user switched off
  Rule,          ///< a limit of the operator of `node`; a redistribution of `value` avoids it
  Sizes,         ///< sizes of `node` that are not divisible by the ranks
  CandidateSet,  ///< a strategy of `node` that the candidate set does not offer
  Budget,        ///< the memory budget
};

struct Constraint {
  ConstraintKind kind = ConstraintKind::Rule;
  NodeId node;                      ///< invalid: the whole plan
  ValueId value;                    ///< Rule: the operand with the wrong placement; else invalid
  std::string text;                 ///< one sentence for users, with the numbers
  std::optional<std::string> lift;  ///< text of the user's pin (Pin::text) or operator (Problem::rulesOff) to remove
  /// A change that was tried and that alone leads to a plan, for a button; nullopt if no such change is known.
  std::optional<Change> offer;
  bool operator==(const Constraint&) const = default;
};

/// A set of conflicting constraints.
struct Core {
  std::vector<Constraint> constraints;
  /// True if every constraint is needed: without any one of them the others can hold. Smaller sets may exist.
  bool isIrreducible = false;
  std::string text() const;  ///< all texts in one paragraph
};

}  // namespace cleave::solve
