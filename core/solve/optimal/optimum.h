#pragma once
/// The cheapest plan, proved, and what else the elimination knows: what every other choice would have cost, the trade
/// of time against memory, and the next best plans.
///
/// Dynamic programming over the graph's frontier: steps are taken in a topological order that keeps few values live; a
/// state says how the live values are placed; for each state the cheapest way to reach it (forward) and to finish from
/// it (backward) is exact (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972). Repeated blocks share their
/// states and transitions, never their costs' sums, so that folding changes nothing. Ties fall to candidate order, the
/// step that is taken first deciding first.
///
/// The *fastest* plan is that of all plans within the budget. The *plan* is the one that holds the fewest bytes that
/// stay (PlanCost::additiveBytes) among those that take at most CostSettings::slackPercent longer than the fastest and
/// need no more bytes in all than it does; the fastest of these. Without slack both are one.
///
/// Immutable and thread-safe once made; `solve(…, Engine::Optimal, …)` hands it out in SolveResult::optimum.
#include "base/progress.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/strategy_text.h"
#include "solve/proof/certificate.h"

#include <functional>
#include <limits>
#include <span>

namespace cleave::solve {

/// One placement that a value (or one strategy that a layer) could have, and what the plan with it costs more: the one
/// that is answered when it is demanded, by the same budget and slack. With slack that plan may be the faster one; it
/// then holds more.
struct Regret {
  Placement placement;                      ///< of the value
  std::optional<rules::Strategy> strategy;  ///< of its layer, where the value is a layer's result
  bool isCopied = false;                    ///< that strategy comes to a copy of all of the weight on every rank
  bool isChosen = false;
  /// Cost of the plan that takes this minus the plan's; nullopt: there are plans that take it, but none within the
  /// budget.
  std::optional<Femtoseconds> extraFs;
  std::optional<std::int64_t> extraBytes;  ///< of that plan (negative: it holds less)
  /// False when the search ended at its limit: there may be a better plan that takes this, or, without `extraFs`, one
  /// at all.
  bool isProved = true;
  /// `extraFs` of the fastest plan within the budget that takes this, which slack may have passed over for one that
  /// holds less.
  std::optional<Femtoseconds> fastestExtraFs;

  /// What it is called: "column", "column, copied", "S(2)".
  std::string name() const { return strategy ? strategyText(*strategy, isCopied) : placement.text(); }
  /// What to ask for, or to pin, to have it: a copy goes by its placement, as its strategy's name means what is split.
  std::string demand() const {
    return strategy && !isCopied ? std::string(rules::toText(*strategy)) : placement.text();
  }
};

/// What it costs at least to treat a step otherwise than the plan does.
struct SmallestRegret {
  enum class Kind : std::uint8_t {
    NoOther,     ///< nothing else is possible
    Costs,       ///< `extra`
    OverBudget,  ///< every plan that treats it otherwise needs more than the budget
    NotKnown,    ///< the search ended at its limit, or was cancelled, before it could tell
  } kind = Kind::NoOther;
  /// Time of the fastest plan within the budget that treats it otherwise, less that of the fastest plan within the
  /// budget. With slack it may be 0: the fastest plan treats it otherwise, and holds more.
  Femtoseconds extra;
  /// The same against the plan itself, as Regret::fastestExtraFs.
  Femtoseconds extraOver(const PlanCost& fastest, const PlanCost& plan) const {
    return extra + fastest.femtoseconds() - plan.femtoseconds();
  }
  bool operator==(const SmallestRegret&) const = default;
};

/// A plan that no other beats in both time and memory: without slack, and with its bytes as the budget, it is the plan.
struct ParetoPoint {
  Femtoseconds femtoseconds;
  std::int64_t bytes = 0;          ///< of a rank, PlanCost::bytes
  std::int64_t transientPeak = 0;  ///< of `bytes`
  bool operator==(const ParetoPoint&) const = default;
};

/// Sizes of the elimination, for benchmarks and the curious.
struct EliminationStats {
  std::uint64_t steps = 0, foldedSteps = 0;   ///< folded: steps that reuse an equal block's transitions
  std::uint64_t states = 0, transitions = 0;  ///< distinct, kept in memory
  std::uint64_t widest = 0;                   ///< most states at one place
  std::uint64_t memoryBytes = 0;
  std::uint64_t plansChecked = 0;  ///< whose transient peak was computed
};

class Optimum {
 public:
  virtual ~Optimum() = default;
  virtual const PlanCost& cost() const = 0;     ///< of the plan
  virtual const PlanCost& fastest() const = 0;  ///< of the fastest plan within the budget
  /// No plan within the budget is faster than the fastest, and none that the slack admits holds less than the plan.
  /// False when a search ended at its limit (so many plans and transitions looked at, never by the clock), or states
  /// had to be dropped.
  virtual bool isProved() const = 0;
  /// No plan is faster than this; equals fastest().femtoseconds() when proved.
  virtual Femtoseconds lowerBoundFs() const = 0;
  virtual const EliminationStats& stats() const = 0;
  /// The least that the rest of a plan costs from each state, as a proof that `solve::verify` checks. nullopt: states
  /// had to be dropped for want of room, or it was cancelled.
  virtual std::optional<Certificate> certificate(const Progress& progress = {}) const = 0;

