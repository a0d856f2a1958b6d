#include "solve/explain/core_finder.h"

#include "solve/explain/change.h"
#include "solve/explain/impossible.h"
#include "solve/explain/relaxed.h"
#include "solve/explain/sentences.h"
#include "solve/problem/budget_text.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <bit>

namespace cleave::solve {
namespace {

/// More constraints than this form a chain, of which only the ends are listed and the middle is counted.
constexpr std::size_t kMostListed = 8;

/// The items that remain after dropping all those without which `fails` still returns Fails. Halves are dropped first,
/// then single items.
struct Filtered {
  std::vector<std::size_t> kept;
  bool isIrreducible = true;
};
template <class Fails>
Result<Filtered> deletionFilter(std::size_t count, const Fails& fails) {
  Filtered filtered;
  for (std::size_t i = 0; i < count; ++i) filtered.kept.push_back(i);
  for (std::size_t size = std::bit_floor(count); size >= 1; size /= 2) {
    if (size == 1) filtered.isIrreducible = true;
    for (std::size_t at = 0; at < filtered.kept.size();) {
      std::vector<std::size_t> without = filtered.kept;
      const auto begin = without.begin() + static_cast<std::ptrdiff_t>(at);
      without.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, filtered.kept.size() - at)));
      CLEAVE_TRY(const Answer answer, fails(without));
      if (answer == Answer::Fails) {
        filtered.kept = std::move(without);
        continue;
      }
      if (answer == Answer::Unknown) filtered.isIrreducible = false;
      at += size;
    }
  }
  return filtered;
}

class CoreFinder {
 public:
  CoreFinder(const Problem& problem, const std::vector<Pin>& question, Work& work, SolveCache& cache, Engine engine)
      : m_problem(problem), m_question(question), m_work(work), m_cache(cache), m_engine(engine) {}

  Result<CoreAnswer> run() {
    CLEAVE_TRY(const Attempt whole, attempt(problemWith(allDemands()), m_work, m_engine, &m_cache));
    if (whole.answer == Answer::Holds) return CoreAnswer{CoreOutcome::HasSolution, {}};
    if (whole.answer == Answer::Unknown) return CoreAnswer{};
    m_causes = whole.causes;
    CLEAVE_TRY(const Filtered demands,
               deletionFilter(allDemands().size(), [&](const std::vector<std::size_t>& kept) -> Result<Answer> {
                 CLEAVE_TRY(const Attempt tried,
                            attempt(problemWith(kept), m_work, whole.isOverBudget ? m_engine : kExplaining, &m_cache));
                 return tried.answer;
               }));
    m_core.isIrreducible = demands.isIrreducible;
    const Problem least = problemWith(demands.kept);
    for (std::size_t demand : demands.kept) addDemand(least, demand);
    if (whole.isOverBudget) {
      addBudget();
    } else {
      addNodes(least);
    }
    for (Constraint& constraint : m_core.constraints) CLEAVE_TRY_VOID(addOffer(constraint));
    return CoreAnswer{CoreOutcome::HasCore, std::move(m_core)};
  }

 private:
  // ---- demands: pins of the problem, then its switched-off rules

