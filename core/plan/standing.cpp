#include "plan/standing.h"

#include "base/quantities.h"
#include "graph/attention.h"
#include "plan/why_replicated.h"
#include "solve/problem/wording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace cleave::plan {
namespace {

using graph::NodeId;
using solve::Change;
using solve::ChangeKind;
using solve::Choice;
using Times = std::vector<std::optional<Femtoseconds>>;

enum class Part { Weight, Work };

/// Demands that are lifted one by one before all are.
constexpr std::size_t kMostDemandsAlone = 8;

/// Where no more layers than so many have split plans that are as fast, each is solved for to learn what such a plan
/// holds.
constexpr int kMostWeighed = 16;

/// What all plans of a problem could split, budget or not.
struct Possible {
  bool isKnown = false;
  Times weight, work;  ///< by NodeId: least time of the plans that split it; nullopt: none does
  const Times& of(Part part) const { return part == Part::Weight ? weight : work; }
};

Possible possibleBy(const solve::Optimum& optimum, int ranks) {
  Possible possible;
  possible.isKnown = optimum.knowsAllPlans();
  possible.weight =
      optimum.leastTimes([&](NodeId, const Choice& choice) { return choice.strategy && splitsWeight(choice, ranks); });
  possible.work = optimum.leastTimes([&](NodeId, const Choice& choice) { return splitsWork(choice, ranks); });
  return possible;
}

Possible possibleIn(solve::Problem problem, const Progress& progress) {
  problem.cost.memoryBudget = std::numeric_limits<std::int64_t>::max();
  problem.cost.slackPercent = 0;
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(problem, solve::Engine::Optimal, *sink, progress);
  if (result && result->optimum) return possibleBy(*result->optimum, problem.context.worldSize);
  Possible none;
  none.isKnown = result && result->outcome == solve::Outcome::NoSolution;
  none.weight.resize(problem.graph->nodes.size());
  none.work.resize(problem.graph->nodes.size());
  return none;
}

bool isFirstSolution(solve::Engine engine) { return engine != solve::Engine::Optimal; }

std::string settingText(const Change& change) {
  switch (change.kind) {
    case ChangeKind::LiftPin: return fmt::format("without the pin {}", change.argument);
    case ChangeKind::RuleOn: return fmt::format("with the rule of {} on", change.argument);
    case ChangeKind::FullCandidateSet: return "with the full candidate set";
    case ChangeKind::SequenceParallel: return "with sequence parallelism";
    default: return solve::toText(change);
  }
}

std::string longerText(Femtoseconds time) {
  if (time == 0) return "as long as this one";
  return fmt::format("{} {} per step", solve::timeText(time > 0 ? time : -time), time > 0 ? "longer" : "less");
}

/// Plans that split it are faster, but memory decides among those that the slack admits.
std::string savesNothing(const DoesNotPay& costs) {
  if (costs.isOverBudget && costs.isProved && costs.extraFs == 0)
    return "is replicated because of the memory budget: plans that split it take as long, and need more";
  if (costs.isOverBudget) {
    const std::string_view within = costs.isProved ? "of those within the budget none that is fast enough and needs no "
                                                     "more in total holds less throughout the step"
                                                   : "within the budget none was found that is fast enough, needs no "
                                                     "more in total and holds less throughout the step";
    return fmt::format(
        "is replicated because of the memory budget: the fastest of the plans that split it takes {} and needs more, "
        "and {}",
        longerText(costs.extraFs), within);
  }
  if (!costs.isProved) {
    return fmt::format(
        "is replicated in the best plan that was found: the fastest of the plans that split it takes {}, and whether "
        "one as fast stays within the memory budget is not known",
        longerText(costs.extraFs));
  }
  const std::string more = costs.extraBytes > 0
                               ? fmt::format("the one that holds least throughout the step needs {} more on each rank",
                                             bytesText(costs.extraBytes))
                               : std::string("none holds less throughout the step");
  return fmt::format(
      "is replicated because a rank then holds less: of the plans that split it and are fast enough {}, though the "
      "fastest takes {}",
      more, longerText(costs.extraFs));
}

std::string toText(const DoesNotPay& costs) {
  if (!costs.isFastEnough)
    return fmt::format("the best plan that does takes at least {} longer per step", solve::timeText(costs.extraFs));
  if (costs.extraBytes > 0)
    return fmt::format(
        "of the plans that do and are fast enough, the one that holds least throughout the step needs {} more on each "
        "rank",
        bytesText(costs.extraBytes));
  if (!costs.isProved)
    return fmt::format(
        "no plan was found that does, is fast enough, needs no more in total and holds less throughout the step; the "
        "fastest of all that do takes {}",
        longerText(costs.extraFs));
  if (costs.extraFs == 0)
    return "a plan that does is as fast, but none that is fast enough and needs no more in total holds less throughout "
           "the step";
  return fmt::format(
      "no plan that does is fast enough, needs no more in total and holds less throughout the step; the fastest of "
      "them takes {}",
      longerText(costs.extraFs));
}

}  // namespace

