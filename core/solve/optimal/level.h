#pragma once
/// What one place makes of the states before it: the states behind it, and a transition for each candidate that a state
/// allows. The weight of this sweep (candidates/sweep.h) is the cost model's.
#include "base/progress.h"
#include "solve/candidates/level_store.h"
#include "solve/optimal/places.h"

namespace cleave::solve::optimal {

/// A sum of nothing reachable; two of them may be added.
inline constexpr Wide kUnreachable = Wide(1) << 124;

struct Transition {
  Wide femtoseconds = 0;
  std::int64_t bytes = 0;
  std::int64_t transientBytes = 0;   ///< no plan that takes it has a smaller transient peak
  std::int64_t sharedBytes = 0;      ///< traffic of the shared collectives it is charged
  std::int64_t sharedGradients = 0;  ///< StepCost::summedGradients of these
  std::uint32_t to = 0;
  std::uint32_t ordinal = 0;  ///< candidate
};

/// Its states are in an order that does not depend on how they were found.
struct Level {
  std::shared_ptr<const StateSet> entry, exit;
  std::vector<std::uint32_t> begins;                   ///< by entry state; one more at the end
  std::vector<Transition> transitions;                 ///< of each state in candidate order
  std::vector<std::shared_ptr<const PricedRow>> rows;  ///< by entry state
  std::uint64_t memoryBytes() const;
};

/// Finds transition `index`'s entry state.
std::uint32_t fromOf(const Level& level, std::uint32_t index);

/// Makes levels of one problem. One thread.
class LevelMaker {
 public:
  /// All must outlive this.
  LevelMaker(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress)
      : m_pricing(pricing), m_table(table), m_store(store), m_progress(progress) {}

  /// Null: cancelled, or there are more than `mostStates` behind the place.
  std::shared_ptr<const Level> make(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                    std::uint32_t mostStates) const;
  struct Pruned {
    std::shared_ptr<const Level> level;  ///< null: cancelled
    Wide droppedFs = kUnreachable;       ///< least time to a state that was left out
  };
  /// With the cheapest states alone. `costs`: least time to each state before the place.
  Pruned makePruned(const Place& place, const std::shared_ptr<const StateSet>& entry, std::uint32_t mostStates,
                    const std::vector<Wide>& costs) const;

 private:
  class Weight;
  class Cheapest;

  const Pricing& m_pricing;
  PricedTable& m_table;
  LevelStore<Level>& m_store;
  const Progress& m_progress;
};

}  // namespace cleave::solve::optimal
