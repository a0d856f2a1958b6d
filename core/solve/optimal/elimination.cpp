#include "solve/optimal/elimination.h"

#include "base/checked.h"
#include "base/quantities.h"

#include <algorithm>
#include <numeric>

namespace cleave::solve::optimal {
namespace {

constexpr std::uint32_t kStatesBetweenPolls = 64;

constexpr Wide kNever = Wide(1) << 120;

/// Collects the states behind a place while transitions are made.
class StateCollector {
 public:
  explicit StateCollector(std::uint32_t width) : m_width(width) {}

  std::uint32_t add(std::span<const std::uint32_t> tokens) {
    const auto known = m_indices.find(tokens);
    if (known != m_indices.end()) return known->second;
    const auto index = static_cast<std::uint32_t>(m_indices.size());
    m_indices.emplace(Words(tokens.begin(), tokens.end()), index);
    m_tokens.insert(m_tokens.end(), tokens.begin(), tokens.end());
    return index;
  }
  std::optional<std::uint32_t> find(std::span<const std::uint32_t> tokens) const {
    const auto known = m_indices.find(tokens);
    return known == m_indices.end() ? std::nullopt : std::optional(known->second);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(m_indices.size()); }
  std::uint32_t width() const { return m_width; }
  std::span<const std::uint32_t> at(std::uint32_t state) const {
    return {m_tokens.data() + std::size_t(state) * m_width, m_width};
  }

  /// Tokens in canonical order; `rank[i]` is where the state added as `i` went.
  Words sorted(const PricedTable& table, std::vector<std::uint32_t>& rank) const {
    std::vector<std::uint32_t> order(count());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return isBefore(table, a, b); });
    Words tokens;
    rank.resize(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      const std::uint32_t* first = m_tokens.data() + std::size_t(order[i]) * m_width;
      tokens.insert(tokens.end(), first, first + m_width);
    }
    return tokens;
  }

 private:
  bool isBefore(const PricedTable& table, std::uint32_t a, std::uint32_t b) const {
    for (std::uint32_t i = 0; i < m_width; ++i) {
      const std::uint32_t x = m_tokens[std::size_t(a) * m_width + i], y = m_tokens[std::size_t(b) * m_width + i];
      if (x == y) continue;
      if (Token::placement(x) == Token::placement(y)) return Token::charged(x) < Token::charged(y);
      return table.candidates().isBefore(Token::placement(x), Token::placement(y));
    }
    return false;
  }

  std::uint32_t m_width;
  Words m_tokens;
  WordsMap<std::uint32_t> m_indices;
};

class Unfolder {
 public:
  Unfolder(const Pricing& pricing, PricedTable& table, LevelStore& store, const Progress& progress, Elimination& out)
      : m_pricing(pricing), m_table(table), m_store(store), m_progress(progress), m_out(out) {}

  Unfolding run() {
    m_out.layout = layoutOf(m_pricing, m_table);
    if (m_out.layout.impossible.isValid()) return Unfolding::NoPlan;
    for (const auto& fixed : m_out.layout.fixed) {
      m_out.fixedFs += fixed.row->open.front().femtoseconds;
      m_out.fixedBytes += fixed.row->open.front().bytes;
    }
    m_out.fixedBytes += m_pricing.model.fixedBytes();
    Frontier frontier(m_pricing, m_table, m_out.layout);
    std::shared_ptr<const StateSet> states = intern(0, 1, {});
    m_out.offsets = {0};
    for (std::size_t place = 0; place < m_out.layout.order.size(); ++place) {
      if (m_progress.cancelled()) return Unfolding::Stopped;
      const Place& next = frontier.next();
      auto level = levelFor(next, states);
      if (!level && !m_progress.cancelled()) level = pruned(next, states, place);
      if (!level) return Unfolding::Stopped;
      if (level->exit->count == 0) return Unfolding::NoPlan;
      append(std::move(level));
      states = m_out.level(place).exit;
      m_out.slotsBegin.push_back(static_cast<std::uint32_t>(m_out.slotValues.size()));
      m_out.slotValues.insert(m_out.slotValues.end(), frontier.slotValues().begin(), frontier.slotValues().end());
    }
    m_out.slotsBegin.push_back(static_cast<std::uint32_t>(m_out.slotValues.size()));
    m_out.placements = m_table.candidates().placements();
    m_out.offsets.push_back(m_out.offsets.back() + states->count);
    return Unfolding::Done;
  }

