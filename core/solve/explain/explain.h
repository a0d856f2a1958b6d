#pragma once
/// Answers about a solution (or the want of one), for any engine: why a value is placed as it is, why not otherwise,
/// which constraints cannot hold together, what would change. Asks the rules and the `learning` engine again; no trace
/// needed.
///
///     for (const WhyLink& link : why(problem, solution, engine, value)) fmt::print("{}\n", plainText(link.sentence));
///     CLEAVE_TRY(const WhyNot answer, whyNot(problem, solution, engine, value, *Placement::parse("S(1)")));
///
/// Pure; run `whyNot` and `irreducibleCore` off the GUI thread: they solve the problem again up to some dozen times,
/// stop at the progress's token, and when the work is done that they may do: the same work on every machine.
#include "solve/explain/core_finder.h"
#include "solve/explain/decision.h"

namespace cleave::solve {

/// One link of the chain from a value back to the choice that decided it.
struct WhyLink {
  NodeId node;
  ValueId value;                          ///< what this link explains
  Sentence sentence;                      ///< "`add_4` is R because both inputs are R: `embedding_0` and `linear_3`."
  bool isFree = false;                    ///< here was a choice: the chain ends
  std::vector<std::string> alternatives;  ///< isFree: what else there was, "row: needs its input split", in candidate
                                          ///< order
};
/// Ends at a free choice, a pin, an input or a parameter. A tied or owned parameter starts at its layer. The operand
/// that decides is followed: of several split ones the one nearest to a layer; a replicated value is told once, down to
/// the nearest layer that could have done otherwise. Empty when the value or the solution is not of this graph.
/// `engine`: whose solution it is (SolveResult::engine); what others fit, only an engine that takes the first plan has
/// refuted.
std::vector<WhyLink> why(const Problem& problem, const Solution& solution, Engine engine, ValueId value);

enum class WhyNotAnswer : std::uint8_t {
  IsSo,        ///< the solution gives it this placement already
  Impossible,  ///< no rule or strategy gives it this placement, whatever lies before: `core` has one or two constraints
  Forbidden,   ///< it could have it, but then something else cannot hold: `core` says what
  Costs,       ///< there is a plan with it, which differs by `extraFs` and `extraBytes`
  Possible,    ///< there is a plan with it; the engine takes the first solution, so cost is not why it was not taken
  NotKnown,    ///< the work ended before it was known
};
struct WhyNot {
  WhyNotAnswer answer = WhyNotAnswer::IsSo;
  std::vector<Sentence> sentences;  ///< the answer, top to bottom
  Core core;
  std::optional<Femtoseconds> extraFs;  ///< of the plan that `pin` gives, against the solution
  std::optional<std::int64_t> extraBytes;
  /// The pin that brings it: it was tried, and the plan with it has what was asked for. "linear_3=S(2)"
  std::optional<std::string> pin;
  /// Impossible here: with these settings and that pin there is a plan that has it. Tried; empty: none was found.
  std::vector<Change> elsewhere;
};
/// `engine`: the user's; what it answers with the pin is what is told. BadUsage when the placement has no such
/// dimension.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, ValueId value,
                      const Placement& placement, const Progress& progress = {}, std::uint64_t units = kDefaultWork);
/// The same for a layer's strategy.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, NodeId layer,
                      rules::Strategy strategy, const Progress& progress = {}, std::uint64_t units = kDefaultWork);

/// Constraints of a problem without a solution that cannot hold together, each needed for that: pins and switched-off
/// rules first, then what they run into, or the budget. Deletion filter (Chinneck and Dravnieks, "Locating Minimal
/// Infeasible Constraint Sets", 1991): irreducible, not the smallest of all such sets.
Result<CoreAnswer> irreducibleCore(const Problem& problem, Engine engine, const Progress& progress = {},
                                   std::uint64_t units = kDefaultWork);

}  // namespace cleave::solve
