#pragma once
/// The level of one place: the states after it, and a transition for each candidate that an entry state allows. The
/// cost model gives the weights of this sweep (candidates/sweep.h).
#include "base/progress.h"
#include "solve/candidates/level_store.h"
#include "solve/optimal/places.h"

namespace cleave::solve::optimal {

/// The weight of an unreachable state; the sum of two does not overflow.
inline constexpr Wide kUnreachable = Wide(1) << 124;

struct Transition {
  Wide femtoseconds = 0;
  std::int64_t bytes = 0;
  std::int64_t transientBytes = 0;   ///< lower bound of the transient peak of plans with this transition
  std::int64_t sharedBytes = 0;      ///< traffic of the shared collectives that it is charged for
  std::int64_t sharedGradients = 0;  ///< StepCost::summedGradients of these collectives
  std::uint32_t to = 0;
  std::uint32_t ordinal = 0;  ///< candidate
};

/// The order of its states does not depend on the order in which they were found.
struct Level {
  std::shared_ptr<const StateSet> entry, exit;
  std::vector<std::uint32_t> begins;                   ///< by entry state; one more at the end
  std::vector<Transition> transitions;                 ///< transitions of each state in candidate order
  std::vector<std::shared_ptr<const PricedRow>> rows;  ///< by entry state
  std::uint64_t memoryBytes() const;
};

/// The entry state of transition `index`.
std::uint32_t fromOf(const Level& level, std::uint32_t index);

/// Makes the levels of one problem. Use it from one thread.
class LevelMaker {
 public:
  /// All arguments must outlive this object.
  LevelMaker(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress)
      : m_pricing(pricing), m_table(table), m_store(store), m_progress(progress) {}

  /// Null if cancelled, or if there are more than `mostStates` states after the place.
  std::shared_ptr<const Level> make(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                    std::uint32_t mostStates) const;
  struct Pruned {
    std::shared_ptr<const Level> level;  ///< null: cancelled
    Wide droppedFs = kUnreachable;       ///< least time to a dropped state
  };
  /// The level with only the cheapest states. `costs`: least time to each state before the place.
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
