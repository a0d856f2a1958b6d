#pragma once
/// What can stand in the way of a plan, as a thing that a user can read and, where it is theirs, lift.
#include "solve/problem.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

enum class ConstraintKind : std::uint8_t {
  Pin,      ///< a demand of the user; `lift` removes it
  RuleOff,  ///< a rule that the user switched off
  Rule,     ///< what an operator can do (`node`); an allowed redistribution of `value` goes round it
  Sizes,    ///< sizes that do not divide by the ranks (`node`)
  Menu,     ///< a form that the menu does not offer (`node`)
  Budget,   ///< the memory budget
};

struct Constraint {
  ConstraintKind kind = ConstraintKind::Rule;
  NodeId node;                     ///< invalid: the whole plan
  ValueId value;                   ///< Rule: the operand that lies wrongly; else invalid
  std::string text;                ///< one sentence for a newcomer, with the numbers
  std::optional<std::string> lift; ///< text of the pin (or name of the operator, Pin::text and Problem::rulesOff) that a button removes
  bool operator==(const Constraint&) const = default;
};

/// Constraints that cannot hold together.
struct Core {
  std::vector<Constraint> constraints;
  bool isMinimal = false;  ///< every one is needed: without any of them there is a solution (deletion filter ran to its end)
  std::string text() const;  ///< all in one paragraph
};

}  // namespace cleave::solve
