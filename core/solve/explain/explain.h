#pragma once
/// Answers about a solution (or the want of one), for any engine: why a value lies as it does, why not otherwise, which
/// constraints cannot hold together, what would change. Asks the rules and the `learning` engine again; no trace needed.
///
///     for (const WhyLink& link : why(problem, solution, value)) fmt::print("{}\n", plainText(link.sentence));
///     CLEAVE_TRY(const WhyNot answer, whyNot(problem, solution, optimum.get(), value, *Placement::parse("S(1)")));
///
/// Pure; run `whyNot` and `smallestCore` off the GUI thread: they solve the problem again up to some dozen times, stop at
/// the progress's token, and at `timeLimitMs`.
#include "solve/decision.h"
#include "solve/explain/constraint.h"
#include "solve/optimal/optimum.h"

namespace cleave::solve {

/// One link of the chain from a value back to the choice that decided it.
struct WhyLink {
  NodeId node;
  ValueId value;             ///< what this link explains
  Sentence sentence;         ///< "`add_4` is R because both inputs are R: `embedding_0` and `linear_3`."
  bool isFree = false;       ///< here was a choice: the chain ends
  std::vector<std::string> alternatives;  ///< isFree: what else there was, "row: needs its input split", in candidate order
};
/// Ends at a free choice, a pin, an input or a parameter. A tied or owned parameter starts at its layer. The operand that
/// decides is followed: of several split ones the one nearest to a layer; a whole value is told once, down to the nearest
/// layer that could have done otherwise. Empty when the value or the solution is not of this graph.
std::vector<WhyLink> why(const Problem& problem, const Solution& solution, ValueId value);

enum class WhyNotAnswer : std::uint8_t {
  IsSo,         ///< the solution gives it this placement already
  Impossible,   ///< no rule or form gives it this placement, whatever lies before: `core` has one or two constraints
  Forbidden,    ///< it could have it, but then something else cannot hold: `core` says what
  Costs,        ///< there is a plan with it: `extraFs`, `extraBytes`
  Possible,     ///< there is a plan with it; its cost is not known to be higher (an engine that takes the first solution)
};
struct WhyNot {
  WhyNotAnswer answer = WhyNotAnswer::IsSo;
  std::vector<Sentence> sentences;  ///< the answer, top to bottom
  Core core;
  std::optional<Femtoseconds> extraFs;
  std::optional<std::int64_t> extraBytes;
  std::optional<std::string> pin;   ///< the pin that would demand it, where there is such a plan: "linear_3=S(2)"
};
/// `optimum` may be null (other engines). BadUsage when the placement has no such dimension.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, const Optimum* optimum, ValueId value,
                      const Placement& placement, const Progress& progress = {}, std::int64_t timeLimitMs = 2000);
/// The same for a layer's strategy.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, const Optimum* optimum, NodeId layer,
                      rules::Strategy strategy, const Progress& progress = {}, std::int64_t timeLimitMs = 2000);

/// A smallest set of constraints of a problem without a solution: pins and switched-off rules first, then what they run
/// into. Deletion filter (Chinneck and Dravnieks, "Locating Minimal Infeasible Constraint Sets", 1991).
/// Empty when the problem has a solution.
Result<Core> smallestCore(const Problem& problem, const Progress& progress = {}, std::int64_t timeLimitMs = 2000);

}  // namespace cleave::solve