  /// Of every strategy that any plan gives the layer, or every placement that any plan gives the value's node; in
  /// candidate order. The budget counts with the additive bytes and the transient peak, as for the plan itself.
  virtual Result<std::vector<Regret>> regrets(ValueId value, const Progress& progress = {}) const = 0;
  /// Of steps, in their order, each exact. Where the budget has a say, steps of equal blocks that are treated alike
  /// share one search; beyond so many searches the rest is NotKnown.
  virtual std::vector<SmallestRegret> smallestRegrets(std::span<const NodeId> nodes,
                                                      const Progress& progress = {}) const = 0;

  /// By NodeId of steps, budget or not: the least time of all plans in which the step takes a choice that `isWanted`;
  /// nullopt: no plan does (or, unless `knowsAllPlans`, none is known). Steps that have the same answer in every plan
  /// are not asked. One sweep for all.
  using IsWanted = std::function<bool(NodeId, const Choice&)>;
  virtual std::vector<std::optional<Femtoseconds>> leastTimes(const IsWanted& isWanted) const = 0;
  /// False when states had to be dropped for want of room.
  virtual bool knowsAllPlans() const = 0;

  /// The whole front by rising time, first the fastest plan; the budget does not cut it. `isExact` false: thinned,
  /// because it has too many points; no plan left out is faster than the next smaller one here by more than `worstGap`
  /// (of that one's time). `isEndKnown` false: whether a plan needs less than the last point was not found out.
  struct Front {
    std::vector<ParetoPoint> points;
    bool isExact = true;
    bool isEndKnown = true;
    double worstGap = 0;
  };
  virtual Result<Front> front(const Progress& progress = {}) const = 0;
  /// The plan at a point of the front.
  virtual Result<Solution> planAt(const ParetoPoint& point, const Progress& progress = {}) const = 0;

  /// The plan, then the k - 1 next best ones within the budget that differ from it and from each other in the strategy
  /// that some layer comes to (effectiveStrategy), or in what is redistributed: of those that differ in neither only
  /// the fastest. Behind the plan by rising time; with slack these may be faster than the plan, and then hold more.
  struct Listed {
    Solution solution;
    PlanCost cost;
    /// At least so many plans more within the budget take as long, hold as much and differ in neither.
    std::size_t alike = 0;
    ValueId differing;  ///< a value that the first of these places otherwise
  };
  struct Listing {
    std::size_t plans = 0;
    bool isProved = true;  ///< false: the search ended at its limit; others may be faster, or be missing
  };
  using OnListed = std::function<Result<void>(Listed)>;
  /// Fewer when there are no more. What `onListed` fails with ends it.
  virtual Result<Listing> best(std::size_t k, const OnListed& onListed, const Progress& progress = {}) const = 0;
};

/// "7 plans that no other beats in both time and memory.", and what is not known of them.
std::string toText(const Optimum::Front& front);

}  // namespace cleave::solve
