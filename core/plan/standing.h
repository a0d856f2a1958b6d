#pragma once
// clang-format off
/// Why a part of a plan is replicated: three answers, each of which asks the user for something else.
///
///   Cannot       no plan splits it, whatever candidate set, sequence parallelism and demands are: other ranks or
///                another model would. Where plans that gather or cut values (Problem::redistributable) split it, it is
///                "without redistribution"
///   DoesNotPay   plans split it, and cost more than this one: they are slower than the slack admits, or hold no less
///   NotAskedFor  a setting of the user's leaves out the plans that split it: change that setting
///
/// The one place where this is decided; layer reasons, warnings, verdicts on world sizes and what the command line and
/// the window say read it from here. Decided by solving: `Optimum::leastTimes` knows for all nodes at once whether any
/// plan splits them.
///
///     Standings standings(problem, solution, engine, optimum.get());
///     if (const auto* cannot = std::get_if<Cannot>(&standings.weight(layer))) fmt::print("{}\n", cannot->why);
// clang-format on
#include "graph/attention.h"
#include "solve/engine.h"
#include "solve/explain/change.h"

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace cleave::plan {

/// It is split.
struct Split {
  bool operator==(const Split&) const = default;
};
struct Cannot {
  std::string why;  ///< a clause with the numbers, without a full stop
  /// A plan that redistributes values splits it, or whether one does is not known.
  bool isUnlessRedistributed = false;
  std::vector<solve::Change> withThat;  ///< what else that plan needs
  bool operator==(const Cannot&) const = default;
};
struct DoesNotPay {
  Femtoseconds extraFs;  ///< what the fastest plan that splits it takes longer a step, budget or not; negative: it is
                         ///< faster
  std::int64_t extraBytes = 0;  ///< what a rank needs more in the one of those that are fast enough which holds least
                                ///< for the whole step; 0 where that was not asked
  bool isFastEnough = false;    ///< the slack admits that time: it was left out because no such plan holds less
  bool isOverBudget = false;    ///< plans that split it and take as little time need more than the memory budget
  bool isProved = true;  ///< false: of the plans that are fast enough and keep to the budget not all were looked at
  bool operator==(const DoesNotPay&) const = default;
};
/// Whether a plan that was searched for without regard to the memory budget keeps to it.
enum class BudgetFit : std::uint8_t { Fits, Over, NotKnown };
struct NotAskedFor {
  std::vector<solve::Change> changes;  ///< with all of these a plan splits it; empty: the engine takes the first plan
                                       ///< it finds
  Femtoseconds extraFs;  ///< what the fastest such plan takes longer than this one, budget or not; negative: it is
                         ///< faster
  std::string why;       ///< what holds it whole here, a clause; may be empty
  BudgetFit fit = BudgetFit::NotKnown;  ///< of that fastest plan
  /// Where that is over the budget: what the fastest such plan within it takes longer than this one; nullopt: not
  /// known, or there is none.
  std::optional<Femtoseconds> extraWithinFs = {};
  bool isOfOptimal = false;  ///< the engine of this plan would not find that fastest one: `optimal` does
  bool operator==(const NotAskedFor&) const = default;
};
/// The search for an answer ended at its limits.
struct NotKnown {
  bool operator==(const NotKnown&) const = default;
};
using Standing = std::variant<Split, Cannot, DoesNotPay, NotAskedFor, NotKnown>;

/// "split", "cannot", "does_not_pay", "not_asked_for", "not_known": in files.
std::string_view kindOf(const Standing& standing);
/// A clause without a full stop, to follow a name: "cannot be split: 28 heads do not divide by 8 ranks".
std::string toText(const Standing& standing);

/// "cannot be split", "cannot be split without redistribution, and then only with the full candidate set".
std::string cannotText(const Cannot& cannot);
/// "with the full candidate set, without the pin lm_head=row": all of them together.
std::string changesText(const std::vector<solve::Change>& changes);
/// "28 heads do not divide by 8 ranks", "4 KV heads do not divide by 8 ranks"; empty: they do.
std::string headsText(const graph::Heads& heads, int ranks);
/// KV heads that do not divide hold nothing up: ranks have copies of them.
bool sharesKvHeads(const graph::Heads& heads, const rules::StrategyContext& context);

/// True when no rank holds all of the layer's weight, or (a loss) all of its logits.
bool splitsWeight(const solve::Choice& choice, int ranks);
/// True when no rank computes all of it.
bool splitsWork(const solve::Choice& choice, int ranks);

/// Of one solution. Solves again, once for each setting that may be the cause, when the first answer needs it; once
/// cancelled, what would need that is NotKnown. One thread; what it is made of must outlive it.
class Standings {
 public:
  /// `optimum` may be null: another engine, or a plan from elsewhere.
  Standings(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
            const solve::Optimum* optimum, const Progress& progress = {});
  ~Standings();

  /// Of a layer's weight; of a loss's logits.
  Standing weight(graph::NodeId layer);
  /// Of what any call computes.
  Standing work(graph::NodeId node);

 private:
  class Search;
  std::unique_ptr<Search> m_search;
};

}  // namespace cleave::plan
