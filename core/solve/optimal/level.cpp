#include "solve/optimal/level.h"

#include "base/checked.h"

#include <algorithm>
#include <numeric>

namespace cleave::solve::optimal {
namespace {

constexpr std::uint32_t kStatesBetweenPolls = 64;

}  // namespace

/// Keeps the cheapest states while a level is made: at most twice the number that stays at the end.
class LevelMaker::Cheapest {
 public:
  /// `before`: least time to each entry state.
  explicit Cheapest(const std::vector<Wide>& before) : m_before(before) {}

  Wide droppedFs() const { return m_dropped; }

  /// True if the state may be collected; records its time.
  bool admits(const StateCollector& exits, std::span<const std::uint32_t> tokens, std::uint32_t from,
              Wide femtoseconds) {
    const Wide cost = m_before[from] + femtoseconds;
    if (const auto known = exits.find(tokens)) {
      m_after[*known] = std::min(m_after[*known], cost);
      return true;
    }
    if (cost >= m_threshold) return false;
    m_after.push_back(cost);
    return true;
  }

  /// Keeps the `kept` cheapest states and the transitions to them.
  void prune(Level& level, StateCollector& exits, std::uint32_t kept) {
    std::vector<std::uint32_t> order(exits.count());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return m_after[a] < m_after[b]; });
    m_threshold = m_after[order[kept]];
    m_dropped = std::min(m_dropped, m_threshold);
    order.resize(kept);
    std::sort(order.begin(), order.end());
    StateCollector rest(exits.width());
    std::vector<std::uint32_t> rank(exits.count(), kNoState);
    std::vector<Wide> after;
    for (const std::uint32_t state : order) {
      rank[state] = rest.add(exits.at(state));
      after.push_back(m_after[state]);
    }
    keepRanked(level, rank);
    exits = std::move(rest);
    m_after = std::move(after);
  }

 private:
  static constexpr std::uint32_t kNoState = std::numeric_limits<std::uint32_t>::max();

  static void keepRanked(Level& level, const std::vector<std::uint32_t>& rank) {
    std::size_t next = 0;
    std::uint32_t from = 0;
    const auto beginUpTo = [&](std::uint32_t transition) {
      for (; from < level.begins.size() && level.begins[from] <= transition; ++from)
        level.begins[from] = static_cast<std::uint32_t>(next);
    };
    for (std::uint32_t t = 0; t < level.transitions.size(); ++t) {
      beginUpTo(t);
      Transition transition = level.transitions[t];
      transition.to = rank[transition.to];
      if (transition.to != kNoState) level.transitions[next++] = transition;
    }
    beginUpTo(static_cast<std::uint32_t>(level.transitions.size()));
    level.transitions.resize(next);
  }

  const std::vector<Wide>& m_before;
  std::vector<Wide> m_after;        ///< least time to each exit state collected so far
  Wide m_threshold = kUnreachable;  ///< new states must be cheaper than this
  Wide m_dropped = kUnreachable;
};

/// The weight of a transition: the cost of its candidate, and of shared collectives that no earlier step was charged
/// for.
class LevelMaker::Weight {
 public:
  /// All states stay if `cheapest` is null.
  Weight(const LevelMaker& maker, const Place& place, const std::shared_ptr<const StateSet>& entry,
         std::uint32_t mostStates, Cheapest* cheapest)
      : m_maker(maker),
        m_model(maker.m_pricing.model),
        m_table(maker.m_table),
        m_place(place),
        m_step(place.step),
        m_mostStates(mostStates),
        m_cheapest(cheapest),
        m_exits(place.step.exits.size()),
        m_level(std::make_shared<Level>()) {
    m_level->entry = entry;
  }

