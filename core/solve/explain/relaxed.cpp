#include "solve/explain/relaxed.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using Origin = FrontierStep::Origin;

constexpr std::size_t kMostStates = 20'000;
constexpr std::size_t kPlacingsBetweenPolls = 1 << 8;
/// Of levels; where they take more, they are made anew.
constexpr std::uint64_t kMostBytes = 256ull << 20;

}  // namespace

Relaxation::Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work)
    : m_asking{problem, variables},
      m_variables(variables),
      m_graph(*problem.graph),
      m_domains(domains),
      m_table(domains.table()),
      m_work(work),
      m_isBackground(m_graph.nodes.size(), false),
      m_classOf(m_graph.nodes.size()),
      m_domainOf(m_graph.values.size()) {
  for (NodeId n : variables.deciders()) {
    m_isBackground[n.index()] = m_graph.node(n).kind != graph::NodeKind::Call || !m_variables.pins(n).empty();
  }
}

std::uint32_t Relaxation::classOf(NodeId node) {
  auto& known = m_classOf[node.index()];
  if (!known) known = m_table.classOf(m_asking, node);
  return *known;
}

const Relaxation::Domain& Relaxation::domainOf(ValueId value) {
  auto& known = m_domainOf[value.index()];
  if (!known) {
    const Words& choices = m_domains.widened(value);
    const auto number = static_cast<std::uint32_t>(m_domainNumbers.size());
    known = Domain{choices, m_domainNumbers.try_emplace(choices, number).first->second};
  }
  return *known;
}

bool Relaxation::spend() {
  if (++m_spent % kPlacingsBetweenPolls == 0) m_work.spend(kPlacingsBetweenPolls);
  return m_spent % kPlacingsBetweenPolls == 0 && m_work.isOver();
}

/// Takes a kept node: a token is a placement, and what matters is which states there are.
class Relaxation::Taken {
 public:
  Taken(Relaxation& owner, const FrontierStep& step) : m_owner(owner), m_step(step), m_exits(step.exits.size()) {}

  bool enter(std::uint32_t state, std::span<const std::uint32_t> before) {
    m_state = state;
    m_before = before;
    return true;
  }
  static PlacementId placementOf(std::uint32_t token) { return token; }
  std::span<const PlacementId> choicesOf(std::uint32_t operand) {
    return m_owner.domainOf(m_step.operands[operand].value).choices;
  }
  bool place(std::span<const PlacementId> operands) {
    if (m_owner.spend() || m_exits.count() > kMostStates) return false;
    m_operands = operands;
    m_row = m_owner.m_table.row(m_owner.m_asking, m_step.node, m_owner.classOf(m_step.node), operands).get();
    return true;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_row->open.size()); }
  void weigh(std::uint32_t ordinal) { m_writes = m_row->writesOf(ordinal); }
  std::uint32_t tokenBehind(const FrontierStep::Exit& exit) const {
    switch (exit.origin) {
      case Origin::Slot: return m_before[exit.index];
      case Origin::Fresh: return m_operands[exit.index];
      case Origin::Write: return m_writes[exit.index];
      case Origin::Own: break;
    }
    return kReplicated;
  }
  void take(std::span<const std::uint32_t> tokens) {
    if (m_exits.add(tokens) == m_from.size()) m_from.push_back(m_state);
  }

  /// Null: too many states.
  std::shared_ptr<const Level> finished() {
    if (m_exits.count() > kMostStates) return nullptr;
    auto exit = m_owner.m_levels.intern(m_exits.width(), m_exits.count(), m_exits.tokens());
    return std::make_shared<const Level>(Level{std::move(exit), std::move(m_from)});
  }

 protected:
  Relaxation& m_owner;
  const FrontierStep& m_step;
  StateCollector m_exits;
  std::vector<std::uint32_t> m_from;
  std::uint32_t m_state = 0;
  std::span<const std::uint32_t> m_before;
  std::span<const PlacementId> m_operands, m_writes;
  const CandidateRow* m_row = nullptr;
};

/// Takes a kept node by some of its candidates.
class Relaxation::Narrowed : public Relaxation::Taken {
 public:
  Narrowed(Relaxation& owner, const FrontierStep& step, const Narrowing& narrowing)
      : Taken(owner, step), m_narrowing(narrowing), m_choices(step.operands.size()) {
    for (const std::uint32_t operand : step.fresh) {
      for (const PlacementId id : Taken::choicesOf(operand)) {
        if (narrowing.mayLie(owner.m_table.placement(id))) m_choices[operand].push_back(id);
      }
    }
  }

