#include "solve/explain/relaxed.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using Origin = FrontierStep::Origin;

constexpr std::size_t kMostStates = 20'000;
constexpr std::size_t kPlacingsBetweenPolls = 1 << 8;
/// Memory limit of cached levels; above it they are computed again.
constexpr std::uint64_t kMostBytes = 256ull << 20;

}  // namespace

Relaxation::Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work)
    : m_ref{problem, variables},
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
  if (!known) known = m_table.classOf(m_ref, node);
  return *known;
}

const Relaxation::Domain& Relaxation::domainOf(ValueId value) {
  auto& known = m_domainOf[value.index()];
  if (!known) {
    const IdTuple& choices = m_domains.widened(value);
    const auto number = static_cast<std::uint32_t>(m_domainNumbers.size());
    known = Domain{choices, m_domainNumbers.try_emplace(choices, number).first->second};
  }
  return *known;
}

bool Relaxation::spend() {
  if (++m_spent % kPlacingsBetweenPolls == 0) m_work.spend(kPlacingsBetweenPolls);
  return m_spent % kPlacingsBetweenPolls == 0 && m_work.isOver();
}

/// The weight of a kept node in a sweep. A token is a placement, and only the set of states matters.
class Relaxation::KeptNode {
 public:
  KeptNode(Relaxation& owner, const FrontierStep& step) : m_owner(owner), m_step(step), m_exits(step.exits.size()) {}

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
    m_row = m_owner.m_table.row(m_owner.m_ref, m_step.node, m_owner.classOf(m_step.node), operands).get();
    return true;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_row->open.size()); }
  void weigh(std::uint32_t ordinal) { m_writes = m_row->writesOf(ordinal); }
  std::uint32_t exitToken(const FrontierStep::Exit& exit) const {
    switch (exit.origin) {
      case Origin::Slot: return m_before[exit.index];
      case Origin::Fresh: return m_operands[exit.index];
      case Origin::Write: return m_writes[exit.index];
      case Origin::Own: break;
    }
    return kReplicated;
  }
  void addExit(std::span<const std::uint32_t> tokens) {
    if (m_exits.add(tokens) == m_from.size()) m_from.push_back(m_state);
  }

  /// Null if there are too many states.
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

/// A kept node with some of its candidates.
class Relaxation::NarrowedNode : public Relaxation::KeptNode {
 public:
  NarrowedNode(Relaxation& owner, const FrontierStep& step, const Narrowing& narrowing)
      : KeptNode(owner, step), m_narrowing(narrowing), m_choices(step.operands.size()) {
    for (const std::uint32_t operand : step.fresh) {
      for (const PlacementId id : KeptNode::choicesOf(operand)) {
        if (narrowing.allowsPlacement(owner.m_table.placement(id))) m_choices[operand].push_back(id);
      }
    }
  }

  bool hasPlacements() const {
    return std::none_of(m_step.fresh.begin(), m_step.fresh.end(),
                        [&](std::uint32_t o) { return m_choices[o].empty(); });
  }
  std::span<const PlacementId> choicesOf(std::uint32_t operand) const { return m_choices[operand]; }
  bool place(std::span<const PlacementId> operands) {
    if (!KeptNode::place(operands)) return false;
    m_taken.clear();
    for (std::uint32_t ordinal = 0; ordinal < m_row->open.size(); ++ordinal) {
      if (m_narrowing.allowsChoice(m_step.node, m_row->open[ordinal])) m_taken.push_back(ordinal);
    }
    return true;
  }
  std::uint32_t candidates() const { return static_cast<std::uint32_t>(m_taken.size()); }
  void weigh(std::uint32_t candidate) { KeptNode::weigh(m_taken[candidate]); }

 private:
  const Narrowing& m_narrowing;
  std::vector<IdTuple> m_choices;  ///< by operand, for fresh operands
  IdTuple m_taken;                 ///< ordinals of the allowed candidates in the row
};

