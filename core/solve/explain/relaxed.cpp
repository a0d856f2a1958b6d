#include "solve/explain/relaxed.h"

#include <algorithm>

namespace cleave::solve {
namespace {

constexpr std::size_t kMostStates = 20'000;
constexpr std::size_t kPlacingsBetweenPolls = 1 << 8;

}  // namespace

Relaxation::Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work)
    : m_asking{problem, variables},
      m_variables(variables),
      m_graph(*problem.graph),
      m_domains(domains),
      m_table(domains.table()),
      m_work(work),
      m_isBackground(m_graph.nodes.size(), false) {
  for (NodeId n : variables.steps()) {
    m_isBackground[n.index()] = m_graph.node(n).kind != graph::NodeKind::Call || !m_variables.pins(n).empty();
  }
}

std::uint32_t Relaxation::classOf(NodeId node) {
  const auto [known, isNew] = m_classOf.try_emplace(node.raw());
  if (isNew) known->second = m_table.classOf(m_asking, node);
  return known->second;
}

/// Takes the kept nodes in order. After each, a state is one way in which the values lie that a later one reads.
struct Relaxation::Sweep {
  Relaxation& owner;
  NodeId observed;
  Words preferred;  ///< for operands of `observed` that nobody else places

  std::vector<NodeId> order;
  std::unordered_map<std::uint32_t, std::size_t> lastRead;  ///< raw ValueId → index into `order`
  std::vector<ValueId> live;
  std::vector<State> states{State{}};
  std::vector<std::vector<std::uint32_t>> history;  ///< with `observed`: State::before of every step
  std::size_t observedAt = 0;
  std::vector<Witness> seen;  ///< by state after the observed step
  WordsMap<std::uint32_t> index;
  std::vector<State> next;
  bool isUnknown = false;  ///< it has to end before it knows
  bool isPartial = false;  ///< a free value has a domain that is not known: failing proves nothing
  std::uint64_t placed = 0;

  void prepare(const std::vector<bool>& kept) {
    std::vector<bool> isIn(owner.m_graph.nodes.size(), false);
    for (NodeId n : owner.m_variables.steps()) {
      const bool isSource = owner.m_graph.node(n).kind != graph::NodeKind::Call;
      isIn[n.index()] = kept[n.index()] || n == observed ||
                        (owner.isBackground(n) && (!isSource || !owner.m_variables.pins(n).empty()));
    }
    for (NodeId n : owner.m_variables.steps()) {
      if (!isIn[n.index()]) continue;
      if (n == observed) observedAt = order.size();
      for (const Read& read : owner.m_variables.reads(n)) lastRead[read.value.raw()] = order.size();
      order.push_back(n);
    }
  }

  bool isReadAfter(ValueId v, std::size_t step) const {
    const auto found = lastRead.find(v.raw());
    return found != lastRead.end() && found->second > step;
  }

  Answer run() {
    for (std::size_t step = 0; step < order.size(); ++step) {
      advance(step);
      if (isUnknown) return Answer::Unknown;
      if (states.empty()) return isPartial ? Answer::Unknown : Answer::Fails;
    }
    return Answer::Holds;
  }

  /// Values that the node reads and nobody has placed: let-go ones lie anyhow.
  std::vector<ValueId> newReads(NodeId node) const {
    std::vector<ValueId> found;
    for (const Read& read : owner.m_variables.reads(node)) {
      const auto isSame = [&](ValueId v) { return v == read.value; };
      if (std::none_of(live.begin(), live.end(), isSame) && std::none_of(found.begin(), found.end(), isSame))
        found.push_back(read.value);
    }
    return found;
  }

