#pragma once
/// The cheapest plan, proved, and what else the elimination knows: what every other choice would have cost, the trade of time
/// against memory, and the next best plans.
///
/// Dynamic programming over the graph's frontier: steps are taken in a topological order that keeps few values live; a
/// state says how the live values lie; for each state the cheapest way to reach it (forward) and to finish from it
/// (backward) is exact (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972). Repeated blocks share their states and
/// transitions, never their costs' sums, so that folding changes nothing. Ties fall to candidate order, the step that is taken first deciding first.
///
/// Immutable and thread-safe once made; `solve(…, Engine::Optimal, …)` hands it out in SolveResult::optimum.
#include "solve/cost/cost_model.h"

#include <limits>
#include <span>

namespace cleave::solve {

/// One placement that a value (or one strategy that a layer) could have, and what the best plan with it costs more.
struct Regret {
  Placement placement;                                ///< of the value
  std::optional<rules::Strategy> strategy;            ///< of its layer, where the value is a layer's result
  bool isChosen = false;
  /// Cost of the best plan that takes this, within the budget, minus the best plan's; nullopt: no plan takes it.
  std::optional<std::int64_t> extraFs;
  std::optional<std::int64_t> extraBytes;             ///< of that plan (negative: it holds less)
};

/// A plan that no other beats in both time and memory (additive bytes).
struct ParetoPoint {
  std::int64_t femtoseconds = 0;
  std::int64_t bytes = 0;
};

/// Sizes of the elimination, for benchmarks and the curious.
struct EliminationStats {
  std::uint64_t steps = 0, foldedSteps = 0;  ///< folded: steps that reuse an equal block's transitions
  std::uint64_t states = 0, transitions = 0; ///< distinct, kept in memory
  std::uint64_t widest = 0;                  ///< most states at one place
  std::uint64_t memoryBytes = 0;
  std::uint64_t plansChecked = 0;            ///< whose transient peak was computed
};

class Optimum {
 public:
  virtual ~Optimum() = default;
  virtual const PlanCost& cost() const = 0;
  /// False when the search for a plan within the budget ended at its limit (1,000 plans or 1 s), or states had to be dropped.
  virtual bool isProved() const = 0;
  /// No plan is faster than this; equals cost().femtoseconds() when proved.
  virtual std::int64_t lowerBoundFs() const = 0;
  virtual const EliminationStats& stats() const = 0;

  /// Of every strategy that any plan gives the layer, or every placement that any plan gives the value's node; in candidate order.
  /// The budget counts with the additive bytes and the transient peak, as for the plan itself.
  virtual Result<std::vector<Regret>> regrets(ValueId value, const Progress& progress = {}) const = 0;
  /// By NodeId of steps: the smallest extra cost of leaving the chosen candidate without a budget; nullopt: there is no
  /// other. One sweep for all.
  virtual std::vector<std::optional<std::int64_t>> smallestRegrets() const = 0;

  /// The whole front by falling time, first the fastest plan; the budget does not cut it. `isExact` false: thinned to
  /// `worstGap` (relative) because it has too many points.
  struct Front {
    std::vector<ParetoPoint> points;
    bool isExact = true;
    double worstGap = 0;
  };
  virtual Result<Front> front(const Progress& progress = {}) const = 0;
  /// The plan at a point of the front.
  virtual Result<Solution> planAt(const ParetoPoint& point, const Progress& progress = {}) const = 0;

  /// The k cheapest distinct plans within the budget, cheapest first; fewer when there are no more.
  virtual Result<std::vector<Solution>> best(std::size_t k, const Progress& progress = {}) const = 0;
};

}  // namespace cleave::solve
