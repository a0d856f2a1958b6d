#pragma once
/// The graph of states and transitions that a problem unfolds into, with equal parts kept once: a level for each place.
///
/// Where a place of the same kind is entered with the same set of states, its level is reused as it is: in a model of
/// equal blocks all blocks but the first few share theirs. Plans and paths through the levels correspond one to one.
#include "solve/optimal/level.h"

namespace cleave::solve::optimal {

/// Frontiers of transformers have some dozen states. Beyond these numbers the cheapest are kept and the answer says so.
inline constexpr std::uint32_t kMostStates = 20'000;
inline constexpr std::uint32_t kFewStates = 500;  ///< once levels take more than `kMemoryBytes`
inline constexpr std::uint64_t kMemoryBytes = 512ull << 20;
/// "20000 states of a step (500 beyond 512 MiB)".
std::string stateLimitText();

/// One problem, unfolded. Immutable.
struct Elimination {
  Layout layout;
  std::vector<std::shared_ptr<const Level>> levels;  ///< each once
  std::vector<std::uint32_t> levelAt;                ///< by place
  std::vector<std::size_t> offsets;                  ///< by place: states before it, in all; one more place at the end
  Wide fixedFs = 0;                                  ///< of fixed steps
  std::int64_t fixedBytes = 0;                       ///< of fixed steps, inputs and constants
  std::uint64_t foldedSteps = 0;
  std::vector<ValueId> slotValues;        ///< by place: what the slots behind it hold; invalid: the bucket
  std::vector<std::uint32_t> slotsBegin;  ///< into `slotValues`, by place; one more at the end
  std::vector<Placement> placements;      ///< by placement id
  /// States were dropped for want of room; no plan through one of them is faster than this (fixed steps not counted).
  std::optional<Wide> droppedFs;

  std::size_t places() const { return levelAt.size(); }
  const Level& level(std::size_t place) const { return *levels[levelAt[place]]; }
  std::uint32_t statesBefore(std::size_t place) const {
    return static_cast<std::uint32_t>(offsets[place + 1] - offsets[place]);
  }
};

enum class Unfolding { Done, NoPlan, Stopped };
/// `NoPlan`: demands, rules and sizes leave none.
Unfolding unfold(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress,
                 Elimination& out);

}  // namespace cleave::solve::optimal