 private:
  std::uint32_t mostStates() const { return m_bytes > kMemoryBytes ? kFewStates : kMostStates; }

  std::shared_ptr<const StateSet> intern(std::uint32_t width, std::uint32_t count, Words tokens) {
    Words key = tokens;
    key.insert(key.end(), {width, count});
    auto& bucket = m_store.states[WordsHash()(key)];
    for (const auto& known : bucket) {
      if (known->width == width && known->count == count && known->tokens == tokens) return known;
    }
    m_store.memoryBytes += tokens.size() * sizeof(std::uint32_t);
    bucket.push_back(std::make_shared<const StateSet>(StateSet{m_store.stateSets++, width, count, std::move(tokens)}));
    return bucket.back();
  }

  std::shared_ptr<const Level> levelFor(const Place& place, const std::shared_ptr<const StateSet>& entry) {
    const auto newKind = static_cast<std::uint32_t>(m_store.kinds.size());
    const std::uint32_t kind = m_store.kinds.try_emplace(place.kind, newKind).first->second;
    const std::uint64_t key = std::uint64_t(kind) << 32 | entry->id;
    const auto known = m_store.levels.find(key);
    if (known != m_store.levels.end() && m_store.isShared)
      return known->second->exit->count <= mostStates() ? known->second : nullptr;
    auto level = compile(place, entry, nullptr);
    if (!level) return nullptr;
    m_store.memoryBytes += level->memoryBytes();
    m_store.levels[key] = level;
    return level;
  }

  /// With the cheapest states alone.
  std::shared_ptr<const Level> pruned(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                      std::size_t at) {
    Pruning pruning{costsBefore(at), {}, kNever, kNever};
    auto level = compile(place, entry, &pruning);
    if (level && pruning.dropped < kNever)
      m_out.droppedFs = std::min(m_out.droppedFs.value_or(kNever), pruning.dropped);
    return level;
  }

  /// While a level is made, no more than twice as many states behind it as may stay are held.
  struct Pruning {
    const std::vector<Wide>& before;  ///< least time to each state before
    std::vector<Wide> behind;         ///< to each of those collected so far
    Wide threshold;                   ///< states that are not collected yet must be cheaper
    Wide dropped;                     ///< least time to a state that was left out
  };

