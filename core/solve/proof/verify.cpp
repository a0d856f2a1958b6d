#include <algorithm>

#include "base/checked.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/wording.h"
#include "solve/proof/certificate.h"
#include "solve/proof/choices.h"

namespace cleave::solve {
namespace {

constexpr std::uint32_t kStatesBetweenPolls = 64;

/// Limits of untrusted numbers. Weights and claims are so far below 128 bits that sums of a few of them are exact.
constexpr Wide kMostWeight = Wide(1) << 100, kMostClaim = Wide(1) << 120, kMostCost = Wide(1) << 124;

/// The product, but at most kMostCost, which is larger than any claim.
Wide times(Wide weight, Wide amount) {
  Wide product = 0;
  return __builtin_mul_overflow(weight, amount, &product) || product > kMostCost ? kMostCost : product;
}
bool isClaim(Wide number) { return -kMostClaim <= number && number <= kMostClaim; }

template <class... Args>
tl::unexpected<Error> refused(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::BadInput, "The certificate is invalid: {}", fmt::format(text, std::forward<Args>(args)...));
}

/// The values of a state's tokens: the bucket (an invalid value) first, then values in ascending order.
using LiveValues = std::vector<ValueId>;

class Verifier {
 public:
  Verifier(const Problem& problem, const Certificate& certificate, const Progress& progress)
      : m_problem(problem),
        m_certificate(certificate),
        m_progress(progress),
        m_variables(problem),
        m_model(problem, m_variables) {}

  Result<Certified> run() {
    CLEAVE_TRY_VOID(checkOrder());
    CLEAVE_TRY_VOID(checkForced());
    CLEAVE_TRY_VOID(checkTables());
    for (std::size_t at = 0; at < m_certificate.order.size(); ++at) CLEAVE_TRY_VOID(checkStep(at));
    CLEAVE_TRY(m_certified.lowerBound, bound());
    if (m_certificate.byteWeight == 0) {
      CLEAVE_TRY(const Solution attained, planAtBound());
      m_certified.bytesAtBound = m_model.evaluate(attained).bytes();
    }
    return m_certified;
  }

 private:
  std::string nameOf(NodeId node) const {
    return ticked(solve::nameOf(*m_problem.graph, node, m_variables.layer(node).has_value()));
  }

  /// Checks that every step is in `order` at most once and after its operands. All other steps are forced: they have no
  /// choice in any plan.
  Result<void> checkOrder() {
    const auto& graph = *m_problem.graph;
    const auto isWeight = [](Wide weight, Wide least) { return least <= weight && weight <= kMostWeight; };
    if (!isWeight(m_certificate.timeWeight, 1) || !isWeight(m_certificate.byteWeight, 0))
      return refused("a weight is out of range.");
    if (m_certificate.boundaries.size() != m_certificate.order.size() + 1)
      return refused("it has {} boundaries for {} steps.", m_certificate.boundaries.size(), m_certificate.order.size());
    m_place.assign(graph.nodes.size(), kForced);
    for (std::size_t at = 0; at < m_certificate.order.size(); ++at) {
      const NodeId node = m_certificate.order[at];
      if (node.index() >= graph.nodes.size() || !m_variables.isStep(node))
        return refused("node {} is not a step.", node.raw());
      if (m_place[node.index()] != kForced) return refused("{} is in the order twice.", nameOf(node));
      m_place[node.index()] = at;
    }
    m_lastRead.assign(graph.values.size(), 0);
    m_firstRead.assign(graph.values.size(), kForced);
    for (std::size_t at = 0; at < m_certificate.order.size(); ++at) {
      for (const Read& read : m_variables.reads(m_certificate.order[at])) {
        const std::size_t writer = placeOf(read.value);
        if (writer != kForced && writer >= at)
          return refused("{} comes before one of its operands.", nameOf(m_certificate.order[at]));
        m_lastRead[read.value.index()] = at + 1;
        m_firstRead[read.value.index()] = std::min(m_firstRead[read.value.index()], at);
      }
      if (!m_model.maySumGradients(m_certificate.order[at])) continue;
      m_firstSum = std::min(m_firstSum, at);
      m_lastSum = at;
    }
    return {};
  }

  /// Position of the step that places a value; kForced if it is R in every plan.
  std::size_t placeOf(ValueId value) const {
    return m_place[m_variables.decider(m_problem.graph->value(value).producer).index()];
  }