/// The observed node. It is relaxed, so its results may be placed in any way.
class Relaxation::ObservedNode : public Relaxation::KeptNode {
 public:
  ObservedNode(Relaxation& owner, const FrontierStep& step, const IdTuple& preferred) : KeptNode(owner, step) {
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
  void addExit(std::span<const std::uint32_t> tokens) {
    const std::size_t known = m_from.size();
    KeptNode::addExit(tokens);
    if (m_from.size() > known)
      m_seen.push_back({m_owner.m_table.placementsOf(m_operands), m_owner.m_table.placementsOf(m_writes)});
  }

  /// By exit state.
  std::vector<Witness> seen() { return std::move(m_seen); }

 private:
  /// Placements of `preferred` come first, because a witness with them gives the clearest reason.
  void addChoices(std::uint32_t operand, const IdTuple& preferred) {
    const auto domain = KeptNode::choicesOf(operand);
    IdTuple& choices = m_choices.emplace_back(domain.begin(), domain.end());
    std::stable_partition(choices.begin(), choices.end(), [&](PlacementId id) { return contains(preferred, id); });
  }

  /// Adds every combination of placements of its results. Results without readers are replicated.
  void addWrites() {
    m_allWrites = {{}};
    const auto writes = m_owner.m_variables.writes(m_step.node);
    for (std::uint32_t i = 0; i < writes.size(); ++i) {
      const bool isRead = std::any_of(m_step.exits.begin(), m_step.exits.end(), [&](const auto& exit) {
        return exit.origin == Origin::Write && exit.index == i;
      });
      const IdTuple all(isRead ? m_owner.m_domains.widened(writes[i]) : IdTuple{kReplicated});
      std::vector<IdTuple> longer;
      for (const IdTuple& known : m_allWrites) {
        for (const PlacementId id : all) {
          longer.push_back(known);
          longer.back().push_back(id);
        }
      }
      m_allWrites = std::move(longer);
    }
  }

  std::vector<IdTuple> m_choices;    ///< by FrontierStep::fresh
  std::vector<IdTuple> m_allWrites;  ///< of Variables::writes
  std::vector<Witness> m_seen;
};

/// Visits the kept nodes in order, and the observed node among them.
class Relaxation::Sweep {
 public:
  Sweep(Relaxation& owner, const std::vector<bool>& kept, NodeId observed = {}, IdTuple preferred = {})
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

  /// Requires that `run` returned Holds.
  Witness found() const {
    const auto observedAt =
        static_cast<std::size_t>(std::find(m_order.begin(), m_order.end(), m_observed) - m_order.begin());
    std::uint32_t state = 0;
    for (std::size_t i = m_order.size(); i-- > observedAt + 1;) state = m_levels[i]->from[state];
    return m_seen[state];
  }

 private:
  /// Null if there are too many states or the work limit was reached.
  std::shared_ptr<const Level> levelFor(const FrontierStep& step, const StateSet& entry) {
    auto& levels = m_owner.m_levels;
    m_kind.assign({m_owner.classOf(step.node)});
    step.appendConnections(m_kind);
    for (const std::uint32_t operand : step.fresh)
      m_kind.push_back(m_owner.domainOf(step.operands[operand].value).number);
    if (levels.memoryBytes() > kMostBytes) levels.clear();
    const auto key = levels.keyOf(m_kind, entry);
    if (auto known = levels.find(key)) return m_owner.spend() ? nullptr : known;
    KeptNode node(m_owner, step);
    auto level = sweepStep(step, entry, node) ? node.finished() : nullptr;
    if (level) levels.add(key, level);
    return level;
  }

  std::shared_ptr<const Level> observedLevel(const FrontierStep& step, const StateSet& entry) {
    ObservedNode node(m_owner, step, m_preferred);
    if (!sweepStep(step, entry, node)) return nullptr;
    m_seen = node.seen();
    return node.finished();
  }

  std::shared_ptr<const Level> narrowedLevel(const FrontierStep& step, const StateSet& entry) {
    NarrowedNode node(m_owner, step, *m_narrowing);
    return !node.hasPlacements() || sweepStep(step, entry, node) ? node.finished() : nullptr;
  }

  Relaxation& m_owner;
  const NodeId m_observed;
  const IdTuple m_preferred;               ///< for operands of `m_observed` that no kept node places
  const Narrowing* m_narrowing = nullptr;  ///< null: no filter
  std::vector<NodeId> m_order;
  bool m_isPartial = false;  ///< a fresh value has an incomplete domain, so a failure proves nothing
  IdTuple m_kind;
  std::vector<std::shared_ptr<const Level>> m_levels;  ///< by place in the order; filled only with an observed node
  std::vector<Witness> m_seen;                         ///< by exit state of the observed node
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
  // The first sweep finds the splits that matter. The second prefers them for free operands.
  std::optional<Witness> found;
  IdTuple preferred;
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