  /// Null when cancelled; without `pruning` also when there are too many states.
  std::shared_ptr<const Level> compile(const Place& place, const std::shared_ptr<const StateSet>& entry,
                                       Pruning* pruning) {
    auto level = std::make_shared<Level>();
    level->entry = entry;
    StateCollector exits(static_cast<std::uint32_t>(place.exits.size()));
    Words operands, tokens;
    Charges charges;
    for (std::uint32_t state = 0; state < entry->count; ++state) {
      if (state % kStatesBetweenPolls == 0 && m_progress.cancelled()) return nullptr;
      if (!pruning && exits.count() > mostStates()) return nullptr;
      if (pruning && exits.count() > 2 * mostStates()) prune(*level, exits, *pruning);
      const auto before = entry->at(state);
      operands.clear();
      for (const auto& operand : place.operands) {
        operands.push_back(operand.slot == kNoSlot ? kReplicated : Token::placement(before[operand.slot]));
      }
      auto row = m_table.row(m_pricing, place.node, place.classIndex, operands);
      level->begins.push_back(static_cast<std::uint32_t>(level->transitions.size()));
      const std::int64_t beside = bytesBeside(place, before);
      for (std::uint32_t ordinal = 0; ordinal < row->open.size(); ++ordinal) {
        const PricedChoice& candidate = row->open[ordinal];
        charge(place, before, operands, candidate, charges);
        Transition transition;
        transition.ordinal = ordinal;
        transition.femtoseconds = candidate.femtoseconds + charges.cost.femtoseconds().count();
        transition.bytes = candidate.bytes + charges.cost.bytes();
        transition.transientBytes = candidate.transient.beside(saturatingAdd(beside, charges.buffers));
        transition.sharedBytes = charges.cost.trafficBytes;
        transition.sharedGradients = charges.cost.summedGradients;
        tokens.clear();
        for (const auto& exit : place.exits) tokens.push_back(tokenBehind(place, exit, before, candidate, charges));
        if (pruning && !admits(*pruning, exits, tokens, pruning->before[state] + transition.femtoseconds)) continue;
        transition.to = exits.add(tokens);
        level->transitions.push_back(transition);
      }
      level->rows.push_back(std::move(row));
    }
    level->begins.push_back(static_cast<std::uint32_t>(level->transitions.size()));
    if (!pruning && exits.count() > mostStates()) return nullptr;
    if (pruning && exits.count() > mostStates()) prune(*level, exits, *pruning);
    std::vector<std::uint32_t> rank;
    Words sorted = exits.sorted(m_table, rank);
    for (Transition& transition : level->transitions) transition.to = rank[transition.to];
    level->exit = intern(static_cast<std::uint32_t>(place.exits.size()), exits.count(), std::move(sorted));
    return level;
  }

  /// Of memory that is there and that the step does not read.
  std::int64_t bytesBeside(const Place& place, std::span<const std::uint32_t> before) {
    m_beside.assign(place.bystanders.size(), 0);
    for (const auto& bystander : place.bystanders) {
      auto& bytes = m_beside[bystander.memory];
      bytes = std::max(
          bytes, m_pricing.model.heldFor(bystander.value, m_table.placement(Token::placement(before[bystander.slot]))));
    }
    return std::accumulate(m_beside.begin(), m_beside.end(), place.fixedBeside, saturatingAdd);
  }

  /// What a candidate is charged beside its own cost, because nothing before it was.
  struct Charges {
    std::vector<Shares> asked;  ///< by operand, the first that is a value for all of them
    bool startsBucket = false;
    StepCost cost;
    std::int64_t buffers = 0;  ///< to gather
  };
  void charge(const Place& place, std::span<const std::uint32_t> before, std::span<const std::uint32_t> operands,
              const PricedChoice& candidate, Charges& charges) const {
    charges.cost = {};
    charges.buffers = 0;
    charges.asked.assign(place.operands.size(), kSharesNothing);
    for (const auto& [read, parts] : candidate.asking) charges.asked[place.operands[read].first] |= parts;
    for (std::size_t i = 0; i < place.operands.size(); ++i) {
      const auto& operand = place.operands[i];
      const Shares known = operand.slot == kNoSlot ? kSharesNothing : Token::charged(before[operand.slot]);
      const Shares parts = charges.asked[i] & ~known;
      if (parts != kSharesNothing)
        charges.cost += m_pricing.model.shared(operand.value, m_table.placement(operands[i]), parts);
      if (m_out.layout.isInOrder && (parts & kSharesWhole)) {
        charges.buffers = saturatingAdd(charges.buffers,
                                        m_pricing.model.gatherBuffers(operand.value, m_table.placement(operands[i])));
      }
    }
    charges.startsBucket = candidate.cost.summedGradients > 0 || charges.cost.summedGradients > 0;
    const bool isStarted = place.bucket != kNoSlot && Token::charged(before[place.bucket]) != kSharesNothing;
    if (charges.startsBucket && !isStarted) charges.cost += m_pricing.model.bucketStart();
  }

