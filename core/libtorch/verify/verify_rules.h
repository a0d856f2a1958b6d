#pragma once
/// Tests rules by running them: each operator unsplit and on shards, with random tensors. This header does not use
/// LibTorch.
///
/// For each example call (rules/examples.h) the check draws sizes, runs the operator unsplit, and applies the rule to
/// every combination of operand placements. Each claim runs rank by rank on the operands' shards with the rule's local
/// arguments. It must give exactly the shards of the full result: integers and booleans bitwise, reals up to rounding.
/// Each conflict is tested too: if a plain split of the results would have been correct, the rule missed it. A few
/// other placements test what a verdict promises about them. Deterministic for a seed. ATen runs on one thread (the
/// process-wide setting is restored at the end).
#include "base/progress.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::torch_verify {

struct VerifyOptions {
  std::string op;      ///< only this operator ("aten::add.Tensor" or "add"); empty: all
  std::string family;  ///< only operators of this family ("reduction"); empty: all
  std::vector<int> worldSizes = {2, 3, 4};
  std::uint64_t seed = 0;
  int draws = 6;  ///< size draws per example, besides one draw with all 12 and one with all 4
};

struct Finding {
  enum class Kind : std::uint8_t {
    FalseClaim,     ///< the kernel refutes the rule's claim
    Missed,         ///< the rule refuses a correct claim
    BrokenPromise,  ///< the culprits of a conflict do not suffice, or the decider of a claim does not decide
                    ///< (rules/promises.h)
    NotRunnable,    ///< an example that the operator rejects for all drawn sizes
  };
  Kind kind = Kind::FalseClaim;
  std::string op;
  std::string call;    ///< with placements and ranks; rules::parseCall reads it
  std::string claim;   ///< the rule's claim; Missed: the correct claim
  std::string detail;  ///< first rank and the difference; Missed: the rule's reason to refuse
};

struct VerifyReport {
  std::vector<Finding> findings;  ///< each once per example: the smallest reproduction
  std::int64_t calls = 0;         ///< applications of a rule
  std::int64_t claims = 0;        ///< claims that were run
  std::int64_t conflicts = 0;
  std::vector<std::string> unproved;  ///< operators with a rule whose examples had no claim on a split operand
};

std::string_view toText(Finding::Kind kind);

/// BadUsage if no rule has the name; Cancelled.
Result<VerifyReport> verifyRules(const VerifyOptions& options, const Progress& progress = {});

}  // namespace cleave::torch_verify
