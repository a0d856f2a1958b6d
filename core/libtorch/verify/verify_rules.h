#pragma once
/// Proves rules by running them: each operator unsplit and on shards, on random tensors. No LibTorch in this header.
///
/// For each example call (rules/examples.h) sizes are drawn, the operator is run unsplit, and for every combination of
/// placements of its operands the rule is asked. Each claim is run rank by rank on the operands' shards, with the
/// rule's local arguments, and must give exactly the shards of the whole result (integers and booleans bit for bit,
/// reals within rounding). Each conflict is tried too: a plain split of the results that would have been true is a
/// missed one. What a verdict promises about other placements is tried on a few of them. Deterministic for a seed. Runs
/// ATen on one thread (the process-wide setting is put back at the end).
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
  int draws = 6;  ///< sizes drawn per example, beside one draw of all 12 and one of all 4
};

struct Finding {
  enum class Kind : std::uint8_t {
    FalseClaim,     ///< the rule says what the kernel refutes
    Missed,         ///< the rule refuses what would have been true
    BrokenPromise,  ///< the culprits of a conflict do not suffice, or the decider of a claim does not decide
                    ///< (rules/promises.h)
    NotRunnable,    ///< an example that the operator itself refuses for all drawn sizes
  };
  Kind kind = Kind::FalseClaim;
  std::string op;
  std::string call;    ///< with placements and ranks, readable by rules::parseCall
  std::string claim;   ///< what the rule said; Missed: what would have been true
  std::string detail;  ///< first rank and what differs; Missed: why the rule refuses
};

struct VerifyReport {
  std::vector<Finding> findings;  ///< each once per example: the smallest reproduction drawn
  std::int64_t calls = 0;         ///< applications of a rule
  std::int64_t claims = 0;        ///< claims that were run
  std::int64_t conflicts = 0;
  std::vector<std::string> unproved;  ///< operators with a rule of which no example had a claim on a split operand
};

std::string_view toText(Finding::Kind kind);

/// BadUsage when no rule has the name; Cancelled.
Result<VerifyReport> verifyRules(const VerifyOptions& options, const Progress& progress = {});

}  // namespace cleave::torch_verify
