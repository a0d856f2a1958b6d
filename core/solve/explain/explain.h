#pragma once
/// Explains a solution, or why there is no solution, for any engine: why a value has its placement, why it does not
/// have another one, which constraints conflict, and what would change. It applies the rules and the `learning` engine
/// again and needs no trace.
///
///     for (const WhyLink& link : why(problem, solution, engine, value)) fmt::print("{}\n", plainText(link.sentence));
///     CLEAVE_TRY(const WhyNot answer, whyNot(problem, solution, engine, value, *Placement::parse("S(1)")));
///
///
/// The functions are pure. Run `whyNot` and `irreducibleCore` off the GUI thread: they solve the problem up to a few
/// dozen times. They stop at the progress's token, or when their work limit is spent, which is the same on every
/// machine.
#include "solve/explain/core_finder.h"
#include "solve/explain/sentences.h"

namespace cleave::solve {

/// One link of the chain from a value back to the choice that decided it.
struct WhyLink {
  NodeId node;
  ValueId value;                          ///< the explained value
  Sentence sentence;                      ///< "`add_4` is R because both inputs are R: `embedding_0` and `linear_3`."
  bool isFree = false;                    ///< the node had a choice, so the chain ends here
  std::vector<std::string> alternatives;  ///< isFree: the other candidates in their order, "row: needs its input split"
};
/// The chain ends at a free choice, a pin, an input or a parameter. A tied or owned parameter starts at its layer. The
/// chain follows the operand that decides: among several split operands, the one nearest to a layer. A replicated value
/// is one link, down to the nearest layer with another choice. The chain is empty if the value or the solution is not
/// of this graph. `engine`: SolveResult::engine. Only an engine that returns the first plan has refuted the other
/// candidates that fit.
std::vector<WhyLink> why(const Problem& problem, const Solution& solution, Engine engine, ValueId value);

enum class WhyNotAnswer : std::uint8_t {
  IsSo,        ///< the solution already has this placement
  Impossible,  ///< no rule or strategy gives this placement, whatever its inputs are: `core` has one or two constraints
  Forbidden,   ///< the placement is possible alone but conflicts with the constraints in `core`
  Costs,       ///< a plan with it exists and differs by `extraFs` and `extraBytes`
  Possible,    ///< a plan with it exists; the engine returns the first solution, so cost is not the reason
  NotKnown,    ///< the work limit was reached first
};
struct WhyNot {
  WhyNotAnswer answer = WhyNotAnswer::IsSo;
  std::vector<Sentence> sentences;  ///< the answer, top to bottom
  Core core;
  std::optional<Femtoseconds> extraFs;  ///< time of the plan with `pin` minus time of the solution
  std::optional<std::int64_t> extraBytes;
  /// The pin that gives the requested placement, such as "linear_3=S(2)". It was tried, and its plan has the placement.
  std::optional<std::string> pin;
  /// Impossible: settings that, together with that pin, have a plan with the placement. They were tried. Empty: not
  /// found.
  std::vector<Change> elsewhere;
};
/// `engine`: the user's engine, which solves with the pin. BadUsage if the value lacks the dimension of the placement.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, ValueId value,
                      const Placement& placement, const Progress& progress = {}, std::uint64_t units = kDefaultWork);
/// The same for a layer's strategy.
Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, NodeId layer,
                      rules::Strategy strategy, const Progress& progress = {}, std::uint64_t units = kDefaultWork);

/// A set of conflicting constraints of a problem without a solution; without any one of them the others can hold. Pins
/// and switched-off rules come first, then the rules and sizes they conflict with, or the budget. A deletion filter
/// finds the set (Chinneck and Dravnieks, "Locating Minimal Infeasible Constraint Sets", 1991). It is irreducible, but
/// smaller sets may exist.
Result<CoreAnswer> irreducibleCore(const Problem& problem, Engine engine, const Progress& progress = {},
                                   std::uint64_t units = kDefaultWork);

}  // namespace cleave::solve
