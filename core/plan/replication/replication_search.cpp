#include "plan/replication/replication_search.h"

#include "base/quantities.h"
#include "plan/replication/choice_splits.h"
#include "plan/replication/if_redistributed.h"
#include "plan/replication/one_rank_cost.h"
#include "plan/replication/why_replicated.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <limits>

namespace cleave::plan {
namespace {

using graph::NodeId;
using solve::Change;
using solve::ChangeKind;
using solve::Choice;

/// The number of demands that are lifted one by one, before all are lifted together.
constexpr std::size_t kMostDemandsAlone = 8;

/// The limit of layers with equally fast split plans that are solved one by one for the memory of such a plan.
constexpr int kMostWeighed = 16;

bool isFirstSolution(solve::Engine engine) { return engine != solve::Engine::Optimal; }

}  // namespace

class ReplicationSearch::Search {
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
        m_whyReplicated(problem, solution),
        m_ifRedistributed(problem, m_variables, progress) {}

  ReplicationReason of(NodeId node, Part part) {
    const Choice choice = solve::choiceOf(m_variables, m_problem, m_solution, node);
    if (splits(choice, part, m_ranks)) return Split{};
    if (m_ranks == 1) return Cannot{"the plan has one rank"};
    const Possible& here = as({});
    if (!here.isKnown) return NotKnown{};
    if (const auto least = here.of(part)[node.index()]) return possible(node, part, *least - fs());
    if (!isFixed(node)) return underOtherSettings(node, part);
    return m_problem.graph->node(node).kind == graph::NodeKind::Parameter
               ? Cannot{whyReadersKeep(node)}
               : Cannot{"it is computed only from replicated inputs, constants and parameters"};
  }

 private:
  const solve::PlanCost& cost() {
    if (!m_cost) m_cost = m_optimum ? m_optimum->cost() : solve::costOf(m_problem, m_solution);
    return *m_cost;
  }
  Femtoseconds fs() { return cost().femtoseconds(); }
  /// Slower plans are excluded, whatever their memory.
  Femtoseconds slowest() { return m_optimum ? m_problem.cost.slowest(m_optimum->fastest().femtoseconds()) : fs(); }

  /// The reason why a parameter is replicated: its reader has no strategy that splits it.
  std::string whyReadersKeep(NodeId parameter) const {
    const graph::Graph& graph = *m_problem.graph;
    const auto& users = graph.value(graph.node(parameter).results.front()).users;
    if (users.empty()) return "no operator reads it";
    return fmt::format("no strategy of its reader {} splits it here", graph.opName(graph.node(users.front())));
  }