  /// Checks that steps outside `order` read only values that are R in every plan, and that R is their only choice.
  Result<void> checkForced() {
    for (const NodeId node : m_variables.deciders()) {
      if (m_place[node.index()] != kForced) continue;
      const auto reads = m_variables.reads(node);
      for (const Read& read : reads) {
        if (placeOf(read.value) != kForced) return refused("{} has a choice but is not in the order.", nameOf(node));
      }
      const std::vector<Placement> whole(reads.size());
      const auto choices = choicesOf(m_problem, m_variables, node, whole);
      const auto isWhole = [](const Choice& choice) {
        const auto placed = placementsOf(choice);
        return std::all_of(placed.begin(), placed.end(), [](const Placement& p) { return p.isReplicated(); });
      };
      if (choices.size() != 1 || !isWhole(choices.front()))
        return refused("{} has a choice but is not in the order.", nameOf(node));
      const StepCost cost = m_model.step(node, choices.front(), whole);
      m_forced += cost;
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (m_model.mayShare(reads[i].value) && m_model.needsShared(node, choices.front(), whole, i) != kSharesNothing)
          return refused("{} shares a collective but is not in the order.", nameOf(node));
      }
    }
    if (m_forced.summedGradients > 0) return refused("the order lacks a step that sums gradients.");
    return {};
  }

  /// The values of a state after the step at `at`, from the values of a state before it.
  LiveValues valuesAfter(std::size_t at, const LiveValues& before) const {
    const NodeId node = m_certificate.order[at];
    LiveValues live;
    const auto add = [&](ValueId value) {
      if (value.isValid() && m_lastRead[value.index()] > at + 1) live.push_back(value);
    };
    for (const ValueId value : before) add(value);
    for (const ValueId value : m_variables.writes(node)) add(value);
    for (const Read& read : m_variables.reads(node)) {
      const bool isFirst = m_firstRead[read.value.index()] == at && placeOf(read.value) == kForced;
      if (isFirst && m_model.mayShare(read.value)) add(read.value);
    }
    std::sort(live.begin(), live.end());
    live.erase(std::unique(live.begin(), live.end()), live.end());
    if (m_firstSum <= at && at < m_lastSum) live.insert(live.begin(), ValueId());
    return live;
  }

  Result<void> checkTables() {
    for (const auto& boundary : m_certificate.boundaries) {
      if (boundary.states >= m_certificate.states.size() || boundary.claims >= m_certificate.claims.size())
        return refused("a boundary refers to a table that does not exist.");
      if (m_certificate.states[boundary.states].count != m_certificate.claims[boundary.claims].size())
        return refused("a boundary has different numbers of claims and states.");
      if (!isClaim(boundary.base)) return refused("a claim is too large to be a cost.");
    }
    for (const CertifiedClaims& claims : m_certificate.claims) {
      const auto isTooLarge = [](const std::optional<Wide>& claim) { return claim && !isClaim(*claim); };
      if (std::any_of(claims.begin(), claims.end(), isTooLarge)) return refused("a claim is too large to be a cost.");
    }
    for (const CertifiedStates& table : m_certificate.states) {
      if (table.width > m_problem.graph->values.size() + 1)
        return refused("a state has more tokens than there are values.");
      if (table.tokens.size() != table.width * table.count) return refused("a table has the wrong number of tokens.");
      for (const CertifiedToken& token : table.tokens) {
        if (token.placement >= m_certificate.placements.size())
          return refused("a state refers to a placement that does not exist.");
      }
    }
    for (std::uint32_t id = 0; id < m_certificate.placements.size(); ++id) {
      if (!m_ids.try_emplace(m_certificate.placements[id], id).second) return refused("it contains a placement twice.");
    }
    const std::size_t end = m_certificate.order.size();
    if (tableAt(0).width != 0 || tableAt(0).count != 1)
      return refused("its first boundary does not have exactly one state without values.");
    if (tableAt(end).width != 0 || tableAt(end).count != 1)
      return refused("its last boundary does not have exactly one state without values.");
    if (toGo(end, 0).value_or(0) > 0) return refused("the claimed cost after the last step is not 0.");
    return {};
  }

  const CertifiedStates& tableAt(std::size_t at) const {
    return m_certificate.states[m_certificate.boundaries[at].states];
  }
  /// The claimed cost of the rest from a state; nullopt if no plan continues from it.
  std::optional<Wide> toGo(std::size_t at, std::size_t state) const {
    const auto& boundary = m_certificate.boundaries[at];
    const auto& relative = m_certificate.claims[boundary.claims][state];
    return relative ? std::optional(*relative + boundary.base) : std::nullopt;
  }

