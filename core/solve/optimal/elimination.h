#pragma once
/// The graph of states and transitions of a problem: one level per place, with equal parts stored once.
///
/// A place of the same kind with the same entry states reuses the level. In a model of equal blocks, all blocks except
/// the first few share their levels. Plans and paths through the levels correspond one to one.
#include "solve/optimal/level.h"

namespace cleave::solve::optimal {

/// Frontiers of transformers have a few dozen states. Beyond these limits the engine keeps only the cheapest states and
/// marks the result as not proved.
inline constexpr std::uint32_t kMostStates = 20'000;
inline constexpr std::uint32_t kFewStates = 500;  ///< limit once levels need more than `kMemoryBytes`
inline constexpr std::uint64_t kMemoryBytes = 512ull << 20;
/// "20000 states of a step (500 beyond 512 MiB)".
std::string stateLimitText();

/// One problem, unfolded. Immutable.
struct Elimination {
  Layout layout;
  std::vector<std::shared_ptr<const Level>> levels;  ///< distinct levels
  std::vector<std::uint32_t> levelAt;                ///< by place
  std::vector<std::size_t> offsets;  ///< by place: total number of states before it; one more entry at the end
  Wide fixedFs = 0;                  ///< time of fixed steps
  std::int64_t fixedBytes = 0;       ///< bytes of fixed steps, inputs and constants
  std::uint64_t foldedSteps = 0;
  std::vector<ValueId> slotValues;        ///< by place: values of the slots after it; invalid: the bucket
  std::vector<std::uint32_t> slotsBegin;  ///< into `slotValues`, by place; one more at the end
  std::vector<Placement> placements;      ///< by placement id
  /// Set if states were dropped for lack of memory: lower bound of the time of plans through a dropped state (fixed
  /// steps not counted).
  std::optional<Wide> droppedFs;

  std::size_t places() const { return levelAt.size(); }
  const Level& level(std::size_t place) const { return *levels[levelAt[place]]; }
  std::uint32_t statesBefore(std::size_t place) const {
    return static_cast<std::uint32_t>(offsets[place + 1] - offsets[place]);
  }
};

enum class Unfolding { Done, NoPlan, Stopped };
/// `NoPlan`: demands, rules and sizes allow no plan.
Unfolding unfold(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress,
                 Elimination& out);

}  // namespace cleave::solve::optimal