  std::vector<std::size_t> allDemands() const {
    std::vector<std::size_t> all(m_problem.pins.size() + m_problem.rulesOff.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  Problem problemWith(const std::vector<std::size_t>& demands) const {
    Problem problem = m_problem;
    problem.pins = m_question;
    problem.rulesOff.clear();
    for (std::size_t demand : demands) {
      if (demand < m_problem.pins.size()) {
        problem.pins.push_back(m_problem.pins[demand]);
      } else {
        problem.rulesOff.push_back(m_problem.rulesOff[demand - m_problem.pins.size()]);
      }
    }
    return problem;
  }

  void addDemand(const Problem& least, std::size_t demand) {
    if (demand >= m_problem.pins.size()) {
      const std::string& rule = m_problem.rulesOff[demand - m_problem.pins.size()];
      m_core.constraints.push_back(
          {.kind = ConstraintKind::RuleOff,
           .text = fmt::format("You switched the rule of {} off, so it needs all its inputs replicated.", ticked(rule)),
           .lift = rule});
      return;
    }
    const Pin& pin = m_problem.pins[demand];
    const PinTargets targets = targetsOf(pin, *least.graph);
    Constraint constraint{.kind = ConstraintKind::Pin, .text = pinText(least, pin, targets), .lift = pin.text};
    if (!targets.layers.empty()) constraint.node = targets.layers.front();
    if (!targets.values.empty()) constraint.node = least.graph->value(targets.values.front()).producer;
    m_core.constraints.push_back(std::move(constraint));
  }

  /// "You pinned `lm_head` to row: it then needs its input `mul_30` split on its last dimension (S(2))."
  static std::string pinText(const Problem& problem, const Pin& pin, const PinTargets& targets) {
    const Graph& graph = *problem.graph;
    const std::size_t count = targets.layers.size() + targets.values.size();
    const std::string_view wanted = pin.wanted();
    const std::string_view verb = pin.forbids ? "forbade" : "pinned";
    const std::string_view join = pin.forbids ? "to be" : "to";
    if (count != 1) {
      return fmt::format("You {} {} {} that match {} {} {}.", verb, count, targets.layers.empty() ? "values" : "layers",
                         ticked(pin.pattern), join, wanted);
    }
    if (!targets.values.empty())
      return fmt::format("You {} {} {} {}.", verb, ticked(graph.value(targets.values.front()).name), join, wanted);
    const NodeId layer = targets.layers.front();
    const auto shape = graph::layerShape(graph, layer);
    std::vector<std::string> inputs;
    for (const auto& option : rules::layerStrategies(graph, layer, *shape, problem.context).offered) {
      const bool isWanted = std::find(pin.strategies.begin(), pin.strategies.end(),
                                      effectiveStrategy(option, problem.context.worldSize)) != pin.strategies.end();
      std::string text = inWords(option.input, graph.shapeOf(shape->input));
      if (isWanted != pin.forbids && std::find(inputs.begin(), inputs.end(), text) == inputs.end())
        inputs.push_back(std::move(text));
    }
    std::string text = fmt::format("You {} {} {} {}", verb, ticked(graph::layerName(graph, layer)), join, wanted);
    if (!inputs.empty()) {
      text += fmt::format("{} its input {} {}", pin.forbids ? "; the other strategies need" : ", which needs",
                          ticked(graph.value(shape->input).name), joined(inputs, "or"));
    }
    return text + ".";
  }

  void addBudget() {
    m_core.constraints.push_back(
        {.kind = ConstraintKind::Budget, .text = budgetText(m_problem, !m_core.constraints.empty(), true)});
  }

  // ---- changes

  /// The change that removes this constraint.
  std::optional<Change> changeFor(const Constraint& constraint) const {
    switch (constraint.kind) {
      case ConstraintKind::Pin:
        return constraint.lift ? std::optional(Change{ChangeKind::LiftPin, *constraint.lift}) : std::nullopt;
      case ConstraintKind::RuleOff:
        return constraint.lift ? std::optional(Change{ChangeKind::RuleOn, *constraint.lift}) : std::nullopt;
      case ConstraintKind::CandidateSet: return Change{ChangeKind::FullCandidateSet, {}};
      case ConstraintKind::Budget: return Change{ChangeKind::LiftBudget, {}};
      case ConstraintKind::Rule:
        if (!constraint.value.isValid()) return std::nullopt;
        return Change{ChangeKind::Redistribute, m_problem.graph->value(constraint.value).name};
      case ConstraintKind::Sizes: break;
    }
    return std::nullopt;
  }

  Result<void> addOffer(Constraint& constraint) {
    const auto change = changeFor(constraint);
    if (!change) return {};
    Problem asked = m_problem;
    asked.pins.insert(asked.pins.end(), m_question.begin(), m_question.end());
    if (!applied(asked, *change))
      return {};  // sources cannot be redistributed, and the device's memory cannot be raised
    CLEAVE_TRY(const Tried tried, tryChange(asked, *change, m_engine, m_work, &m_cache));
    if (tried.answer == Answer::Holds) constraint.offer = change;
    return {};
  }

  // ---- nodes

  void addNodes(const Problem& least) {
    const Variables variables(least);
    m_domains = m_cache.domains(m_problem, m_work);
    if (addImpossiblePins(least, variables)) return;
    Relaxation relaxation(least, variables, *m_domains, m_work);
    const auto order = nearestFirst(least, variables, relaxation);
    std::vector<NodeId> region;
    if (!grow(relaxation, order, region)) return giveUp(least);
    // Distant nodes are dropped first, so that the remaining ones are close to the demands.
    std::reverse(region.begin(), region.end());
    const auto keptOf = [&](const std::vector<std::size_t>& items) {
      std::vector<bool> kept(least.graph->nodes.size(), false);
      for (std::size_t i : items) kept[region[i].index()] = true;
      return kept;
    };
    const auto filtered = deletionFilter(region.size(), [&](const std::vector<std::size_t>& items) -> Result<Answer> {
      return relaxation.check(keptOf(items));
    });
    m_core.isIrreducible = m_core.isIrreducible && filtered->isIrreducible;
    std::vector<NodeId> nodes;
    for (std::size_t i : filtered->kept) nodes.push_back(region[i]);
    if (nodes.empty()) return explainPinned(least, variables, relaxation);
    std::sort(nodes.begin(), nodes.end());
    explainNodes(least, variables, relaxation, nodes, keptOf(filtered->kept));
  }

  /// Why a layer can have no strategy of these. A reason that names settings is preferred, then one that names sizes.
  std::optional<Constraint> whyNoneOf(const Problem& least, const Variables& variables, NodeId layer,
                                      const std::vector<rules::Strategy>& strategies) const {
    const auto preference = [](const Impossible& why) {
      return std::pair(why.kind == ConstraintKind::CandidateSet, why.kind == ConstraintKind::Sizes);
    };
    std::optional<Impossible> best;
    for (rules::Strategy strategy : strategies) {
      auto why = whyImpossible(least, variables, layer, strategy);
      if (!why) return std::nullopt;
      if (!best || preference(*best) < preference(*why)) best = std::move(why);
    }
    return best;
  }

  /// Adds pins that no strategy of their own layer or value satisfies. They need no other constraint.
  bool addImpossiblePins(const Problem& least, const Variables& variables) {
    bool any = false;
    for (const Pin& pin : least.pins) {
      if (pin.forbids) continue;
      const PinTargets targets = targetsOf(pin, *least.graph);
      std::optional<Constraint> found;
      for (ValueId v : targets.values) {
        if (!found) found = whyImpossible(least, variables, *m_domains, m_work, v, *pin.placement);
      }
      for (NodeId layer : targets.layers) {
        if (!found) found = whyNoneOf(least, variables, layer, pin.strategies);
      }
      if (!found) continue;
      m_core.constraints.push_back(*std::move(found));
      any = true;
    }
    return any;
  }

  /// Steps with their distance in the graph from the demands, nearest first. Sources do not connect nodes.
  std::vector<std::pair<std::uint32_t, NodeId>> nearestFirst(const Problem& least, const Variables& variables,
                                                             const Relaxation& relaxation) const {
    constexpr std::uint32_t kFar = 0xffffffffu;
    const Graph& graph = *least.graph;
    std::vector<std::uint32_t> distance(graph.nodes.size(), kFar);
    std::vector<NodeId> queue;
    const auto reach = [&](NodeId n, std::uint32_t d) {
      if (distance[n.index()] != kFar) return;
      distance[n.index()] = d;
      queue.push_back(n);
    };
    for (NodeId n : variables.deciders()) {
      if (!variables.pins(n).empty()) reach(n, 0);
    }
    for (const std::string& rule : least.rulesOff) {
      for (NodeId n : nodesWithOperator(rule, graph)) reach(n, 0);
    }
    if (queue.empty()) {
      for (const ConflictRecord& cause : m_causes) reach(cause.node, 0);
    }
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const NodeId n = queue[at];
      if (graph.node(n).kind != graph::NodeKind::Call) continue;
      for (const Read& read : variables.reads(n))
        reach(variables.decider(graph.value(read.value).producer), distance[n.index()] + 1);
      for (ValueId v : variables.writes(n)) {
        if (!v.isValid()) continue;
        for (NodeId user : graph.value(v).users) reach(user, distance[n.index()] + 1);
      }
    }
    std::vector<std::pair<std::uint32_t, NodeId>> order;
    for (NodeId n : variables.deciders()) {
      if (!relaxation.isBackground(n)) order.emplace_back(distance[n.index()], n);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return order;
  }

  /// Finds the first neighbourhood that cannot hold together; false if the work limit is reached first.
  bool grow(Relaxation& relaxation, const std::vector<std::pair<std::uint32_t, NodeId>>& order,
            std::vector<NodeId>& region) const {
    std::vector<bool> kept(m_problem.graph->nodes.size(), false);
    for (std::uint32_t radius = 0;; radius = std::max(radius + 1, radius + radius / 2)) {
      while (region.size() < order.size() && order[region.size()].first <= radius) {
        const NodeId n = order[region.size()].second;
        region.push_back(n);
        kept[n.index()] = true;
      }
      const bool isAll = region.size() == order.size() || order[region.size()].first == 0xffffffffu;
      if (isAll) {
        for (; region.size() < order.size(); region.push_back(order[region.size()].second))
          kept[order[region.size()].second.index()] = true;
      }
      const Answer answer = relaxation.check(kept);
      if (answer == Answer::Fails) return true;
      if (isAll || m_work.isOver()) return false;
    }
  }

  /// Without a proof over nodes, this reports the most frequent conflict of the search.
  void giveUp(const Problem& least) {
    m_core.isIrreducible = false;
    if (m_causes.empty()) return;
    const ConflictRecord& cause = m_causes.front();
    m_core.constraints.push_back(
        {.kind = ConstraintKind::Rule,
         .node = cause.node,
         .value = cause.culprits.empty() ? ValueId() : cause.culprits.front(),
         .text = fmt::format("The search fails here most often. {}", withName(least, cause.node, cause.reason))});
  }

  /// A rule names the operator, so the node's name is put in front.
  static std::string withName(const Problem& problem, NodeId node, const std::string& reason) {
    const std::string own = ticked(nameOf(*problem.graph, node, graph::layerShape(*problem.graph, node).has_value()));
    return reason.starts_with(own) ? reason : fmt::format("{}: {}", own, reason);
  }

  /// The pinned nodes fail with their sources alone, so this reports the strategies that the pins demand.
  void explainPinned(const Problem& least, const Variables& variables, Relaxation& relaxation) {
    const std::vector<bool> none(least.graph->nodes.size(), false);
    for (NodeId n : variables.deciders()) {
      if (variables.pins(n).empty()) continue;
      const auto witness = relaxation.witness(none, n);
      if (!witness) continue;
      Constraint constraint = constraintOf(least, variables, n, witness);
      const auto pins = variables.pins(n);
      for (const RuledOut& out : candidatesOf(least, variables, n, witness->reads).ruledOut) {
        const auto isDemandedBy = [&](std::uint32_t pin) { return admits(least, variables, pin, n, out.choice); };
        if (!out.pin.empty() || !std::all_of(pins.begin(), pins.end(), isDemandedBy)) continue;
        constraint.text = fmt::format("{} as {} {}.", ticked(nameOf(*least.graph, n, variables.layer(n).has_value())),
                                      nameOf(out.choice, least.context.worldSize), out.why);
        break;
      }
      m_core.constraints.push_back(std::move(constraint));
      return;
    }
    giveUp(least);
  }

  void explainNodes(const Problem& least, const Variables& variables, Relaxation& relaxation,
                    const std::vector<NodeId>& nodes, std::vector<bool> kept) {
    const auto explain = [&](NodeId n) {
      kept[n.index()] = false;
      const auto witness = relaxation.witness(kept, n);
      kept[n.index()] = true;
      m_core.constraints.push_back(constraintOf(least, variables, n, witness));
    };
    if (nodes.size() <= kMostListed) {
      for (NodeId n : nodes) explain(n);
      return;
    }
    constexpr std::size_t kEnds = kMostListed / 2 - 1;
    for (std::size_t i = 0; i < kEnds; ++i) explain(nodes[i]);
    const NodeId first = nodes[kEnds], last = nodes[nodes.size() - kEnds - 1];
    const auto name = [&](NodeId n) { return ticked(nameOf(*least.graph, n, variables.layer(n).has_value())); };
    m_core.constraints.push_back(
        {.kind = ConstraintKind::Rule,
         .node = first,
         .text = fmt::format("{} more operators from {} to {} propagate this.", withThousands(nodes.size() - 2 * kEnds),
                             name(first), name(last))});
    for (std::size_t i = nodes.size() - kEnds; i < nodes.size(); ++i) explain(nodes[i]);
  }

  /// What this node forbids while its neighbours are placed as all other nodes need them.
  Constraint constraintOf(const Problem& problem, const Variables& variables, NodeId node,
                          const std::optional<Witness>& witness) {
    Constraint constraint{.kind = ConstraintKind::Rule, .node = node};
    if (!witness) {
      constraint.text = withName(problem, node, "no placement of it is compatible with the rest.");
      return constraint;
    }
    const Candidates found = candidatesOf(problem, variables, node, witness->reads);
    if (found.open.empty()) {
      constraint.text = refusalText(problem, variables, node, *witness, found.conflict.reason);
      if (!found.conflict.culprits.empty()) constraint.value = found.conflict.culprits.front();
    } else {
      constraint.text = otherwiseText(problem, variables, node, *witness, found);
      // If no operands can give the placement, the reason with the numbers is better.
      const auto writes = variables.writes(node);
      if (writes.size() == 1 && witness->writes[0].isSplit()) {
        if (auto never = whyImpossible(problem, variables, *m_domains, m_work, writes[0], witness->writes[0]))
          constraint.text = std::move(never->text);
      }
    }
    addRefusals(problem, variables, node, constraint);
    return constraint;
  }

  /// Placements of the node's operands, each once: "`a` is S(1)", "`b` is R".
  static std::vector<std::string> whereText(const Problem& problem, const Variables& variables, NodeId node,
                                            const Witness& witness) {
    std::vector<std::string> where;
    const auto reads = variables.reads(node);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      std::string text =
          fmt::format("{} is {}", ticked(problem.graph->value(reads[i].value).name), witness.reads[i].text());
      if (std::find(where.begin(), where.end(), text) == where.end()) where.push_back(std::move(text));
    }
    return where;
  }

  /// A rule counts operands ("input 1"), so the names of several operands are put in front.
  static std::string refusalText(const Problem& problem, const Variables& variables, NodeId node,
                                 const Witness& witness, const std::string& reason) {
    const auto where = whereText(problem, variables, node, witness);
    std::string own = withName(problem, node, reason);
    constexpr std::size_t kMostNamed = 3;
    if (variables.layer(node) || where.size() < 2 || where.size() > kMostNamed) return own;
    return fmt::format("{} cannot be computed if {}: {}", ticked(nameOf(*problem.graph, node, false)),
                       joined(where, "and"), reason);
  }

  /// "If `a` is S(1) and `b` is S(1), `add_7` can only be split on dimension 1 (S(1))."
  static std::string otherwiseText(const Problem& problem, const Variables& variables, NodeId node,
                                   const Witness& witness, const Candidates& found) {
    const Graph& graph = *problem.graph;
    const auto where = whereText(problem, variables, node, witness);
    const auto writes = variables.writes(node);
    std::vector<std::string> possible;
    std::size_t at = 0;  // the first result whose needed placement no candidate gives
    for (std::size_t w = 0; w < writes.size(); ++w) {
      const auto givesIt = [&](const Choice& c) { return placementsOf(c)[w] == witness.writes[w]; };
      if (writes[w].isValid() && std::none_of(found.open.begin(), found.open.end(), givesIt)) {
        at = w;
        break;
      }
    }
    for (const Choice& choice : found.open) {
      std::string text = inWords(placementsOf(choice)[at], graph.shapeOf(writes[at]));
      if (std::find(possible.begin(), possible.end(), text) == possible.end()) possible.push_back(std::move(text));
    }
    std::string result = fmt::format("{} can only be {}", ticked(graph.value(writes[at]).name), joined(possible, "or"));
    // Another node needs a split. A need for R only means that the other nodes allow nothing else.
    if (witness.writes[at].isSplit())
      result += fmt::format(", but {} is needed", inWords(witness.writes[at], graph.shapeOf(writes[at])));
    return where.empty() ? result + "." : fmt::format("If {}, {}.", joined(where, "and"), result);
  }

  /// Adds the strategies of a layer that would have helped but are refused for their sizes.
  static void addRefusals(const Problem& problem, const Variables& variables, NodeId node, Constraint& constraint) {
    const auto& layer = variables.layer(node);
    if (!layer) return;
    std::vector<std::string> reasons;
    for (const rules::Refusal& refusal :
         rules::layerStrategies(*problem.graph, node, *layer, problem.context).refused) {
      std::string text = fmt::format("{} is impossible: {}", rules::toText(refusal.strategy), refusal.reason);
      if (std::find(reasons.begin(), reasons.end(), text) == reasons.end()) reasons.push_back(std::move(text));
    }
    if (reasons.empty()) return;
    constraint.kind = ConstraintKind::Sizes;
    constraint.text += fmt::format(" For {}, {}.", ticked(nameOf(*problem.graph, node, true)), joined(reasons, "and"));
  }

  const Problem& m_problem;
  const std::vector<Pin>& m_question;
  Work& m_work;
  SolveCache& m_cache;
  const Engine m_engine;
  std::shared_ptr<Domains> m_domains;
  std::vector<ConflictRecord> m_causes;
  Core m_core;
};

}  // namespace

Result<CoreAnswer> findCore(const Problem& problem, const std::vector<Pin>& question, Work& work, SolveCache& cache,
                            Engine engine) {
  return CoreFinder(problem, question, work, cache, engine).run();
}

}  // namespace cleave::solve
