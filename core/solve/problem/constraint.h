#pragma once
/// What can stand in the way of a plan, as a thing that a user can read and, where it is theirs, lift.
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
  FullCandidateSet,  ///< all placements and strategies instead of the reference's
  SequenceParallel,  ///< `argument`: "off", "on" or "auto"
  Ranks,             ///< `argument`: a world size
  LiftBudget,        ///< what the device has instead of a budget of the user's
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
  Rule,          ///< what an operator can do (`node`); an allowed redistribution of `value` goes round it
  Sizes,         ///< sizes that do not divide by the ranks (`node`)
  CandidateSet,  ///< a strategy that the candidate set does not offer (`node`)
  Budget,        ///< the memory budget
};

struct Constraint {
  ConstraintKind kind = ConstraintKind::Rule;
  NodeId node;                      ///< invalid: the whole plan
  ValueId value;                    ///< Rule: the operand that is placed wrongly; else invalid
  std::string text;                 ///< one sentence for a newcomer, with the numbers
  std::optional<std::string> lift;  ///< text of the pin (or name of the operator, Pin::text and Problem::rulesOff) that
                                    ///< is the user's to remove
  /// What a button does about it: a change that was tried and that alone brings a plan; nullopt where none does, or it
  /// is not known.
  std::optional<Change> offer;
  bool operator==(const Constraint&) const = default;
};

/// Constraints that cannot hold together.
struct Core {
  std::vector<Constraint> constraints;
  /// Every one is needed: without any of them the others can hold together. Other sets may exist, smaller ones too.
  bool isIrreducible = false;
  std::string text() const;  ///< all in one paragraph
};

}  // namespace cleave::solve
