#pragma once
/// Calls on which the rules are proved: for each operator of each family, with sizes left open as letters. A check
/// draws sizes, runs the operator unsplit and on shards, and compares (see libtorch/verify/verify_rules.h).
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

struct Example {
  std::string call;              ///< see rule_text.h; without results, placements and ranks
  bool hasRandomValues = false;  ///< results are compared in shape only
};

/// In the order of the families; every operator with a rule has at least one.
const std::vector<Example>& examples();

}  // namespace cleave::rules
