#pragma once
/// The graph of states and transitions that a problem unfolds into, with equal parts kept once.
///
/// A *state* says what the slots of the frontier hold; a *level* has the states before a place, those behind it, and a
/// transition for each candidate that a state allows. Where a place of the same kind is entered with the same set of
/// states, its level is reused as it is: in a model of equal blocks all blocks but the first few share theirs. Plans
/// and paths through the levels correspond one to one.
#include "base/progress.h"
#include "solve/optimal/frontier.h"

namespace cleave::solve::optimal {

/// Frontiers of transformers have some dozen states. Beyond these numbers the cheapest are kept and the answer says so.
inline constexpr std::uint32_t kMostStates = 20'000;
inline constexpr std::uint32_t kFewStates = 500;  ///< once levels take more than `kMemoryBytes`
inline constexpr std::uint64_t kMemoryBytes = 512ull << 20;
/// "20000 states of a step (500 beyond 512 MiB)".
std::string stateLimitText();

/// All states at one place: tuples of tokens, in an order that does not depend on how they were found.
struct StateSet {
  std::uint32_t id = 0;
  std::uint32_t width = 0;  ///< slots
  std::uint32_t count = 0;
  Words tokens;  ///< count · width
  std::span<const std::uint32_t> at(std::uint32_t state) const {
    return {tokens.data() + std::size_t(state) * width, width};
  }
};

struct Transition {
  Wide femtoseconds = 0;
  std::int64_t bytes = 0;
  std::int64_t transientBytes = 0;   ///< no plan that takes it has a smaller transient peak
  std::int64_t sharedBytes = 0;      ///< traffic of the shared collectives it is charged
  std::int64_t sharedGradients = 0;  ///< StepCost::summedGradients of these
  std::uint32_t to = 0;
  std::uint32_t ordinal = 0;  ///< candidate
};

struct Level {
  std::shared_ptr<const StateSet> entry, exit;
  std::vector<std::uint32_t> begins;                   ///< by entry state; one more at the end
  std::vector<Transition> transitions;                 ///< of each state in candidate order
  std::vector<std::shared_ptr<const PricedRow>> rows;  ///< by entry state
  std::uint64_t memoryBytes() const;
};

/// Finds transition `index`'s entry state.
std::uint32_t fromOf(const Level& level, std::uint32_t index);

/// Levels by what they are made of; kept between solves.
struct LevelStore {
  bool isShared = true;  ///< false makes every level anew: what folding saves, and the proof that it changes nothing
  WordsMap<std::uint32_t> kinds;
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<const StateSet>>> states;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Level>> levels;  ///< by kind and id of the entry set
  std::uint32_t stateSets = 0;
  std::uint64_t memoryBytes = 0;
};

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
Unfolding unfold(const Pricing& pricing, PricedTable& table, LevelStore& store, const Progress& progress,
                 Elimination& out);

}  // namespace cleave::solve::optimal
