#pragma once
/// The cheapest plan with a proof, and other results of the elimination: the cost of every other choice, the Pareto
/// front of time and memory, and the next best plans.
///
/// The method is dynamic programming over the graph's frontier. Steps have a topological order that keeps few values
/// live. A state has the placements of the live values. For each state, the cheapest ways to reach it (forward) and to
/// finish from it (backward) are exact (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972). Repeated blocks
/// share their states and transitions, but not their sums of costs, so folding does not change results. Ties are broken
/// by candidate order, the first step first.
///
/// The *fastest* plan is the fastest of all plans within the budget. The *plan* has the fewest additive bytes
/// (PlanCost::additiveBytes) among the plans that are at most CostSettings::slackPercent slower than the fastest and do
/// not need more bytes in total. Among equals it is the fastest. Without slack both are the same plan.
///
/// Immutable and thread-safe. `solve(…, Engine::Optimal, …)` returns it in SolveResult::optimum.
#include "base/progress.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/strategy_text.h"
#include "solve/proof/certificate.h"

#include <functional>
#include <limits>
#include <span>

namespace cleave::solve {

/// A possible placement of a value, or strategy of a layer, and the extra cost of its plan. Its plan is the one that
/// the engine returns for a pin on it, with the same budget and slack. With slack that plan may be faster; then it
/// needs more memory.
struct Regret {
  Placement placement;                      ///< of the value
  std::optional<rules::Strategy> strategy;  ///< strategy of the layer, if the value is a layer's result
  bool isCopied = false;                    ///< every rank has a full copy of the weight with that strategy
  bool isChosen = false;
  /// Time of the plan with this placement minus time of the plan; nullopt if all plans with it exceed the budget.
  std::optional<Femtoseconds> extraFs;
  std::optional<std::int64_t> extraBytes;  ///< the same for bytes; negative if that plan needs less
  /// False if the search reached its limit. A better plan with this placement may then exist or, without `extraFs`, a
  /// plan within the budget.
  bool isProved = true;
  /// `extraFs` of the fastest plan with this placement within the budget. Slack may prefer another plan that needs less
  /// memory.
  std::optional<Femtoseconds> fastestExtraFs;

  /// "column", "replicated (column, copied)", "S(2)".
  std::string name() const { return strategy ? strategyText(*strategy, isCopied) : placement.text(); }
  /// The text of a pin that demands it. A copy needs a pin on its placement, because its strategy's name means a split.
  std::string demand() const {
    return strategy && !isCopied ? std::string(rules::toText(*strategy)) : placement.text();
  }
};

/// The minimum extra cost of another choice for a step.
struct SmallestRegret {
  enum class Kind : std::uint8_t {
    NoOther,     ///< no other choice is possible
    Costs,       ///< the extra time is `extra`
    OverBudget,  ///< every plan with another choice exceeds the budget
    NotKnown,    ///< the search reached its limit or was cancelled
  } kind = Kind::NoOther;
  /// Time of the fastest plan with another choice minus time of the fastest plan, both within the budget. With slack it
  /// may be 0, because the fastest plan may have another choice and need more memory.
  Femtoseconds extra;
  /// The same relative to the plan itself, as Regret::fastestExtraFs.
  Femtoseconds extraOver(const PlanCost& fastest, const PlanCost& plan) const {
    return extra + fastest.femtoseconds() - plan.femtoseconds();
  }
  bool operator==(const SmallestRegret&) const = default;
};

/// A plan on the Pareto front of time and memory. The engine returns it for its bytes as the budget and no slack.
struct ParetoPoint {
  Femtoseconds femtoseconds;
  std::int64_t bytes = 0;          ///< per rank, PlanCost::bytes
  std::int64_t transientPeak = 0;  ///< of `bytes`
  bool operator==(const ParetoPoint&) const = default;
};

/// Sizes of the elimination, for benchmarks.
struct EliminationStats {
  std::uint64_t steps = 0, foldedSteps = 0;   ///< folded: steps that reuse an equal block's transitions
  std::uint64_t states = 0, transitions = 0;  ///< distinct, kept in memory
  std::uint64_t widest = 0;                   ///< most states at one place
  std::uint64_t memoryBytes = 0;
  std::uint64_t plansChecked = 0;  ///< number of plans whose transient peak was computed
};

class Optimum {
 public:
  virtual ~Optimum() = default;
  virtual const PlanCost& cost() const = 0;     ///< of the plan
  virtual const PlanCost& fastest() const = 0;  ///< of the fastest plan within the budget
  /// True if it is proved that no plan within the budget is faster than the fastest, and that no plan within the slack
  /// needs less memory than the plan. False if a search reached its limit (a number of plans and transitions, not a
  /// time), or if states were dropped.
  virtual bool isProved() const = 0;
  /// Lower bound of the time of every plan within the budget; fastest().femtoseconds() if proved.
  virtual Femtoseconds lowerBoundFs() const = 0;
  virtual const EliminationStats& stats() const = 0;
  /// The proof that `solve::verify` checks: the minimum cost of the rest of a plan from each state. nullopt if states
  /// were dropped for lack of memory, or if cancelled.
  virtual std::optional<Certificate> certificate(const Progress& progress = {}) const = 0;