  bool canLie() const {
    return std::none_of(m_step.fresh.begin(), m_step.fresh.end(),
                        [&](std::uint32_t o) { return m_choices[o].empty(); });
  }
  std::span<const PlacementId> choicesOf(std::uint32_t operand) const { return m_choices[operand]; }
  bool place(std::span<const PlacementId> operands) {
    if (!Taken::place(operands)) return false;
    m_taken.clear();
    for (std::uint32_t ordinal = 0; ordinal < m_row->open.size(); ++ordinal) {
      if (m_narrowing.mayTake(m_step.node, m_row->open[ordinal])) m_taken.push_back(ordinal);
    }
    return true;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_taken.size()); }
  void weigh(std::uint32_t candidate) { Taken::weigh(m_taken[candidate]); }

 private:
  const Narrowing& m_narrowing;
  std::vector<Words> m_choices;  ///< by operand; of fresh ones
  Words m_taken;                 ///< as ordinals of the row's candidates
};

/// Looks at the observed node, which is let go: its results may be placed in any way.
class Relaxation::Seen : public Relaxation::Taken {
 public:
  Seen(Relaxation& owner, const FrontierStep& step, const Words& preferred) : Taken(owner, step) {
    for (const std::uint32_t operand : step.fresh) addChoices(operand, preferred);
    addWrites();
  }

  std::span<const PlacementId> choicesOf(std::uint32_t operand) const {
    const auto at = std::find(m_step.fresh.begin(), m_step.fresh.end(), operand) - m_step.fresh.begin();
    return m_choices[static_cast<std::size_t>(at)];
  }
  bool place(std::span<const PlacementId> operands) {
    m_operands = operands;
    return !m_owner.spend() && m_exits.count() <= kMostStates;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_allWrites.size()); }
  void weigh(std::uint32_t ordinal) { m_writes = m_allWrites[ordinal]; }
  void take(std::span<const std::uint32_t> tokens) {
    const std::size_t known = m_from.size();
    Taken::take(tokens);
    if (m_from.size() > known)
      m_seen.push_back({m_owner.m_table.placementsOf(m_operands), m_owner.m_table.placementsOf(m_writes)});
  }

  /// By state behind.
  std::vector<Witness> seen() { return std::move(m_seen); }

 private:
  /// It sees operands that are placed alike, or as its result is to be, before others: what it says of them tells most.
  void addChoices(std::uint32_t operand, const Words& preferred) {
    const auto domain = Taken::choicesOf(operand);
    Words& choices = m_choices.emplace_back(domain.begin(), domain.end());
    std::stable_partition(choices.begin(), choices.end(), [&](PlacementId id) { return contains(preferred, id); });
  }

  /// Every way in which its results may be placed; those that nobody reads are replicated.
  void addWrites() {
    m_allWrites = {{}};
    const auto writes = m_owner.m_variables.writes(m_step.node);
    for (std::uint32_t i = 0; i < writes.size(); ++i) {
      const bool isRead = std::any_of(m_step.exits.begin(), m_step.exits.end(), [&](const auto& exit) {
        return exit.origin == Origin::Write && exit.index == i;
      });
      const Words all(isRead ? m_owner.m_domains.widened(writes[i]) : Words{kReplicated});
      std::vector<Words> longer;
      for (const Words& known : m_allWrites) {
        for (const PlacementId id : all) {
          longer.push_back(known);
          longer.back().push_back(id);
        }
      }
      m_allWrites = std::move(longer);
    }
  }

  std::vector<Words> m_choices;    ///< by FrontierStep::fresh
  std::vector<Words> m_allWrites;  ///< of Variables::writes
  std::vector<Witness> m_seen;
};

/// Takes the kept nodes in order, and looks at one that is let go.
class Relaxation::Sweep {
 public:
  Sweep(Relaxation& owner, const std::vector<bool>& kept, NodeId observed = {}, Words preferred = {})
      : m_owner(owner), m_observed(observed), m_preferred(std::move(preferred)) {
    for (const NodeId n : owner.m_variables.deciders()) {
      const bool isPinned = !owner.m_variables.pins(n).empty();
      if (kept[n.index()] || n == observed || isPinned) m_order.push_back(n);
    }
  }