  static std::uint32_t tokenBehind(const Place& place, const Place::Exit& exit, std::span<const std::uint32_t> before,
                                   const PricedChoice& candidate, const Charges& charges) {
    const Shares asked = exit.operand == kNoSlot ? kSharesNothing : charges.asked[exit.operand];
    switch (exit.origin) {
      case Place::Origin::Slot: return before[exit.index] | asked;
      case Place::Origin::FixedOperand: return Token::of(kReplicated, asked);
      case Place::Origin::Write: return Token::of(candidate.writes[exit.index], candidate.pays[exit.index]);
      case Place::Origin::Bucket: {
        const std::uint32_t known =
            place.bucket == kNoSlot ? Token::of(kReplicated, kSharesNothing) : before[place.bucket];
        return known | (charges.startsBucket ? kSharesGradientSum : kSharesNothing);
      }
    }
    return 0;
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
      std::vector<Wide> next(level.exit->count, kNever);
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

  /// True where the state may be collected; its time is noted.
  static bool admits(Pruning& pruning, const StateCollector& exits, std::span<const std::uint32_t> tokens, Wide cost) {
    const auto known = exits.find(tokens);
    if (known) {
      pruning.behind[*known] = std::min(pruning.behind[*known], cost);
      return true;
    }
    if (cost >= pruning.threshold) return false;
    pruning.behind.push_back(cost);
    return true;
  }

  /// Keeps the cheapest states behind a level that is being made, and the transitions to them.
  void prune(Level& level, StateCollector& exits, Pruning& pruning) const {
    std::vector<std::uint32_t> order(exits.count());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return pruning.behind[a] < pruning.behind[b]; });
    const std::uint32_t kept = mostStates();
    pruning.threshold = pruning.behind[order[kept]];
    pruning.dropped = std::min(pruning.dropped, pruning.threshold);
    order.resize(kept);
    std::sort(order.begin(), order.end());
    StateCollector rest(exits.width());
    std::vector<std::uint32_t> rank(exits.count(), kNoSlot);
    std::vector<Wide> behind;
    for (const std::uint32_t state : order) {
      rank[state] = rest.add(exits.at(state));
      behind.push_back(pruning.behind[state]);
    }
    std::size_t next = 0;
    std::uint32_t from = 0;
    for (std::uint32_t t = 0; t < level.transitions.size(); ++t) {
      for (; from < level.begins.size() && level.begins[from] <= t; ++from)
        level.begins[from] = static_cast<std::uint32_t>(next);
      Transition transition = level.transitions[t];
      transition.to = rank[transition.to];
      if (transition.to != kNoSlot) level.transitions[next++] = transition;
    }
    for (; from < level.begins.size(); ++from) level.begins[from] = static_cast<std::uint32_t>(next);
    level.transitions.resize(next);
    exits = std::move(rest);
    pruning.behind = std::move(behind);
  }

  const Pricing& m_pricing;
  PricedTable& m_table;
  LevelStore& m_store;
  const Progress& m_progress;
  Elimination& m_out;
  std::unordered_map<const Level*, std::uint32_t> m_indices;
  std::uint64_t m_bytes = 0;
  std::vector<Wide> m_forward{0};  ///< costsBefore(m_forwardAt)
  std::size_t m_forwardAt = 0;
  std::vector<std::int64_t> m_beside;  ///< by memory of bystanders
};

}  // namespace

std::string stateLimitText() {
  return fmt::format("{} states of a step ({} beyond {})", kMostStates, kFewStates,
                     bytesText(static_cast<std::int64_t>(kMemoryBytes)));
}

std::uint64_t Level::memoryBytes() const {
  return sizeof(Level) + transitions.size() * sizeof(Transition) + begins.size() * sizeof(std::uint32_t) +
         rows.size() * sizeof(rows[0]);
}

std::uint32_t fromOf(const Level& level, std::uint32_t index) {
  const auto behind = std::upper_bound(level.begins.begin(), level.begins.end(), index);
  return static_cast<std::uint32_t>(behind - level.begins.begin()) - 1;
}

Unfolding unfold(const Pricing& pricing, PricedTable& table, LevelStore& store, const Progress& progress,
                 Elimination& out) {
  return Unfolder(pricing, table, store, progress, out).run();
}

}  // namespace cleave::solve::optimal