  /// The index of a table. Boundaries with equal tables share it.
  using Index = std::unordered_map<std::string, std::uint32_t>;
  const Index& indexOf(std::size_t at) {
    const auto [known, isNew] = m_indices.try_emplace(m_certificate.boundaries[at].states);
    if (!isNew) return known->second;
    const CertifiedStates& table = tableAt(at);
    for (std::uint32_t state = 0; state < table.count; ++state) {
      known->second.emplace(keyOf({table.tokens.data() + state * table.width, table.width}), state);
    }
    return known->second;
  }
  static std::string keyOf(std::span<const CertifiedToken> tokens) {
    std::string key;
    for (const CertifiedToken& token : tokens) {
      const std::uint32_t word = token.placement << 2 | token.paid;
      key.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
    return key;
  }

  Result<void> checkStep(std::size_t at) {
    const LiveValues before = std::move(m_after);
    m_after = valuesAfter(at, before);
    const CertifiedStates& table = tableAt(at);
    const NodeId node = m_certificate.order[at];
    if (table.width != before.size())
      return refused("a state before {} has {} tokens instead of {}.", nameOf(node), table.width, before.size());
    if (tableAt(at + 1).width != m_after.size())
      return refused("a state after {} has {} tokens instead of {}.", nameOf(node), tableAt(at + 1).width,
                     m_after.size());
    for (std::uint32_t state = 0; state < table.count; ++state) {
      if (state % kStatesBetweenPolls == 0 && m_progress.cancelled())
        return m_progress.cancelledError("checking a certificate");
      CLEAVE_TRY_VOID(checkState(at, before, state));
    }
    return {};
  }

  /// Makes `state` the current one and returns the placements of its step's operands.
  std::vector<Placement> enter(std::size_t at, const LiveValues& before, std::uint32_t state) {
    const CertifiedToken* tokens = tableAt(at).tokens.data() + std::size_t(state) * before.size();
    m_placementOf.clear();
    m_paid.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].isValid()) m_placementOf.emplace(before[i].raw(), m_certificate.placements[tokens[i].placement]);
      m_paid.emplace(before[i].isValid() ? before[i].raw() : kBucket, tokens[i].paid);
    }
    std::vector<Placement> reads;
    for (const Read& read : m_variables.reads(m_certificate.order[at])) {
      const auto found = m_placementOf.find(read.value.raw());
      reads.push_back(found == m_placementOf.end() ? Placement() : found->second);
    }
    return reads;
  }

  /// A plan whose costs equal all claims along its path. Requires checked claims.
  Result<Solution> planAtBound() {
    const graph::Graph& graph = *m_problem.graph;
    Solution solution = emptySolution(graph);
    m_after.clear();
    std::uint32_t state = 0;
    for (std::size_t at = 0; at < m_certificate.order.size(); ++at) {
      if (at % kStatesBetweenPolls == 0 && m_progress.cancelled())
        return m_progress.cancelledError("checking a certificate");
      const LiveValues before = std::move(m_after);
      m_after = valuesAfter(at, before);
      const NodeId node = m_certificate.order[at];
      const auto reads = enter(at, before, state);
      bool isTight = false;
      for (const Choice& choice : choicesOf(m_problem, m_variables, node, reads)) {
        CLEAVE_TRY(const auto rest, restAfter(at, choice, reads));
        isTight = rest && *rest == toGo(at, state);
        if (!isTight) continue;
        applyChoice(graph, node, m_variables.writes(node), choice, solution);
        state = m_reached;
        break;
      }
      if (!isTight) return refused("no choice of {} has the claimed cost.", nameOf(node));
    }
    return solution;
  }

  Result<void> checkState(std::size_t at, const LiveValues& before, std::uint32_t state) {
    const NodeId node = m_certificate.order[at];
    const auto known = toGo(at, state);
    const std::vector<Placement> reads = enter(at, before, state);
    for (const Choice& choice : choicesOf(m_problem, m_variables, node, reads)) {
      ++m_certified.transitions;
      CLEAVE_TRY(const auto rest, restAfter(at, choice, reads));
      if (!rest) continue;
      if (!known) return refused("a state before {} has no claimed cost, but a plan continues from it.", nameOf(node));
      if (*rest < *known) {
        return refused("a choice of {} costs less than the claimed minimum.", nameOf(node));
      }
    }
    return {};
  }

  /// The weighted cost of this choice plus the claimed minimum after it; nullopt if it leads to no plan.
  Result<std::optional<Wide>> restAfter(std::size_t at, const Choice& choice, const std::vector<Placement>& reads) {
    const NodeId node = m_certificate.order[at];
    auto placementOf = m_placementOf;
    auto paid = m_paid;
    StepCost cost = m_model.step(node, choice, reads);
    const auto values = m_variables.reads(node);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId value = values[i].value;
      if (!m_model.mayShare(value)) continue;
      Shares& known = paid[value.raw()];
      const Shares fresh = m_model.needsShared(node, choice, reads, i) & ~known;
      if (fresh != kSharesNothing) cost += m_model.shared(value, reads[i], fresh);
      known |= fresh;
    }
    Shares& bucket = paid[kBucket];
    if (cost.summedGradients > 0 && bucket == kSharesNothing) {
      bucket = kSharesGradientSum;
      cost += m_model.bucketStart();
    }
    const auto writes = m_variables.writes(node);
    const auto placed = placementsOf(choice);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!writes[i].isValid()) continue;
      placementOf.insert_or_assign(writes[i].raw(), placed[i]);
      paid.insert_or_assign(writes[i].raw(), m_model.paysShared(node, choice, i));
    }
    CLEAVE_TRY(m_reached, stateAfter(at, placementOf, paid));
    const auto rest = toGo(at + 1, m_reached);
    if (!rest) return std::optional<Wide>();
    return std::optional(weigh(cost) + *rest);
  }

  using PlacementOf = std::unordered_map<std::uint32_t, Placement>;
  using Paid = std::unordered_map<std::uint32_t, Shares>;
  Result<std::uint32_t> stateAfter(std::size_t at, const PlacementOf& placementOf, const Paid& paid) {
    std::vector<CertifiedToken> tokens;
    for (const ValueId value : m_after) {
      CertifiedToken& token = tokens.emplace_back();
      const auto found = paid.find(value.isValid() ? value.raw() : kBucket);
      if (found != paid.end()) token.paid = found->second;
      const auto placement = value.isValid() ? placementOf.find(value.raw()) : placementOf.end();
      const auto id = m_ids.find(placement == placementOf.end() ? Placement() : placement->second);
      if (id == m_ids.end()) return missing(at);
      token.placement = id->second;
    }
    const Index& index = indexOf(at + 1);
    const auto found = index.find(keyOf(tokens));
    return found == index.end() ? missing(at) : Result<std::uint32_t>(found->second);
  }
  Result<std::uint32_t> missing(std::size_t at) const {
    return refused("a choice of {} leads to a state that does not exist in it.", nameOf(m_certificate.order[at]));
  }

  Wide weigh(const StepCost& cost) const {
    return times(m_certificate.timeWeight, cost.femtoseconds().count()) +
           times(m_certificate.byteWeight, Wide(cost.bytes()));
  }

  /// The bound on the time, from the weighted bound. Plans within the budget need at most its bytes.
  Result<Femtoseconds> bound() const {
    const auto least = toGo(0, 0);
    if (!least) return refused("it claims that there is no plan.");
    Wide time = *least + weigh(m_forced);
    if (m_certificate.byteWeight > 0) {
      const std::int64_t budget = m_problem.cost.budgetBytes();
      time -= times(m_certificate.byteWeight, std::max<Wide>(0, Wide(budget) - m_model.fixedBytes()));
    }
    time = (time + m_certificate.timeWeight - 1) / m_certificate.timeWeight;
    return Femtoseconds(std::max<Wide>(time, 0));
  }

  static constexpr std::size_t kForced = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint32_t kBucket = std::numeric_limits<std::uint32_t>::max();

  const Problem& m_problem;
  const Certificate& m_certificate;
  const Progress& m_progress;
  const Variables m_variables;
  const CostModel m_model;
  std::vector<std::size_t> m_place;                  ///< by NodeId: index into `order`
  std::vector<std::size_t> m_lastRead, m_firstRead;  ///< by ValueId: index into `order`, plus one for the last
  std::size_t m_firstSum = kForced, m_lastSum = 0;
  StepCost m_forced;
  std::unordered_map<Placement, std::uint32_t> m_ids;
  std::unordered_map<std::uint32_t, Index> m_indices;  ///< by table
  LiveValues m_after;
  PlacementOf m_placementOf;  ///< for the current state
  Paid m_paid;
  std::uint32_t m_reached = 0;  ///< exit state found by restAfter
  Certified m_certified;
};

}  // namespace

Result<Certified> verify(const Problem& problem, const Certificate& certificate, const Progress& progress) {
  return Verifier(problem, certificate, progress).run();
}

}  // namespace cleave::solve