bool splitsWeight(const Choice& choice, int ranks) {
  if (!choice.strategy) return false;
  return rules::isSplit(*choice.strategy, ranks) ||
         (choice.strategy->strategy == rules::Strategy::Vocab && choice.strategy->input.isSplit());
}

bool splitsWork(const Choice& choice, int ranks) {
  if (choice.strategy) {
    const bool isOnSequence = choice.strategy->strategy == rules::Strategy::ReplicatedOnSequence;
    return splitsWeight(choice, ranks) || isOnSequence;
  }
  const auto& computed = choice.computedAs.empty() ? choice.results : choice.computedAs;
  return std::any_of(computed.begin(), computed.end(),
                     [&](const rules::Placement& p) { return !p.isReplicatedOn(ranks); });
}

std::string_view kindOf(const Standing& standing) {
  static constexpr std::string_view kKinds[] = {"split", "cannot", "does_not_pay", "not_asked_for", "not_known"};
  return kKinds[standing.index()];
}

std::string changesText(const NotAskedFor& setting) {
  std::vector<std::string> texts;
  for (const Change& change : setting.changes) texts.push_back(settingText(change));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string_view cannotText(const Cannot& cannot) {
  return cannot.isUnlessRedistributed ? "cannot be split without redistribution" : "cannot be split";
}

std::string toText(const Standing& standing) {
  if (std::holds_alternative<Split>(standing)) return "is split";
  if (const auto* cannot = std::get_if<Cannot>(&standing))
    return fmt::format("{}: {}", cannotText(*cannot), cannot->why);
  if (const auto* costs = std::get_if<DoesNotPay>(&standing)) {
    if (costs->isFastEnough && (costs->extraFs < 0 || costs->isOverBudget)) return savesNothing(*costs);
    return "does not pay to split: " + toText(*costs);
  }
  if (const auto* setting = std::get_if<NotAskedFor>(&standing)) {
    const std::string why = setting->why.empty() ? std::string() : fmt::format(" ({})", setting->why);
    if (setting->changes.empty()) {
      return fmt::format(
          "is replicated in the first plan that this engine finds{}; the fastest plan that splits it takes {}", why,
          longerText(setting->extraFs));
    }
    return fmt::format("is not asked to split{}: {} it can be, and the fastest such plan takes {}", why,
                       changesText(*setting), longerText(setting->extraFs));
  }
  return "is replicated; whether a plan splits it could not be determined within the limits of the search";
}

class Standings::Search {
 public:
  Search(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
         const solve::Optimum* optimum, const Progress& progress)
      : m_problem(problem),
        m_solution(solution),
        m_engine(engine),
        m_optimum(optimum),
        m_progress(progress),
        m_variables(problem),
        m_ranks(problem.context.worldSize),
        m_whyReplicated(problem, solution) {}

  Standing of(NodeId node, Part part) {
    const Choice choice = solve::choiceOf(m_variables, m_problem, m_solution, node);
    if (part == Part::Weight ? splitsWeight(choice, m_ranks) : splitsWork(choice, m_ranks)) return Split{};
    if (m_ranks == 1) return Cannot{"there is one rank"};
    const Possible& here = as({});
    if (!here.isKnown) return NotKnown{};
    if (const auto least = here.of(part)[node.index()]) return possible(node, part, *least - fs());
    return isFixed(node) ? Cannot{"it is computed from inputs, constants and parameters alone, which are replicated"}
                         : underOtherSettings(node, part);
  }

 private:
  const solve::PlanCost& cost() {
    if (!m_cost) m_cost = m_optimum ? m_optimum->cost() : solve::costOf(m_problem, m_solution);
    return *m_cost;
  }
  Femtoseconds fs() { return cost().femtoseconds(); }
  /// Plans that take longer are left out, whatever they hold.
  Femtoseconds slowest() { return m_optimum ? m_problem.cost.slowest(m_optimum->fastest().femtoseconds()) : fs(); }

  /// The answer for the problem after these changes.
  const Possible& as(const std::vector<Change>& changes) {
    std::string key;
    for (const Change& change : changes) key += solve::toText(change) + '\n';
    const auto [entry, isNew] = m_possible.try_emplace(std::move(key));
    if (!isNew) return entry->second;
    if (changes.empty() && m_optimum) return entry->second = possibleBy(*m_optimum, m_ranks);
    solve::Problem changed = m_problem;
    for (const Change& change : changes) {
      auto next = solve::applied(changed, change);
      if (!next) return entry->second;
      changed = *std::move(next);
    }
    return entry->second = possibleIn(std::move(changed), m_progress);
  }

  /// Some plan of this problem splits it.
  Standing possible(NodeId node, Part part, Femtoseconds extraFs) {
    if (isFirstSolution(m_engine)) return NotAskedFor{{}, extraFs, {}};
    const bool isFastEnough = fs() + extraFs <= slowest();
    const bool isWeighed =
        isFastEnough && extraFs <= 0 && part == Part::Weight && m_variables.layer(node) && weighsLayers();
    if (isWeighed) return asFast(node, extraFs);
    const bool isOverBudget = m_optimum && fs() + extraFs < m_optimum->lowerBoundFs();
    return DoesNotPay{extraFs, 0, isFastEnough, isOverBudget, !isFastEnough || !m_optimum || m_optimum->isProved()};
  }

  /// All layers that could be or none, so that equal ones are told the same.
  bool weighsLayers() {
    if (m_weighsLayers) return *m_weighsLayers;
    int count = 0;
    for (NodeId node : idRange<NodeId>(m_problem.graph->nodes.size())) {
      const auto& least = as({}).weight[node.index()];
      count += least && *least <= fs() && m_variables.layer(node) &&
               !splitsWeight(solve::choiceOf(m_variables, m_problem, m_solution, node), m_ranks);
    }
    m_weighsLayers = count <= kMostWeighed;
    return *m_weighsLayers;
  }

  /// Plans that split the layer are as fast or faster, so bytes decided, or the budget: of the best of them, by solving
  /// for it.
  Standing asFast(NodeId layer, Femtoseconds extraFs) {
    solve::Problem pinned = m_problem;
    solve::Pin pin;
    pin.pattern = graph::layerName(*m_problem.graph, layer);
    pin.text = pin.pattern + " split";
    const auto options =
        rules::layerStrategies(*m_problem.graph, layer, *m_variables.layer(layer), m_problem.context).offered;
    for (const rules::LayerStrategy& option : options) {
      const Choice choice{.strategy = option};
      if (splitsWeight(choice, m_ranks)) pin.strategies.push_back(option.strategy);
    }
    pinned.pins.push_back(std::move(pin));
    pinned.cost.slackPercent = 0;
    const auto sink = solve::makeCountingSink();
    auto result = solve::solve(pinned, m_engine, *sink, m_progress);
    if (!result) return NotKnown{};
    if (!result->optimum) {
      if (!result->isProved) return NotKnown{};
      return DoesNotPay{extraFs, 0, true, true};
    }
    const Femtoseconds fastest = result->optimum->fastest().femtoseconds();
    if (fastest > slowest()) return DoesNotPay{fastest - fs(), 0, false};
    // The leanest of those that this problem's slack admits, which counts from another plan.
    pinned.cost.slackPercent =
        fastest > 0 ? 100 * static_cast<double>(slowest() - fastest) / static_cast<double>(fastest) : 0;
    result = solve::solve(pinned, m_engine, *sink, m_progress);
    if (!result || !result->optimum) return NotKnown{};
    const bool isProved = result->optimum->isProved();
    return DoesNotPay{std::max(extraFs, fastest - fs()), result->optimum->cost().bytes() - cost().bytes(), true, false,
                      isProved};
  }

  /// Neither a layer nor behind one: computed from what every rank is given whole.
  bool isFixed(NodeId node) {
    const graph::Graph& graph = *m_problem.graph;
    for (NodeId n(static_cast<std::uint32_t>(m_isFixed.size())); n <= node; n = NodeId(n.raw() + 1)) {
      const auto operands = graph::operandsOf(graph.node(n));
      const bool isFixed =
          !m_variables.layer(n) && std::all_of(operands.begin(), operands.end(), [&](graph::ValueId operand) {
            return m_isFixed[graph.value(operand).producer.index()];
          });
      m_isFixed.push_back(isFixed);
    }
    return m_isFixed[node.index()];
  }

  /// No plan of this problem splits it: one of the settings, all of them, or none.
  Standing underOtherSettings(NodeId node, Part part) {
    const std::vector<Change> demands = demandsOf(node);
    std::vector<std::vector<Change>> tries;
    if (!demands.empty()) tries.push_back(demands);
    const std::vector<Change> all = allDemands();
    for (std::size_t i = 0; all.size() > 1 && i < std::min(all.size(), kMostDemandsAlone); ++i)
      tries.push_back({all[i]});
    if (!all.empty() && all != demands) tries.push_back(all);
    std::vector<Change> everything = all;
    for (const Change& change : settings()) {
      tries.push_back({change});
      everything.push_back(change);
    }
    if (everything.size() > 1) tries.push_back(everything);
    bool isKnown = true;
    for (const std::vector<Change>& changes : tries) {
      const Possible& then = as(changes);
      isKnown = isKnown && then.isKnown;
      if (then.weight.empty()) continue;
      if (const auto least = then.of(part)[node.index()])
        return NotAskedFor{changes, *least - fs(),
                           changes == demands ? std::string() : refusalUntil(changes, node, part)};
    }
    if (!isKnown) return NotKnown{};
    return Cannot{refusal(node, part), hasSplitStrategy(node, part)};
  }

  /// Whether its own sizes admit a split, whatever it reads. Not asked where all values may be redistributed already:
  /// that was tried.
  bool hasSplitStrategy(NodeId node, Part part) const {
    const auto& all = m_problem.redistributable;
    if (std::find(all.begin(), all.end(), "*") != all.end()) return false;
    const auto layer = m_variables.layer(node);
    if (!layer) return true;
    rules::StrategyContext context = m_problem.context;
    context.candidateSet = rules::CandidateSet::Full;
    context.sequenceParallel = rules::SequenceParallel::Auto;
    const auto options = rules::layerStrategies(*m_problem.graph, node, *layer, context).offered;
    return std::any_of(options.begin(), options.end(), [&](const rules::LayerStrategy& option) {
      const Choice choice{.strategy = option};
      return part == Part::Weight ? splitsWeight(choice, m_ranks) : splitsWork(choice, m_ranks);
    });
  }

  /// What these changes take away: where demands alone go, it was no number of heads.
  std::string refusalUntil(const std::vector<Change>& changes, NodeId node, Part part) {
    const bool isOfDemands = std::all_of(changes.begin(), changes.end(), [](const Change& c) {
      return c.kind == ChangeKind::LiftPin || c.kind == ChangeKind::RuleOn;
    });
    if (!isOfDemands) return refusal(node, part);
    return m_variables.layer(node) ? m_whyReplicated.refusal(node) : std::string();
  }

  std::vector<Change> demandsOf(NodeId node) const {
    std::vector<Change> changes;
    for (const std::string& pin : m_whyReplicated.demanded(node)) changes.push_back({ChangeKind::LiftPin, pin});
    return changes;
  }
  std::vector<Change> allDemands() const {
    std::vector<Change> changes;
    for (const solve::Pin& pin : m_problem.pins) changes.push_back({ChangeKind::LiftPin, pin.text});
    for (const std::string& rule : m_problem.rulesOff) changes.push_back({ChangeKind::RuleOn, rule});
    return changes;
  }
  std::vector<Change> settings() const {
    std::vector<Change> changes;
    if (m_problem.context.candidateSet != rules::CandidateSet::Full)
      changes.push_back({ChangeKind::FullCandidateSet, {}});
    if (m_problem.context.sequenceParallel == rules::SequenceParallel::Off)
      changes.push_back({ChangeKind::SequenceParallel, "auto"});
    return changes;
  }

  /// What stands in the way here, heads before all else: everything between the projections follows from them.
  std::string refusal(NodeId node, Part part) {
    if (std::string heads = headsRefusal(node); !heads.empty()) return heads;
    if (part == Part::Weight || m_variables.layer(node)) return m_whyReplicated.refusal(node);
    const std::string& onSequence = sequenceRefusal();
    return "what its operators read, and what reads their results, leaves them no strategy that splits them" +
           (onSequence.empty() ? "" : fmt::format(", and sequence parallelism none either, as {}", onSequence));
  }

  /// "the sequence of 128 does not divide by 3 ranks", where that refuses all layers their strategies along it; else
  /// empty.
  const std::string& sequenceRefusal() {
    if (m_sequenceRefusal) return *m_sequenceRefusal;
    m_sequenceRefusal.emplace();
    rules::StrategyContext context = m_problem.context;
    context.sequenceParallel = rules::SequenceParallel::On;
    std::string refusal;
    for (NodeId node : idRange<NodeId>(m_problem.graph->nodes.size())) {
      const auto& layer = m_variables.layer(node);
      if (!layer) continue;
      const auto isOnSequence = [](const auto& form) { return form.strategy == rules::Strategy::ReplicatedOnSequence; };
      const rules::LayerStrategies options = rules::layerStrategies(*m_problem.graph, node, *layer, context);
      if (std::any_of(options.offered.begin(), options.offered.end(), isOnSequence)) return *m_sequenceRefusal;
      const auto refused = std::find_if(options.refused.begin(), options.refused.end(), isOnSequence);
      if (refused != options.refused.end() && refusal.empty()) refusal = refused->reason;
    }
    return *(m_sequenceRefusal = std::move(refusal));
  }

  /// "28 heads do not divide by 8 ranks", of the attention in the node's module or between the projections that a layer
  /// is one of; empty: they do, or it is elsewhere.
  std::string headsRefusal(NodeId node) {
    const graph::Graph& graph = *m_problem.graph;
    graph::ScopeId scope = graph.node(node).scope;
    while (scope.isValid()) {
      if (const auto found = headsRefusals().find(graph.scope(scope).path); found != headsRefusals().end())
        return found->second;
      const graph::ScopeId parent = graph.scope(scope).parent;
      const bool isOuter = parent.isValid() && !graph.scope(parent).path.empty();
      scope = m_variables.layer(node) && isOuter ? parent : graph::ScopeId();
    }
    return {};
  }

  /// By the path of the module whose attention does not go by copies of KV heads; empty text: its heads divide.
  const std::unordered_map<std::string, std::string>& headsRefusals() {
    if (m_headsRefusals) return *m_headsRefusals;
    m_headsRefusals.emplace();
    const graph::Graph& graph = *m_problem.graph;
    for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
      const auto heads = graph::headsOf(graph, node);
      if (heads && !sharesKvHeads(*heads, m_problem.context))
        m_headsRefusals->try_emplace(graph.scope(graph.node(node).scope).path, headsText(*heads, m_ranks));
    }
    return *m_headsRefusals;
  }

  const solve::Problem& m_problem;
  const solve::Solution& m_solution;
  const solve::Engine m_engine;
  const solve::Optimum* const m_optimum;
  const Progress m_progress;
  const solve::Variables m_variables;
  const int m_ranks;
  const WhyReplicated m_whyReplicated;
  std::optional<solve::PlanCost> m_cost;  ///< of the plan
  std::optional<bool> m_weighsLayers;
  std::optional<std::string> m_sequenceRefusal;
  std::optional<std::unordered_map<std::string, std::string>> m_headsRefusals;
  std::vector<bool> m_isFixed;                 ///< by NodeId, as far as asked
  std::map<std::string, Possible> m_possible;  ///< by the changes' texts
};

std::string headsText(const graph::Heads& heads, int ranks) {
  if (heads.query % ranks != 0) return rules::doesNotDivide(heads.query, "head", ranks);
  if (heads.keyValue % ranks != 0) return rules::doesNotDivide(heads.keyValue, "KV head", ranks);
  return {};
}

bool sharesKvHeads(const graph::Heads& heads, const rules::StrategyContext& context) {
  const int ranks = context.worldSize;
  return heads.query % ranks == 0 && ranks % heads.keyValue == 0 && context.candidateSet == rules::CandidateSet::Full;
}

Standings::Standings(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
                     const solve::Optimum* optimum, const Progress& progress)
    : m_search(std::make_unique<Search>(problem, solution, engine, optimum, progress)) {}
Standings::~Standings() = default;

Standing Standings::weight(graph::NodeId layer) { return m_search->of(layer, Part::Weight); }
Standing Standings::work(graph::NodeId node) { return m_search->of(node, Part::Work); }

}  // namespace cleave::plan
