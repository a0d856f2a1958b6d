#pragma once
/// The answers of an elimination: the plan itself, and everything that optimum.h promises.
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
  Source source() const { return {problem, variables, model}; }
};

/// What a search for the cheapest plan within the budget found.
struct Found {
  enum class Outcome {
    Plan,
    OverBudget,  ///< there are plans, but none was found within the budget; `path` needs the fewest additive bytes
    NoPlan,      ///< not even without a budget
    Stopped,
  } outcome = Outcome::Stopped;
  Path path;
  std::optional<Solution> solution;  ///< of `path`, where it was made on the way
  PlanCost cost;
  bool isProved = true;           ///< nothing was left out: cheapest plan, or truly none within the budget
  std::int64_t lowerBoundFs = 0;
  std::uint64_t plansChecked = 0; ///< whose transient peak was computed
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
  /// What a path takes at a place.
  const Candidate& takenAt(const Path& path, std::size_t place) const;

  const PlanCost& cost() const override { return m_found.cost; }
  bool isProved() const override { return m_found.isProved; }
  std::int64_t lowerBoundFs() const override { return m_found.lowerBoundFs; }
  const EliminationStats& stats() const override { return m_stats; }
  Result<std::vector<Regret>> regrets(ValueId value, const Progress& progress) const override;
  std::vector<std::optional<std::int64_t>> smallestRegrets() const override;
  Result<Front> front(const Progress& progress) const override;
  Result<Solution> planAt(const ParetoPoint& point, const Progress& progress) const override;
  Result<std::vector<Solution>> best(std::size_t k, const Progress& progress) const override;

 private:
  Found cheapest(const Restriction& restriction, const Progress& progress) const;
  Found withinBudget(const Restriction& restriction, const Progress& progress) const;
  bool lookThrough(const Restriction& restriction, Found& found, const Progress& progress) const;
  void countDropped(Found& found) const;
  /// Calls `visit(place, transition, candidate)` for each place.
  template <class Visit>
  void forEachTaken(const Path& path, Visit visit) const;
  /// CostModel::evaluate of `solutionOf(path)`, added up from what the transitions cost.
  PlanCost priceOf(const Path& path, const Solution& solution) const;
  PlanCost priceOf(const Path& path) const { return priceOf(path, solutionOf(path)); }
  std::int64_t budget() const { return m_context->problem.cost.budgetBytes(); }
  /// Made when first needed; null when cancelled.
  const Chain* chain(const Progress& progress) const;
  std::optional<std::size_t> placeOf(NodeId node) const;

  std::shared_ptr<const Context> m_context;
  Elimination m_elimination;
  Found m_found;
  Solution m_solution;
  EliminationStats m_stats;
  std::vector<std::uint32_t> m_placeOf;  ///< by NodeId, plus one; 0: fixed or no step
  mutable std::mutex m_chainMutex;
  mutable std::optional<Chain> m_chain;
};

}  // namespace cleave::solve::optimal