  bool enter(std::uint32_t state, std::span<const std::uint32_t> before) {
    if (state % kStatesBetweenPolls == 0 && m_maker.m_progress.cancelled()) return false;
    if (!m_cheapest && m_exits.count() > m_mostStates) return false;
    if (m_cheapest && m_exits.count() > 2 * m_mostStates) m_cheapest->prune(*m_level, m_exits, m_mostStates);
    m_state = state;
    m_before = before;
    m_unreadBytes = unreadBytes();
    m_level->begins.push_back(static_cast<std::uint32_t>(m_level->transitions.size()));
    return true;
  }
  static PlacementId placementOf(std::uint32_t token) { return Token::placement(token); }
  static std::span<const PlacementId> choicesOf(std::uint32_t) { return {&kReplicated, 1}; }  // the value is fixed
  bool place(std::span<const PlacementId> operands) {
    m_operands = operands;
    m_level->rows.push_back(m_table.row(m_maker.m_pricing, m_step.node, m_place.classIndex, operands));
    return true;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_level->rows.back()->open.size()); }

  void weigh(std::uint32_t ordinal) {
    m_candidate = &m_level->rows.back()->open[ordinal];
    charge();
    m_transition = {.femtoseconds = m_candidate->femtoseconds + m_charged.femtoseconds().count(),
                    .bytes = m_candidate->bytes + m_charged.bytes(),
                    .transientBytes = m_candidate->transient.totalWith(saturatingAdd(m_unreadBytes, m_bufferBytes)),
                    .sharedBytes = m_charged.trafficBytes,
                    .sharedGradients = m_charged.summedGradients,
                    .ordinal = ordinal};
  }

  std::uint32_t exitToken(const FrontierStep::Exit& exit) const {
    const Shares needed = exit.operand == kNoSlot ? kSharesNothing : m_needed[exit.operand];
    switch (exit.origin) {
      case FrontierStep::Origin::Slot: return m_before[exit.index] | needed;
      case FrontierStep::Origin::Fresh: return Token::of(kReplicated, needed);
      case FrontierStep::Origin::Write:
        return Token::of(m_candidate->writes[exit.index], m_candidate->paidShares[exit.index]);
      case FrontierStep::Origin::Own: return bucket() | (m_startsBucket ? kSharesGradientSum : kSharesNothing);
    }
    return 0;
  }

  void addExit(std::span<const std::uint32_t> tokens) {
    if (m_cheapest && !m_cheapest->admits(m_exits, tokens, m_state, m_transition.femtoseconds)) return;
    m_transition.to = m_exits.add(tokens);
    m_level->transitions.push_back(m_transition);
  }

  /// Null if there are too many states.
  std::shared_ptr<const Level> finished() {
    m_level->begins.push_back(static_cast<std::uint32_t>(m_level->transitions.size()));
    if (m_exits.count() > m_mostStates) {
      if (!m_cheapest) return nullptr;
      m_cheapest->prune(*m_level, m_exits, m_mostStates);
    }
    std::vector<std::uint32_t> rank;
    IdTuple sorted = m_exits.sorted(
        [&](std::uint32_t a, std::uint32_t b) {
          if (Token::placement(a) == Token::placement(b)) return Token::charged(a) < Token::charged(b);
          return m_table.candidates().isBefore(Token::placement(a), Token::placement(b));
        },
        rank);
    for (Transition& transition : m_level->transitions) transition.to = rank[transition.to];
    m_level->exit = m_maker.m_store.intern(m_exits.width(), m_exits.count(), std::move(sorted));
    return std::move(m_level);
  }

 private:
  /// Bytes of live memory that the step does not read.
  std::int64_t unreadBytes() {
    m_unreadByMemory.assign(m_place.unreadSlots.size(), 0);
    for (const auto& unread : m_place.unreadSlots) {
      auto& bytes = m_unreadByMemory[unread.memory];
      bytes =
          std::max(bytes, m_model.heldFor(unread.value, m_table.placement(Token::placement(m_before[unread.slot]))));
    }
    return std::accumulate(m_unreadByMemory.begin(), m_unreadByMemory.end(), m_place.unreadFixedBytes, saturatingAdd);
  }

  std::uint32_t bucket() const {
    const std::uint32_t slot = m_step.ownSlot();
    return slot == kNoSlot ? Token::of(kReplicated, kSharesNothing) : m_before[slot];
  }

  /// Charges the shared collectives that no earlier step was charged for, and the start of the bucket.
  void charge() {
    m_charged = {};
    m_bufferBytes = 0;
    m_needed.assign(m_step.operands.size(), kSharesNothing);
    for (const auto& [read, parts] : m_candidate->neededShares) m_needed[m_step.operands[read].first] |= parts;
    for (std::size_t i = 0; i < m_needed.size(); ++i) {
      const auto& operand = m_step.operands[i];
      const Shares known = operand.slot == kNoSlot ? kSharesNothing : Token::charged(m_before[operand.slot]);
      const Shares parts = m_needed[i] & ~known;
      if (parts == kSharesNothing) continue;
      const Placement& placement = m_table.placement(m_operands[i]);
      m_charged += m_model.shared(operand.value, placement, parts);
      if (m_place.isInOrder && (parts & kSharesGather))
        m_bufferBytes = saturatingAdd(m_bufferBytes, m_model.gatherBuffers(operand.value, placement));
    }
    m_startsBucket = m_candidate->cost.summedGradients > 0 || m_charged.summedGradients > 0;
    if (m_startsBucket && Token::charged(bucket()) == kSharesNothing) m_charged += m_model.bucketStart();
  }

  const LevelMaker& m_maker;
  const CostModel& m_model;
  PricedTable& m_table;
  const Place& m_place;
  const FrontierStep& m_step;
  const std::uint32_t m_mostStates;
  Cheapest* const m_cheapest;
  StateCollector m_exits;
  std::shared_ptr<Level> m_level;

  // The current state, operands and candidate.
  std::uint32_t m_state = 0;
  std::span<const std::uint32_t> m_before;
  std::vector<std::int64_t> m_unreadByMemory;  ///< bytes of unread slots, by memory
  std::int64_t m_unreadBytes = 0;
  std::span<const PlacementId> m_operands;
  const PricedChoice* m_candidate = nullptr;
  std::vector<Shares> m_needed;  ///< by first operand of each value
  StepCost m_charged;
  std::int64_t m_bufferBytes = 0;  ///< buffers for gathers
  bool m_startsBucket = false;
  Transition m_transition;
};

std::shared_ptr<const Level> LevelMaker::make(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                              std::uint32_t mostStates) const {
  Weight weight(*this, place, entry, mostStates, nullptr);
  return sweepStep(place.step, *entry, weight) ? weight.finished() : nullptr;
}

LevelMaker::Pruned LevelMaker::makePruned(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                          std::uint32_t mostStates, const std::vector<Wide>& costs) const {
  Cheapest cheapest(costs);
  Weight weight(*this, place, entry, mostStates, &cheapest);
  if (!sweepStep(place.step, *entry, weight)) return {};
  auto level = weight.finished();
  return {std::move(level), cheapest.droppedFs()};
}

std::uint64_t Level::memoryBytes() const {
  return sizeof(Level) + transitions.size() * sizeof(Transition) + begins.size() * sizeof(std::uint32_t) +
         rows.size() * sizeof(rows[0]);
}

std::uint32_t fromOf(const Level& level, std::uint32_t index) {
  const auto after = std::upper_bound(level.begins.begin(), level.begins.end(), index);
  return static_cast<std::uint32_t>(after - level.begins.begin()) - 1;
}

}  // namespace cleave::solve::optimal
