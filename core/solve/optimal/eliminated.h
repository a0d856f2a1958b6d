#pragma once
/// The answers of an elimination: the plan itself, and everything that optimum.h promises. eliminated.cpp knows paths
/// and their prices, searches.cpp finds the best within limits, answers.cpp, regrets.cpp and listing.cpp answer
/// questions.
#include "solve/optimal/chain.h"
#include "solve/optimal/optimum.h"

#include <mutex>

namespace cleave::solve::optimal {

/// A problem with what is derived from it; the parts refer to each other, so it never moves.
struct Context {
  explicit Context(const Problem& p) : problem(p), variables(problem), model(problem, variables) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  const Problem problem;
  const Variables variables;
  const CostModel model;
  Pricing pricing() const { return {problem, variables, model}; }
};

/// Bytes that a plan may need, and the effort that it is worth.
struct Limits {
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  std::int64_t total = kAny;
  std::int64_t additive = kAny;
  std::uint64_t plans = 1000;  ///< most that are looked through where bounds do not settle a search
  bool isFirst = true;         ///< of equally fast plans the first in candidate order is wanted
  bool hold(const PlanCost& cost) const { return cost.bytes() <= total && cost.additiveBytes() <= additive; }
};

/// What a search for the best plan within limits found.
struct Found {
  enum class Ending {
    Plan,
    OverBudget,  ///< there are plans, but none was found within the limits; `path` is one of few bytes
    NoPlan,      ///< not even without a budget
    Stopped,
  } ending = Ending::Stopped;
  Path path;
  std::optional<Solution> solution;  ///< of `path`, where it was made on the way
  PlanCost cost;
  bool isProved = true;  ///< nothing was left out: the best plan, or truly none within the limits
  Wide lowerBoundFs = 0;
  std::uint64_t plansChecked = 0;  ///< whose transient peak was computed
};

class Eliminated final : public Optimum {
 public:
  Eliminated(std::shared_ptr<const Context> context, Elimination elimination);
  /// Finds the plan; before anything else is asked.
  const Found& find(const Progress& progress);

  const Context& context() const { return *m_context; }
  const Elimination& elimination() const { return m_elimination; }
  Solution solutionOf(const Path& path) const;
  const Solution& solution() const { return m_solution; }  ///< of what was found
  /// What a search for a plan within the budget ends at: "1000 plans", "20000 states of a step".
  std::string limitText() const;
  /// What a path takes at a place.
  const PricedChoice& takenAt(const Path& path, std::size_t place) const;

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
  void takeFirst(const Restriction& restriction, const Limits& limits, Found& found, const Progress& progress) const;
  bool lookThrough(const Restriction& restriction, Limits limits, Found& found, const Progress& progress) const;
  /// The plan that the slack admits instead of `fastest`.
  Found withSlack(const Restriction& restriction, const Limits& within, const Found& fastest,
                  const Progress& progress) const;
  /// Where nothing fits: the smallest plan instead of the one of few bytes. False when cancelled.
  bool findSmallest(Found& found, const Progress& progress) const;
  bool findLeanest(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                   const Progress& progress) const;
  bool lookForLeaner(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                     const Progress& progress) const;
  /// Of the transitions that alone need less than `peakLimit`. nullopt when cancelled.
  std::optional<Chain> chainOf(const Restriction& restriction, std::int64_t peakLimit, const Progress& progress) const;
  void countDropped(Found& found) const;
  /// Calls `visit(place, transition, candidate)` for each place.
  template <class Visit>
  void forEachTaken(const Path& path, Visit visit) const;
  /// CostModel::evaluate of `solutionOf(path)`, added up from what the transitions cost.
  PlanCost priceOf(const Path& path, const Solution& solution) const;
  PlanCost priceOf(const Path& path) const { return priceOf(path, solutionOf(path)); }
  Limits limits() const { return {.total = budget()}; }
  /// For one answer. Counted, so that it does not depend on how busy the machine is.
  static constexpr std::size_t kMostSearches = 300;
  /// Where many searches are made, each looks through few plans, unless the model is small.
  Limits forOneOfMany(Limits limits) const {
    constexpr std::uint64_t kFewPlans = 20;
    constexpr std::size_t kFewPlaces = 200;
    if (m_elimination.places() > kFewPlaces) limits.plans = kFewPlans;
    return limits;
  }
  /// The fastest plan within the limits that the restriction leaves, as one search of many: only its time counts.
  Found fastestOfMany(const Restriction& restriction, const Limits& within, const Progress& progress) const {
    Limits limits = forOneOfMany(within);
    limits.isFirst = false;
    return fastestWithin(restriction, limits, progress);
  }
  /// The same, of those that take another candidate than `path` at `place`.
  Found fastestOtherwise(const Path& path, std::size_t place, const Limits& within, const Progress& progress) const;
  /// The fastest that is found, without a restriction: where a search ends before it is proved, a faster one is taken
  /// as long as treating a single layer otherwise brings one and searches are left.
  Found bestWithin(const Limits& within, std::size_t& searchesLeft, const Progress& progress) const;
  /// The second half of it. False when cancelled.
  bool improve(const Limits& within, std::size_t& searchesLeft, Found& found, const Progress& progress) const;
  struct Otherwise;
  class Lister;
  SmallestRegret smallestAt(std::size_t place, Otherwise& otherwise, const Progress& progress) const;
  /// Whether the plan keeps to the limits with the stretches of two places that can be exchanged swapped.
  bool fitsSwapped(const Otherwise& otherwise, Found& found, std::size_t a, std::size_t b) const;
  /// What was taken there before is forgotten.
  void takeAt(std::size_t place, const Choice& choice, Solution& solution) const;
  std::int64_t budget() const { return m_context->problem.cost.budgetBytes(); }
  /// Made when first needed; null when cancelled.
  const Chain* chain(const Progress& progress) const;
  std::optional<std::size_t> placeOf(NodeId node) const;

  std::shared_ptr<const Context> m_context;
  Elimination m_elimination;
  Found m_fastest, m_found;
  Solution m_solution;
  EliminationStats m_stats;
  std::vector<std::uint32_t> m_placeOf;  ///< by NodeId, plus one; 0: fixed or no step
  mutable std::mutex m_chainMutex;
  mutable std::optional<Chain> m_chain;
};

}  // namespace cleave::solve::optimal