  /// The answer for the problem with these changes.
  Possible& as(const std::vector<Change>& changes) {
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

  /// For a node that some plan of this problem splits.
  ReplicationReason possible(NodeId node, Part part, Femtoseconds extraFs) {
    if (isFirstSolution(m_engine)) return notAskedFor({}, extraFs, {}, node, part);
    const bool isFastEnough = fs() + extraFs <= slowest();
    const bool isWeighed =
        isFastEnough && extraFs <= 0 && part == Part::Weight && m_variables.layer(node) && weighsLayers();
    if (isWeighed) return asFast(node, extraFs);
    const bool isOverBudget = m_optimum && fs() + extraFs < m_optimum->lowerBoundFs();
    return DoesNotPay{extraFs, 0, isFastEnough, isOverBudget, !isFastEnough || !m_optimum || m_optimum->isProved()};
  }

  NotAskedFor notAskedFor(std::vector<Change> changes, Femtoseconds extraFs, std::string why, NodeId node, Part part) {
    NotAskedFor setting{std::move(changes), extraFs, std::move(why)};
    setting.fit = fitOfFastest(setting.changes, node, part);
    if (setting.fit == BudgetFit::Over) setting.extraWithinFs = extraWithin(setting.changes, node, part);
    setting.isOfOptimal = isFirstSolution(m_engine);
    return setting;
  }

  /// Extra time of the fastest plan within the budget, if that plan splits the node.
  std::optional<Femtoseconds> extraWithin(const std::vector<Change>& changes, NodeId node, Part part) {
    const Possible::Fastest& fastest = *as(changes).fastest;
    if (!fastest.within || !splits(choiceIn(fastest, fastest.within->solution, node), part, m_ranks))
      return std::nullopt;
    return fastest.within->time - fs();
  }

  static Choice choiceIn(const Possible::Fastest& of, const solve::Solution& solution, NodeId node) {
    return solve::choiceOf(of.variables, of.problem, solution, node);
  }

  /// Does the fastest plan that splits it after these changes fit the budget?
  BudgetFit fitOfFastest(const std::vector<Change>& changes, NodeId node, Part part) {
    Possible& possible = as(changes);
    if (!possible.fastest) return BudgetFit::NotKnown;
    if (isBudgetBeyondAll()) return BudgetFit::Fits;
    Possible::Fastest& fastest = *possible.fastest;
    const Femtoseconds least = *possible.of(part)[node.index()];
    if (fastest.bytes <= fastest.problem.cost.budgetBytes()) {
      const Choice choice = choiceIn(fastest, fastest.solution, node);
      return splits(choice, part, m_ranks) && fastest.time == least ? BudgetFit::Fits : BudgetFit::NotKnown;
    }
    if (!fastest.leastWithin) fastest.leastWithin = leastWithinBudget(fastest);
    return least < *fastest.leastWithin ? BudgetFit::Over : BudgetFit::NotKnown;
  }

  /// Per rank, each value exists at most once whole, and once more while it is gathered: twice the memory of one rank.
  bool isBudgetBeyondAll() {
    if (m_isBudgetBeyondAll) return *m_isBudgetBeyondAll;
    m_isBudgetBeyondAll = costOfReplicated(m_problem).bytes() <= m_problem.cost.budgetBytes() / 2;
    return *m_isBudgetBeyondAll;
  }

  /// A lower bound of plans within the budget; 0 if unknown.
  Femtoseconds leastWithinBudget(Possible::Fastest& fastest) const {
    solve::Problem problem = fastest.problem;
    problem.cost.slackPercent = 0;
    const auto sink = solve::makeCountingSink();
    auto result = solve::solve(problem, solve::Engine::Optimal, *sink, m_progress);
    if (result && result->optimum) {
      if (result->optimum->isProved() && result->solution)
        fastest.within = {*std::move(result->solution), result->optimum->cost().femtoseconds()};
      return result->optimum->lowerBoundFs();
    }
    const bool isNone = result && result->outcome != solve::Outcome::Solved && result->isProved;
    return isNone ? Femtoseconds(std::numeric_limits<Wide>::max()) : Femtoseconds();
  }

  /// All candidates or no candidate, so that equal layers get equal reasons.
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

  /// Plans that split the layer are at least as fast, so memory or the budget decided. Solves for the best of them.
  ReplicationReason asFast(NodeId layer, Femtoseconds extraFs) {
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
    // The smallest plan within this problem's slack, which is relative to another plan.
    pinned.cost.slackPercent =
        fastest > 0 ? 100 * static_cast<double>(slowest() - fastest) / static_cast<double>(fastest) : 0;
    result = solve::solve(pinned, m_engine, *sink, m_progress);
    if (!result || !result->optimum) return NotKnown{};
    const bool isProved = result->optimum->isProved();
    return DoesNotPay{std::max(extraFs, fastest - fs()), result->optimum->cost().bytes() - cost().bytes(), true, false,
                      isProved};
  }

  /// True if the node is neither a layer nor depends on one: it is computed from replicated inputs.
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

  /// For a node that no plan of this problem splits: tries each setting, then all of them.
  ReplicationReason underOtherSettings(NodeId node, Part part) {
    const std::vector<Change> demands = demandsOf(node);
    bool isKnown = true;
    for (const std::vector<Change>& changes : otherSettings(demands)) {
      const auto least = leastAs(changes, node, part, isKnown);
      if (!least) continue;
      return notAskedFor(changes, *least - fs(), changes == demands ? std::string() : refusalUntil(changes, node, part),
                         node, part);
    }
    if (!isKnown) return NotKnown{};
    Cannot cannot{m_whyReplicated.of(node, part)};
    cannot.isUnlessRedistributed = redistributionSplits(node, part, cannot.withThat);
    return cannot;
  }

  /// Sets of changes, the smallest first. `demands`: those on the node itself, which come first.
  std::vector<std::vector<Change>> otherSettings(const std::vector<Change>& demands) const {
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
    return tries;
  }

  /// The least time of plans that split it after these changes. Sets `isKnown` to false if it is unknown.
  std::optional<Femtoseconds> leastAs(const std::vector<Change>& changes, NodeId node, Part part, bool& isKnown) {
    const Possible& then = as(changes);
    isKnown = isKnown && then.isKnown;
    return then.weight.empty() ? std::nullopt : then.of(part)[node.index()];
  }

  /// Also true if unknown. `withThat`: the settings that such a plan needs.
  bool redistributionSplits(NodeId node, Part part, std::vector<Change>& withThat) {
    const auto& all = m_problem.redistributable;
    if (std::find(all.begin(), all.end(), "*") != all.end() || !hasSplitStrategy(node, part)) return false;
    const auto answerWith = [&](const std::vector<Change>& others) {
      return m_ifRedistributed.splits(node, part, others);
    };
    solve::Answer withLess = answerWith({});
    if (withLess == solve::Answer::Holds) return true;
    std::vector<std::vector<Change>> tries = otherSettings({});
    // If all of them together do not help, no single one does.
    const solve::Answer withAll = tries.empty() ? withLess : answerWith(tries.back());
    if (withAll != solve::Answer::Holds) return withAll == solve::Answer::Unknown;
    for (std::vector<Change>& others : tries) {
      const solve::Answer answer = answerWith(others);
      if (answer == solve::Answer::Holds) {
        if (withLess == solve::Answer::Fails) withThat = std::move(others);
        break;
      }
      if (answer == solve::Answer::Unknown) withLess = answer;
    }
    return true;
  }

  /// True if its own sizes allow a split, whatever its inputs are.
  bool hasSplitStrategy(NodeId node, Part part) const {
    const auto layer = m_variables.layer(node);
    if (!layer) return true;
    rules::StrategyContext context = m_problem.context;
    context.candidateSet = rules::CandidateSet::Full;
    context.sequenceParallel = rules::SequenceParallel::Auto;
    const auto options = rules::layerStrategies(*m_problem.graph, node, *layer, context).offered;
    return std::any_of(options.begin(), options.end(),
                       [&](const rules::LayerStrategy& option) { return splits({.strategy = option}, part, m_ranks); });
  }

  /// The refusal that these changes lift. If they lift only demands, heads are not the reason.
  std::string refusalUntil(const std::vector<Change>& changes, NodeId node, Part part) {
    const bool isOfDemands = std::all_of(changes.begin(), changes.end(), [](const Change& c) {
      return c.kind == ChangeKind::LiftPin || c.kind == ChangeKind::RuleOn;
    });
    if (!isOfDemands) return m_whyReplicated.of(node, part);
    return m_variables.layer(node) ? m_whyReplicated.ofLayer(node) : std::string();
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

  const solve::Problem& m_problem;
  const solve::Solution& m_solution;
  const solve::Engine m_engine;
  const solve::Optimum* const m_optimum;
  const Progress m_progress;
  const solve::Variables m_variables;
  const int m_ranks;
  WhyReplicated m_whyReplicated;
  IfRedistributed m_ifRedistributed;
  std::optional<solve::PlanCost> m_cost;  ///< of the plan
  std::optional<bool> m_weighsLayers;
  std::optional<bool> m_isBudgetBeyondAll;
  std::vector<bool> m_isFixed;                 ///< by NodeId, as far as asked
  std::map<std::string, Possible> m_possible;  ///< by the changes' texts
};

ReplicationSearch::ReplicationSearch(const solve::Problem& problem, const solve::Solution& solution,
                                     solve::Engine engine, const solve::Optimum* optimum, const Progress& progress)
    : m_search(std::make_unique<Search>(problem, solution, engine, optimum, progress)) {}
ReplicationSearch::~ReplicationSearch() = default;

ReplicationReason ReplicationSearch::weight(graph::NodeId layer) { return m_search->of(layer, Part::Weight); }
ReplicationReason ReplicationSearch::work(graph::NodeId node) { return m_search->of(node, Part::Work); }

}  // namespace cleave::plan
