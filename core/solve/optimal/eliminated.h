#pragma once
/// The implementation of Optimum over an elimination. eliminated.cpp computes paths and their costs, searches.cpp finds
/// the best plan within limits, and answers.cpp, regrets.cpp and listing.cpp answer questions.
#include "solve/optimal/chain.h"
#include "solve/optimal/optimum.h"

#include <mutex>

namespace cleave::solve::optimal {

/// A problem with derived data. The parts refer to each other, so it never moves.
struct Context {
  explicit Context(const Problem& p) : problem(p), variables(problem), model(problem, variables) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  const Problem problem;
  const Variables variables;
  const CostModel model;
  Pricing pricing() const { return {problem, variables, model}; }
};

/// Byte limits of a plan, and the work limit of its search.
struct Limits {
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  std::int64_t total = kAny;
  std::int64_t additive = kAny;
  std::uint64_t plans = 1000;  ///< limit of plans to check if bounds do not settle a search
  bool isFirst = true;         ///< among equally fast plans, find the first in candidate order
  bool allow(const PlanCost& cost) const { return cost.bytes() <= total && cost.additiveBytes() <= additive; }
};

/// The result of a search for the best plan within limits.
struct Found {
  enum class Ending {
    Plan,
    OverBudget,  ///< plans exist, but the search found no plan within the limits; `path` has few bytes
    NoPlan,      ///< no plan exists, even without a budget
    Stopped,
  } ending = Ending::Stopped;
  Path path;
  std::optional<Solution> solution;  ///< solution of `path`, if already computed
  PlanCost cost;
  bool isProved = true;  ///< it is proved that the plan is the best, or that no plan fits the limits
  Wide lowerBoundFs = 0;
  std::uint64_t plansChecked = 0;  ///< number of plans whose transient peak was computed
};

class Eliminated final : public Optimum {
 public:
  Eliminated(std::shared_ptr<const Context> context, Elimination elimination);
  /// Finds the plan. Call it before all other functions.
  const Found& find(const Progress& progress);

  const Context& context() const { return *m_context; }
  const Elimination& elimination() const { return m_elimination; }
  Solution solutionOf(const Path& path) const;
  const Solution& solution() const { return m_solution; }  ///< of the plan found
  /// The limit of a search for a plan within the budget, as text: "1000 plans", "20000 states of a step".
  std::string limitText() const;
  /// The choice of a path at a place.
  const PricedChoice& choiceAt(const Path& path, std::size_t place) const;

  const PlanCost& cost() const override { return m_found.cost; }
  const PlanCost& fastest() const override { return m_fastest.cost; }
  bool isProved() const override { return m_found.isProved; }
  Femtoseconds lowerBoundFs() const override { return m_found.lowerBoundFs; }
  const EliminationStats& stats() const override { return m_stats; }
  std::optional<Certificate> certificate(const Progress& progress) const override;
  Result<std::vector<Regret>> regrets(ValueId value, const Progress& progress) const override;
  std::vector<SmallestRegret> smallestRegrets(std::span<const NodeId> nodes, const Progress& progress) const override;
  std::vector<std::optional<Femtoseconds>> leastTimes(const IsWanted& isWanted) const override;
  bool knowsAllPlans() const override { return !m_elimination.droppedFs; }
  Result<Front> front(const Progress& progress) const override;
  Result<Solution> planAt(const ParetoPoint& point, const Progress& progress) const override;
  Result<Listing> best(std::size_t k, const OnListed& onListed, const Progress& progress) const override;

 private:
  /// The fastest plan within the limits.
  Found fastestWithin(const Restriction& restriction, Limits limits, const Progress& progress) const;
  Found fastestOnChain(const Restriction& restriction, Limits limits, const Progress& progress) const;
  void chooseFirst(const Restriction& restriction, const Limits& limits, Found& found, const Progress& progress) const;
  bool checkInOrder(const Restriction& restriction, Limits limits, Found& found, const Progress& progress) const;
  /// The plan that the slack allows instead of `fastest`.
  Found withSlack(const Restriction& restriction, const Limits& within, const Found& fastest,
                  const Progress& progress) const;
  /// If no plan fits, replaces the plan with few bytes by the smallest plan. False if cancelled.
  bool findSmallest(Found& found, const Progress& progress) const;
  bool findSmallerOnChain(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                          const Progress& progress) const;
  bool findSmallerInOrder(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                          const Progress& progress) const;
  /// The chain of transitions that alone need less than `peakLimit`. nullopt if cancelled.
  std::optional<Chain> chainOf(const Restriction& restriction, std::int64_t peakLimit, const Progress& progress) const;
  void countDropped(Found& found) const;
  /// Calls `visit(place, transition, candidate)` for each place.
  template <class Visit>
  void forEachChoice(const Path& path, Visit visit) const;
  /// CostModel::evaluate of `solutionOf(path)`, summed from the costs of the transitions.
  PlanCost priceOf(const Path& path, const Solution& solution) const;
  PlanCost priceOf(const Path& path) const { return priceOf(path, solutionOf(path)); }
  Limits limits() const { return {.total = budget()}; }
  /// Search limit of one answer. It is a count, so that the answer does not depend on the load of the machine.
  static constexpr std::size_t kMostSearches = 300;
  /// Limits for one of many searches: each checks few plans, unless the model is small.
  Limits forOneOfMany(Limits limits) const {
    constexpr std::uint64_t kFewPlans = 20;
    constexpr std::size_t kFewPlaces = 200;
    if (m_elimination.places() > kFewPlaces) limits.plans = kFewPlans;
    return limits;
  }
  /// The fastest plan within the limits and the restriction, as one of many searches. Only its time matters.
  Found fastestOfMany(const Restriction& restriction, const Limits& within, const Progress& progress) const {
    Limits limits = forOneOfMany(within);
    limits.isFirst = false;
    return fastestWithin(restriction, limits, progress);
  }
  /// The same for plans whose candidate at `place` differs from that of `path`.
  Found fastestWithOther(const Path& path, std::size_t place, const Limits& within, const Progress& progress) const;
  /// The fastest plan found without a restriction. If it is not proved, the search continues with plans that differ in
  /// one layer. It ends when none of them is faster or no search is left.
  Found bestWithin(const Limits& within, std::size_t& searchesLeft, const Progress& progress) const;
  /// The continuation in `bestWithin`. False if cancelled.
  bool improve(const Limits& within, std::size_t& searchesLeft, Found& found, const Progress& progress) const;
  struct OtherChoices;
  class Lister;
  SmallestRegret smallestAt(std::size_t place, OtherChoices& others, const Progress& progress) const;
  /// True if the plan stays within the limits after swapping the stretches of two exchangeable places.
  bool fitsSwapped(const OtherChoices& others, Found& found, std::size_t a, std::size_t b) const;
  /// Replaces the choice at `place` in the solution.
  void applyAt(std::size_t place, const Choice& choice, Solution& solution) const;
  std::int64_t budget() const { return m_context->problem.cost.budgetBytes(); }
  /// Computed at the first use; null if cancelled.
  const Chain* chain(const Progress& progress) const;
  std::optional<std::size_t> placeOf(NodeId node) const;

  std::shared_ptr<const Context> m_context;
  Elimination m_elimination;
  Found m_fastest, m_found;
  Solution m_solution;
  EliminationStats m_stats;
  std::vector<std::uint32_t> m_placeOf;  ///< by NodeId, plus one; 0: fixed or not a step
  mutable std::mutex m_chainMutex;
  mutable std::optional<Chain> m_chain;
};

}  // namespace cleave::solve::optimal