  /// The regret of every strategy of the layer, or every placement of the value, that any plan has. They are in
  /// candidate order. The budget limits additive bytes plus the transient peak, as for the plan itself.
  virtual Result<std::vector<Regret>> regrets(ValueId value, const Progress& progress = {}) const = 0;
  /// The exact smallest regrets of steps, in the order of `nodes`. If the budget matters, equal steps with equal
  /// choices share one search. The number of searches is limited; steps beyond the limit are NotKnown.
  virtual std::vector<SmallestRegret> smallestRegrets(std::span<const NodeId> nodes,
                                                      const Progress& progress = {}) const = 0;

  /// By NodeId of steps: the least time of the plans in which `isWanted` is true for the step's choice, regardless of
  /// the budget. nullopt if no such plan exists or, unless `knowsAllPlans`, if no such plan is known. Fixed steps are
  /// not evaluated. One sweep computes all.
  using IsWanted = std::function<bool(NodeId, const Choice&)>;
  virtual std::vector<std::optional<Femtoseconds>> leastTimes(const IsWanted& isWanted) const = 0;
  /// False if states were dropped for lack of memory.
  virtual bool knowsAllPlans() const = 0;

  /// The full Pareto front by rising time, regardless of the budget. `isExact` is false if points were dropped because
  /// there were too many. A missing plan is then at most `worstGap` faster than the next smaller plan here, as a
  /// fraction of the latter's time. `isEndKnown` is true if it is proved that no plan needs less than the last point.
  struct Front {
    std::vector<ParetoPoint> points;
    bool isExact = true;
    bool isEndKnown = true;
    double worstGap = 0;
  };
  virtual Result<Front> front(const Progress& progress = {}) const = 0;
  /// The plan at a point of the front.
  virtual Result<Solution> planAt(const ParetoPoint& point, const Progress& progress = {}) const = 0;

  /// The plan, then the k - 1 next best plans within the budget by rising time. Listed plans differ in the effective
  /// strategy of a layer (effectiveStrategy) or in redistributed values. Among plans that do not, only the fastest is
  /// listed. With slack, later plans may be faster than the first; then they need more memory.
  struct Listed {
    Solution solution;
    PlanCost cost;
    /// Number of other plans with equal time, bytes, strategies and redistributions; more may exist.
    std::size_t alike = 0;
    ValueId differing;  ///< a value whose placement differs in the first of these plans
  };
  struct Listing {
    std::size_t plans = 0;
    bool isProved = true;  ///< false if the search reached its limit, so better plans may be missing
  };
  using OnListed = std::function<Result<void>(Listed)>;
  /// Lists fewer than `k` plans if there are no more. An error of `onListed` ends the listing.
  virtual Result<Listing> best(std::size_t k, const OnListed& onListed, const Progress& progress = {}) const = 0;
};

/// "7 plans are on the Pareto front of time and memory.", and what is not known about the front.
std::string toText(const Optimum::Front& front);

}  // namespace cleave::solve