  void advance(std::size_t step) {
    const NodeId node = order[step];
    const auto fresh = newReads(node);
    for (ValueId v : fresh) isPartial = isPartial || !owner.m_domains.isComplete(v);
    std::vector<ValueId> all = live;
    all.insert(all.end(), fresh.begin(), fresh.end());
    std::vector<std::size_t> readSlots;
    for (const Read& read : owner.m_variables.reads(node)) {
      readSlots.push_back(static_cast<std::size_t>(std::find(all.begin(), all.end(), read.value) - all.begin()));
    }
    std::vector<std::size_t> keptSlots, keptWrites;
    std::vector<ValueId> after;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (isReadAfter(all[i], step)) keptSlots.push_back(i), after.push_back(all[i]);
    }
    const auto writes = owner.m_variables.writes(node);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i].isValid() && isReadAfter(writes[i], step)) keptWrites.push_back(i), after.push_back(writes[i]);
    }
    index.clear();
    next.clear();
    for (std::uint32_t i = 0; i < states.size() && !isUnknown; ++i) {
      forEachPlacing(states[i].live, fresh, 0, node == observed, [&](const Words& placed) {
        countPlacing();
        Words reads;
        for (std::size_t slot : readSlots) reads.push_back(placed[slot]);
        Words base;
        for (std::size_t slot : keptSlots) base.push_back(placed[slot]);
        const auto take = [&](std::span<const PlacementId> written) {
          Words result = base;
          for (std::size_t w : keptWrites) result.push_back(written[w]);
          addState(std::move(result), i, node, reads, written);
        };
        if (node == observed) {
          forEachWrite(writes, take);
        } else {
          const CandidateRow& row = *owner.m_table.row(owner.m_asking, node, owner.classOf(node), reads);
          for (std::size_t ordinal = 0; ordinal < row.open.size(); ++ordinal) take(row.writesOf(ordinal));
        }
      });
    }
    live = std::move(after);
    states.swap(next);
    if (!observed.isValid()) return;
    auto& before = history.emplace_back();
    for (const State& state : states) before.push_back(state.before);
  }

  void countPlacing() {
    if (++placed % kPlacingsBetweenPolls != 0) return;
    owner.m_work.spend(kPlacingsBetweenPolls);
    isUnknown = isUnknown || owner.m_work.isOver();
  }

  /// The observed node sees operands that lie alike, or as its result is to lie, before others: what it says of them
  /// tells most.
  template <class Use>
  void forEachPlacing(const Words& placed, const std::vector<ValueId>& fresh, std::size_t at, bool isObserved,
                      const Use& use) {
    if (isUnknown) return;
    if (at == fresh.size()) return use(placed);
    Words choices = owner.m_domains.widened(fresh[at]);
    if (isObserved) {
      std::stable_partition(choices.begin(), choices.end(), [&](PlacementId id) {
        return std::find(preferred.begin(), preferred.end(), id) != preferred.end();
      });
    }
    Words longer = placed;
    longer.push_back(kReplicated);
    for (const PlacementId id : choices) {
      longer.back() = id;
      forEachPlacing(longer, fresh, at + 1, isObserved, use);
    }
  }

  /// Every way in which the results of the observed node may lie; those that nobody reads lie whole.
  template <class Use>
  void forEachWrite(std::span<const ValueId> writes, const Use& use) {
    std::vector<Words> all{{}};
    for (ValueId v : writes) {
      const bool isFree = v.isValid() && isReadAfter(v, observedAt);
      const Words choices = isFree ? owner.m_domains.widened(v) : Words{kReplicated};
      std::vector<Words> longer;
      for (const auto& known : all) {
        for (PlacementId id : choices) {
          longer.push_back(known);
          longer.back().push_back(id);
        }
      }
      all = std::move(longer);
    }
    for (const auto& written : all) use(written);
  }

  void addState(Words result, std::uint32_t before, NodeId node, const Words& reads,
                std::span<const PlacementId> written) {
    const auto [known, isNew] = index.try_emplace(result, static_cast<std::uint32_t>(next.size()));
    if (!isNew) return;
    next.push_back({std::move(result), before});
    isUnknown = isUnknown || next.size() > kMostStates;
    if (node != observed) return;
    Witness& witness = seen.emplace_back();
    for (const PlacementId id : reads) witness.reads.push_back(owner.m_table.placement(id));
    for (const PlacementId id : written) witness.writes.push_back(owner.m_table.placement(id));
  }

  Witness found() const {
    std::uint32_t state = 0;
    for (std::size_t step = order.size(); step-- > observedAt + 1;) state = history[step][state];
    return seen[state];
  }
};

Answer Relaxation::check(const std::vector<bool>& kept) {
  if (m_work.isOver()) return Answer::Unknown;
  Sweep sweep{.owner = *this};
  sweep.prepare(kept);
  return sweep.run();
}

std::optional<Witness> Relaxation::witness(const std::vector<bool>& kept, NodeId observed) {
  // The first look tells which splits are about; the second lets free operands lie so.
  std::optional<Witness> found;
  Words preferred;
  for (int look = 0; look < 2; ++look) {
    Sweep sweep{.owner = *this, .observed = observed, .preferred = preferred};
    sweep.prepare(kept);
    if (sweep.run() != Answer::Holds) return found;
    found = sweep.found();
    for (const auto* placements : {&found->writes, &found->reads}) {
      for (const Placement& placement : *placements) {
        if (placement.isSplit()) preferred.push_back(m_table.intern(placement));
      }
    }
  }
  return found;
}

}  // namespace cleave::solve
