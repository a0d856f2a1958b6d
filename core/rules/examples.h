#pragma once
/// Example calls that test the rules: some for each operator of each family, with letters as sizes. A check draws the
/// sizes, runs the operator unsplit and on shards, and compares (see libtorch/verify/verify_rules.h).
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

struct Example {
  std::string call;              ///< see rule_text.h; without results, placements and ranks
  bool hasRandomValues = false;  ///< true: only the results' shapes are compared
};

/// In the order of the families. Every operator with a rule has at least one example.
const std::vector<Example>& examples();

}  // namespace cleave::rules
