#include "solve/optimal/elimination.h"

#include "base/quantities.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

class Unfolder {
 public:
  Unfolder(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress,
           Elimination& out)
      : m_pricing(pricing),
        m_table(table),
        m_store(store),
        m_progress(progress),
        m_maker(pricing, table, store, progress),
        m_out(out) {}

  Unfolding run() {
    m_out.layout = layoutOf(m_pricing, m_table);
    if (m_out.layout.impossible.isValid()) return Unfolding::NoPlan;
    addFixed();
    Places places(m_pricing, m_table, m_out.layout);
    std::shared_ptr<const StateSet> states = m_store.intern(0, 1, {});
    m_out.offsets = {0};
    for (std::size_t place = 0; place < m_out.layout.order.size(); ++place) {
      if (m_progress.cancelled()) return Unfolding::Stopped;
      const Place& next = places.next();
      auto level = levelFor(next, states);
      if (!level && !m_progress.cancelled()) level = prunedLevelFor(next, states, place);
      if (!level) return Unfolding::Stopped;
      if (level->exit->count == 0) return Unfolding::NoPlan;
      append(std::move(level));
      states = m_out.level(place).exit;
      m_out.slotsBegin.push_back(static_cast<std::uint32_t>(m_out.slotValues.size()));
      for (const auto& exit : next.step.exits) m_out.slotValues.push_back(exit.value);
    }
    m_out.slotsBegin.push_back(static_cast<std::uint32_t>(m_out.slotValues.size()));
    m_out.placements = m_table.candidates().placements();
    m_out.offsets.push_back(m_out.offsets.back() + states->count);
    return Unfolding::Done;
  }

 private:
  std::uint32_t mostStates() const { return m_bytes > kMemoryBytes ? kFewStates : kMostStates; }

  void addFixed() {
    m_out.fixedBytes = m_pricing.model.fixedBytes();
    for (const auto& fixed : m_out.layout.fixed) {
      m_out.fixedFs += fixed.row->open.front().femtoseconds;
      m_out.fixedBytes += fixed.row->open.front().bytes;
    }
  }

  /// Null: cancelled, or too many states.
  std::shared_ptr<const Level> levelFor(const Place& place, const std::shared_ptr<const StateSet>& entry) {
    const auto key = m_store.keyOf(place.kind, *entry);
    if (auto known = m_store.find(key)) return known->exit->count <= mostStates() ? known : nullptr;
    auto level = m_maker.make(place, entry, mostStates());
    if (level) m_store.add(key, level);
    return level;
  }

  /// Null: cancelled.
  std::shared_ptr<const Level> prunedLevelFor(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                              std::size_t at) {
    auto pruned = m_maker.makePruned(place, entry, mostStates(), costsBefore(at));
    if (pruned.level && pruned.droppedFs < kUnreachable)
      m_out.droppedFs = std::min(m_out.droppedFs.value_or(kUnreachable), pruned.droppedFs);
    return std::move(pruned.level);
  }

  void append(std::shared_ptr<const Level> level) {
    const auto fresh = static_cast<std::uint32_t>(m_out.levels.size());
    const auto [known, isNew] = m_indices.try_emplace(level.get(), fresh);
    m_out.offsets.push_back(m_out.offsets.back() + level->entry->count);
    m_out.levelAt.push_back(known->second);
    if (!isNew) {
      ++m_out.foldedSteps;
      return;
    }
    m_bytes += level->memoryBytes();
    m_out.levels.push_back(std::move(level));
  }

  /// Least times to the states before `place`.
  const std::vector<Wide>& costsBefore(std::size_t place) {
    for (; m_forwardAt < place; ++m_forwardAt) {
      const Level& level = m_out.level(m_forwardAt);
      std::vector<Wide> next(level.exit->count, kUnreachable);
      for (std::uint32_t from = 0; from < level.entry->count; ++from) {
        for (std::uint32_t t = level.begins[from]; t < level.begins[from + 1]; ++t) {
          auto& best = next[level.transitions[t].to];
          best = std::min(best, m_forward[from] + level.transitions[t].femtoseconds);
        }
      }
      m_forward = std::move(next);
    }
    return m_forward;
  }

  const Pricing& m_pricing;
  PricedTable& m_table;
  LevelStore<Level>& m_store;
  const Progress& m_progress;
  const LevelMaker m_maker;
  Elimination& m_out;
  std::unordered_map<const Level*, std::uint32_t> m_indices;
  std::uint64_t m_bytes = 0;
  std::vector<Wide> m_forward{0};  ///< costsBefore(m_forwardAt)
  std::size_t m_forwardAt = 0;
};

}  // namespace

std::string stateLimitText() {
  return fmt::format("{} states of a step ({} beyond {})", kMostStates, kFewStates,
                     bytesText(static_cast<std::int64_t>(kMemoryBytes)));
}

Unfolding unfold(const Pricing& pricing, PricedTable& table, LevelStore<Level>& store, const Progress& progress,
                 Elimination& out) {
  return Unfolder(pricing, table, store, progress, out).run();
}

}  // namespace cleave::solve::optimal