  void narrow(const Narrowing& narrowing) { m_narrowing = &narrowing; }

  Answer run() {
    Frontier frontier(m_owner.m_variables, m_owner.m_graph.values.size(), m_order);
    const auto isCarried = [this](ValueId value) { return m_owner.domainOf(value).choices.size() > 1; };
    std::shared_ptr<const StateSet> states = m_owner.m_levels.intern(0, 1, {});
    for (std::size_t i = 0; i < m_order.size(); ++i) {
      const FrontierStep& step = frontier.next(isCarried);
      for (const std::uint32_t operand : step.fresh)
        m_isPartial = m_isPartial || !m_owner.m_domains.isComplete(step.operands[operand].value);
      const auto level = step.node == m_observed ? observedLevel(step, *states)
                         : m_narrowing           ? narrowedLevel(step, *states)
                                                 : levelFor(step, *states);
      if (!level) return Answer::Unknown;
      if (level->exit->count == 0) return m_isPartial ? Answer::Unknown : Answer::Fails;
      states = level->exit;
      if (m_observed.isValid()) m_levels.push_back(level);
    }
    return Answer::Holds;
  }

  /// After `run` held.
  Witness found() const {
    const auto observedAt =
        static_cast<std::size_t>(std::find(m_order.begin(), m_order.end(), m_observed) - m_order.begin());
    std::uint32_t state = 0;
    for (std::size_t i = m_order.size(); i-- > observedAt + 1;) state = m_levels[i]->from[state];
    return m_seen[state];
  }

 private:
  /// Null: too many states, or the work ended.
  std::shared_ptr<const Level> levelFor(const FrontierStep& step, const StateSet& entry) {
    auto& levels = m_owner.m_levels;
    m_kind.assign({m_owner.classOf(step.node)});
    step.nameWiring(m_kind);
    for (const std::uint32_t operand : step.fresh)
      m_kind.push_back(m_owner.domainOf(step.operands[operand].value).number);
    if (levels.memoryBytes() > kMostBytes) levels.clear();
    const auto key = levels.keyOf(m_kind, entry);
    if (auto known = levels.find(key)) return m_owner.spend() ? nullptr : known;
    Taken node(m_owner, step);
    auto level = takeStep(step, entry, node) ? node.finished() : nullptr;
    if (level) levels.add(key, level);
    return level;
  }

  std::shared_ptr<const Level> observedLevel(const FrontierStep& step, const StateSet& entry) {
    Seen node(m_owner, step, m_preferred);
    if (!takeStep(step, entry, node)) return nullptr;
    m_seen = node.seen();
    return node.finished();
  }

  std::shared_ptr<const Level> narrowedLevel(const FrontierStep& step, const StateSet& entry) {
    Narrowed node(m_owner, step, *m_narrowing);
    return !node.canLie() || takeStep(step, entry, node) ? node.finished() : nullptr;
  }

  Relaxation& m_owner;
  const NodeId m_observed;
  const Words m_preferred;                 ///< for operands of `m_observed` that nobody else places
  const Narrowing* m_narrowing = nullptr;  ///< null: nothing is left out
  std::vector<NodeId> m_order;
  bool m_isPartial = false;  ///< a fresh value has a domain that is not known: failing proves nothing
  Words m_kind;
  std::vector<std::shared_ptr<const Level>> m_levels;  ///< with an observed node: by place in the order
  std::vector<Witness> m_seen;                         ///< by state behind the observed node
};

Answer Relaxation::check(const std::vector<bool>& kept) {
  if (m_work.isOver()) return Answer::Unknown;
  return Sweep(*this, kept).run();
}

Answer Relaxation::check(const std::vector<bool>& kept, const Narrowing& narrowing) {
  if (m_work.isOver()) return Answer::Unknown;
  Sweep sweep(*this, kept);
  sweep.narrow(narrowing);
  return sweep.run();
}

std::optional<Witness> Relaxation::witness(const std::vector<bool>& kept, NodeId observed) {
  // The first look tells which splits are about; the second lets free operands be placed so.
  std::optional<Witness> found;
  Words preferred;
  for (int look = 0; look < 2; ++look) {
    Sweep sweep(*this, kept, observed, preferred);
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
