#include "graph/graph_builder.h"
#include "solve/candidates/candidates.h"
#include "tests/support/brute_force.h"
#include "tests/support/optimal_support.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"

#include <set>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

constexpr std::size_t kMostPlans = 20'000;

std::string placementsText(const Problem& problem, const Solution& solution) {
  std::string text;
  for (graph::ValueId v : idRange<graph::ValueId>(problem.graph->values.size())) {
    text += fmt::format("{}={} ", problem.graph->value(v).name, solution.of(v).text());
  }
  return text;
}

/// Compares one random problem with all its plans. The result is the first difference; empty if equal.
class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : m_seed(seed), m_random(seed) {}

  /// Counts of comparisons.
  bool hasBudget = false, isSkipped = false, hasPlan = false, isUnproved = false, hasSlack = false,
       isFrontThinned = false, isRegretUnknown = false;

  std::string run() {
    m_problem = m_random.build();
    BruteForce brute(*m_problem);
    if (!brute.run(kMostPlans)) {
      isSkipped = true;
      return {};
    }
    m_brute = &brute;
    if (m_random.chance(2) && !brute.plans().empty()) {
      const BrutePlan& some = brute.plans()[m_random.number() % brute.plans().size()];
      m_problem->cost.memoryBudget =
          std::max<std::int64_t>(1, some.bytes - static_cast<std::int64_t>(m_random.number() % 2));
      hasBudget = true;
    }
    static constexpr std::array kSlacks{0.0, 0.5, 1.0, 10.0, 100.0};
    m_problem->cost.slackPercent = kSlacks[m_random.number() % kSlacks.size()];
    const std::string difference = compare();
    if (difference.empty()) return {};
    std::string text = fmt::format("seed {}: {}\n{} ranks, menu {}, sequence {}, budget {}, slack {} %", m_seed,
                                   difference, m_problem->context.worldSize, int(m_problem->context.candidateSet),
                                   int(m_problem->context.sequenceParallel), m_problem->cost.memoryBudget.value_or(-1),
                                   m_problem->cost.slackPercent);
    for (const Pin& pin : m_problem->pins) text += ", pin " + pin.text;
    for (const std::string& value : m_problem->redistributable) text += ", redistributable " + value;
    for (const std::string& rule : m_problem->rulesOff) text += ", rule off " + rule;
    return text + "\n" + graph::toText(*m_problem->graph);
  }

 private:
  template <class Allows>
  const BrutePlan* cheapest(const Allows& allows) const {
    const BrutePlan* best = nullptr;
    for (const BrutePlan& plan : m_brute->plans()) {
      if (allows(plan) && (!best || plan.femtoseconds < best->femtoseconds)) best = &plan;
    }
    return best;
  }
  bool fits(const BrutePlan& plan) const { return plan.bytes <= m_problem->cost.budgetBytes(); }

  /// Time and additive bytes of the possible results if only some plans are allowed. Several plans may be the fastest
  /// and differ in their total bytes. Each of them gives a result: the plan with the fewest bytes that the slack
  /// allows.
  template <class Allows>
  std::set<std::pair<Femtoseconds, std::int64_t>> answers(const Allows& allows) const {
    std::set<std::pair<Femtoseconds, std::int64_t>> figures;
    const auto may = [&](const BrutePlan& p) { return fits(p) && allows(p); };
    const BrutePlan* fastest = cheapest(may);
    if (!fastest) return figures;
    const Femtoseconds slowest = m_problem->cost.slowest(fastest->femtoseconds);
    for (const BrutePlan& first : m_brute->plans()) {
      if (!may(first) || first.femtoseconds != fastest->femtoseconds) continue;
      std::pair best{first.additiveBytes, first.femtoseconds};
      for (const BrutePlan& p : m_brute->plans()) {
        const bool isSlack = m_problem->cost.slackPercent > 0 && p.femtoseconds <= slowest && p.bytes <= first.bytes;
        if (may(p) && isSlack) best = std::min(best, std::pair(p.additiveBytes, p.femtoseconds));
      }
      figures.emplace(best.second, best.first);
    }
    return figures;
  }

  std::string compare() {
    const SolveResult result = solved(*m_problem);
    const BrutePlan* best = cheapest([&](const BrutePlan& p) { return fits(p); });
    if (!best) {
      if (result.outcome != Outcome::NoSolution)
        return "a plan for a problem without a solution: " + placementsText(*m_problem, *result.solution);
      const bool isBudget =
          result.core.constraints.size() == 1 && result.core.constraints[0].kind == ConstraintKind::Budget;
      if (isBudget != !m_brute->plans().empty()) return "a wrong reason why there is no plan";
      return {};
    }
    hasPlan = true;
    if (result.outcome != Outcome::Solved)
      return fmt::format("no plan was found, but one costs {}", best->femtoseconds);
    const Optimum& optimum = *result.optimum;
    const auto violations = check(*m_problem, *result.solution);
    if (!violations.empty()) return "the checker rejects the plan: " + violations[0];
    if (!(solve::costOf(*m_problem, *result.solution) == optimum.cost()))
      return "the reported cost is not the cost of the plan";
    if (optimum.cost().bytes() > m_problem->cost.budgetBytes()) return "the plan exceeds the budget";
    if (optimum.lowerBoundFs() > best->femtoseconds)
      return fmt::format("bound {} above {}", optimum.lowerBoundFs(), best->femtoseconds);
    if (!optimum.isProved()) {
      isUnproved = true;
      return {};
    }
    if (optimum.fastest().femtoseconds() != best->femtoseconds || optimum.lowerBoundFs() != best->femtoseconds) {
      return fmt::format("the fastest costs {} instead of {}: {}\nagainst {}", optimum.fastest().femtoseconds(),
                         best->femtoseconds, placementsText(*m_problem, *result.solution),
                         placementsText(*m_problem, m_brute->solutionOf(*best)));
    }
    if (!answers([](const BrutePlan&) {
           return true;
         }).contains({optimum.cost().femtoseconds(), optimum.cost().additiveBytes()})) {
      return fmt::format("{} fs and {} bytes are not the least memory that the slack allows",
                         optimum.cost().femtoseconds(), optimum.cost().additiveBytes());
    }
    hasSlack = optimum.cost().femtoseconds() > optimum.fastest().femtoseconds();
    for (graph::ValueId v : idRange<graph::ValueId>(m_problem->graph->values.size())) {
      if (auto difference = compareRegrets(optimum, v); !difference.empty()) return difference;
    }
    if (auto difference = compareSmallest(optimum, *result.solution); !difference.empty()) return difference;
    return compareFront(optimum);
  }

  std::optional<rules::Strategy> strategyOf(const BrutePlan& plan, graph::ValueId v) const {
    const auto& option = plan.strategies[m_problem->graph->value(v).producer.index()];
    return option ? std::optional(option->strategy) : std::nullopt;
  }

  std::string compareRegrets(const Optimum& optimum, graph::ValueId v) {
    const std::string name = m_problem->graph->value(v).name;
    const auto regrets = optimum.regrets(v);
    if (!regrets) return regrets.error().message;
    std::size_t chosen = 0;
    for (const Regret& regret : *regrets) {
      chosen += regret.isChosen;
      const auto takes = [&](const BrutePlan& p) {
        return p.placements[v.index()] == regret.placement && (!regret.strategy || strategyOf(p, v) == regret.strategy);
      };
      if (regret.isChosen) {
        if (regret.extraFs != Femtoseconds() || regret.extraBytes != 0)
          return fmt::format("the chosen option of {} has an extra cost", name);
        continue;
      }
      const auto expected = answers(takes);
      if (regret.extraFs.has_value() == expected.empty())
        return fmt::format("regret of {} {}: {}", name, regret.placement.text(), expected.size());
      if (!regret.extraFs) continue;
      const Femtoseconds time = optimum.cost().femtoseconds() + *regret.extraFs;
      const bool isAnswer =
          std::any_of(expected.begin(), expected.end(), [&](const auto& figures) { return figures.first == time; });
      if (!isAnswer)
        return fmt::format("regret of {} {}: {} instead of {}", name, regret.placement.text(), time,
                           expected.begin()->first);
      const BrutePlan* fastest = cheapest([&](const BrutePlan& p) { return fits(p) && takes(p); });
      if (regret.isProved && regret.fastestExtraFs != fastest->femtoseconds - optimum.cost().femtoseconds()) {
        return fmt::format("the fastest plan with {} {}: {} instead of {}", name, regret.placement.text(),
                           regret.fastestExtraFs.value_or(Femtoseconds(-1)),
                           fastest->femtoseconds - optimum.cost().femtoseconds());
      }
      if (!regret.extraBytes) return fmt::format("bytes of {} {}", name, regret.placement.text());
    }
    if (chosen != 1) return fmt::format("{} chosen options of {}", chosen, name);
    for (const BrutePlan& plan : m_brute->plans()) {
      const bool isListed = std::any_of(regrets->begin(), regrets->end(), [&](const Regret& r) {
        return r.placement == plan.placements[v.index()] && (!r.strategy || r.strategy == strategyOf(plan, v));
      });
      if (!isListed) return fmt::format("the regrets of {} lack {}", name, plan.placements[v.index()].text());
    }
    return {};
  }

  bool sameChoice(const BrutePlan& plan, const Solution& solution, graph::NodeId node) const {
    const auto& a = plan.strategies[node.index()];
    const auto& b = solution.strategies[node.index()];
    if (a.has_value() != b.has_value()) return false;
    if (a && (a->strategy != b->strategy || a->input != b->input || a->weight != b->weight || a->bias != b->bias))
      return false;
    for (graph::ValueId v : m_problem->graph->node(node).results) {
      if (plan.placements[v.index()] != solution.of(v)) return false;
      const auto mine = plan.computedAs.find(v), theirs = solution.computedAs.find(v);
      const bool isMine = mine != plan.computedAs.end(), isTheirs = theirs != solution.computedAs.end();
      if (isMine != isTheirs || (isMine && mine->second != theirs->second)) return false;
    }
    return true;
  }

  std::string compareSmallest(const Optimum& optimum, const Solution& solution) {
    const Variables variables(*m_problem);
    const std::vector<graph::NodeId> steps(variables.deciders().begin(), variables.deciders().end());
    const auto smallest = optimum.smallestRegrets(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto isOther = [&](const BrutePlan& p) { return !sameChoice(p, solution, steps[i]); };
      const BrutePlan* other = cheapest([&](const BrutePlan& p) { return fits(p) && isOther(p); });
      SmallestRegret expected;
      if (other && smallest[i].kind == SmallestRegret::Kind::Costs &&
          smallest[i].extraOver(optimum.fastest(), optimum.cost()) !=
              other->femtoseconds - optimum.cost().femtoseconds()) {
        return fmt::format("smallest regret of node {} over the plan", steps[i].raw());
      }
      if (other) {
        expected = {SmallestRegret::Kind::Costs, other->femtoseconds - optimum.fastest().femtoseconds()};
      } else if (cheapest(isOther)) {
        expected.kind = SmallestRegret::Kind::OverBudget;
      }
      if (smallest[i].kind == SmallestRegret::Kind::NotKnown) {
        isRegretUnknown = true;
        continue;
      }
      if (!(smallest[i] == expected)) {
        return fmt::format("smallest regret of node {}: {} {} instead of {} {}", steps[i].raw(), int(smallest[i].kind),
                           smallest[i].extra, int(expected.kind), expected.extra);
      }
    }
    return {};
  }

  /// With a point's bytes as the budget and without slack, the engine returns the plan of the point.
  std::string compareFront(const Optimum& optimum) {
    std::vector<std::pair<Femtoseconds, std::int64_t>> expected;
    for (const BrutePlan& plan : m_brute->plans()) expected.emplace_back(plan.femtoseconds, plan.bytes);
    std::sort(expected.begin(), expected.end());
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    std::erase_if(expected, [&](const auto& point) {
      const bool isBeaten = point.second >= fewest;
      fewest = std::min(fewest, point.second);
      return isBeaten;
    });
    const auto front = optimum.front();
    if (!front) return front.error().message;
    if (!front->isExact || !front->isEndKnown) return isFrontThinned = true, std::string();
    if (front->points.size() != expected.size())
      return fmt::format("the front has {} points instead of {}", front->points.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (front->points[i].femtoseconds != expected[i].first || front->points[i].bytes != expected[i].second) {
        return fmt::format("point {} of the front", i);
      }
    }
    const ParetoPoint& some = front->points[m_random.number() % front->points.size()];
    const auto plan = optimum.planAt(some);
    if (!plan) return plan.error().message;
    Problem again = *m_problem;
    again.cost.memoryBudget = some.bytes;
    again.cost.slackPercent = 0;
    const SolveResult budgeted = solved(again);
    if (!budgeted.solution) return "no plan was found for the bytes of a point of the front";
    if (!sameSolution(*budgeted.solution, *plan)) return "another plan was found for the bytes of a point of the front";
    const PlanCost cost = solve::costOf(*m_problem, *plan);
    if (cost.femtoseconds() != some.femtoseconds || cost.bytes() != some.bytes ||
        cost.transientPeak != some.transientPeak) {
      return "the plan of a point of the front has another cost";
    }
    return {};
  }

  std::uint64_t m_seed;
  RandomProblem m_random;
  std::shared_ptr<Problem> m_problem;
  const BruteForce* m_brute = nullptr;
};

}  // namespace

class TestOptimal : public QObject {
  Q_OBJECT

 private slots:
  void equalsBruteForce() {
    const Seeds seeds(5'000);
    std::uint64_t skipped = 0, budgets = 0, plans = 0, unproved = 0, slacks = 0, thinned = 0, unknown = 0;
    for (const std::uint64_t seed : seeds) {
      Comparison comparison(seed);
      const std::string difference = comparison.run();
      QVERIFY2(difference.empty(), difference.c_str());
      skipped += comparison.isSkipped;
      budgets += comparison.hasBudget;
      plans += comparison.hasPlan;
      unproved += comparison.isUnproved;
      slacks += comparison.hasSlack;
      thinned += comparison.isFrontThinned;
      unknown += comparison.isRegretUnknown;
    }
    qInfo(
        "%llu with a plan, %llu with a budget, %llu slower than the fastest, %llu not proved, %llu "
        "fronts thinned, "
        "%llu with regrets not known, %llu left out for too many plans",
        static_cast<unsigned long long>(plans), static_cast<unsigned long long>(budgets),
        static_cast<unsigned long long>(slacks), static_cast<unsigned long long>(unproved),
        static_cast<unsigned long long>(thinned), static_cast<unsigned long long>(unknown),
        static_cast<unsigned long long>(skipped));
    QVERIFY(unknown * 100 <= seeds.count());
    QVERIFY(thinned * 20 <= seeds.count());
    QVERIFY(!seeds.isFull() || slacks * 20 > seeds.count());
    QVERIFY(skipped * 20 <= seeds.count());
    QVERIFY(unproved * 20 <= seeds.count());
    QVERIFY(!seeds.isFull() || (plans * 2 > seeds.count() && budgets * 4 > seeds.count()));
  }

  void neverWorseThanTheFirstSolution() {
    for (const int ranks : {2, 4, 8}) {
      for (const bool isTraining : {false, true}) {
        auto problem = llama({}, ranks);
        problem->cost.isTraining = isTraining;
        problem->cost.slackPercent = 0;
        const auto sink = makeCountingSink();
        const auto first = solve::solve(*problem, Engine::Reference, *sink);
        QVERIFY(first && first->solution);
        const SolveResult best = solved(*problem);
        QVERIFY(best.optimum->isProved());
        QVERIFY(check(*problem, *best.solution).empty());
        QVERIFY(best.optimum->cost().femtoseconds() <= solve::costOf(*problem, *first->solution).femtoseconds());
        QCOMPARE(best.optimum->lowerBoundFs(), best.optimum->cost().femtoseconds());
      }
    }
  }

  void oneRankHasOnePlan() {
    const auto problem = llama({}, 1);
    const SolveResult result = solved(*problem);
    QVERIFY(result.outcome == Outcome::Solved);
    QCOMPARE(listed(*result.optimum, 5).size(), std::size_t(1));
  }

  void independentLayersStayNarrow() {
    graph::GraphBuilder builder("wide");
    const graph::ValueId x = builder.addInput("x", {graph::DType::Float32, {2, 8, 16}});
    std::vector<graph::ValueId> results;
    for (int i = 0; i < 40; ++i) {
      const std::string path = fmt::format("branch{}", i);
      const auto weight = builder.addParameter(path + ".weight", {graph::DType::Float32, {16, 16}});
      results.push_back(builder.addCall("aten::linear", {x, weight, graph::Argument{}},
                                        {{graph::DType::Float32, {2, 8, 16}}}, builder.scope(path))[0]);
    }
    graph::ValueId sum = results[0];
    for (std::size_t i = 1; i < results.size(); ++i) {
      sum = builder.addCall("aten::add.Tensor", {sum, results[i], std::int64_t{1}},
                            {{graph::DType::Float32, {2, 8, 16}}})[0];
    }
    builder.addOutput("y", sum);
    Problem problem;
    problem.graph = std::make_shared<const graph::Graph>(*std::move(builder).finish());
    problem.context = {
        .worldSize = 2, .candidateSet = rules::CandidateSet::Full, .sequenceParallel = rules::SequenceParallel::Auto};
    const SolveResult result = solved(problem);
    QVERIFY(result.outcome == Outcome::Solved);
    QVERIFY(result.optimum->isProved());
    QVERIFY(result.optimum->stats().widest < 100);
    QVERIFY(check(problem, *result.solution).empty());
  }

  /// All branches are live together, so no order keeps the frontier narrow.
  void aGraphThatIsTooWideIsNotProved() {
    const Problem problem = concatenation(16);
    const SolveResult result = solved(problem);
    QVERIFY(result.outcome == Outcome::Solved);
    QVERIFY(!result.optimum->isProved());
    QVERIFY(result.optimum->lowerBoundFs() <= result.optimum->cost().femtoseconds());
    QVERIFY(result.optimum->stats().widest <= 20'000 * 16);
    QVERIFY(check(problem, *result.solution).empty());
  }

  void reportsTheLeastMemoryForAnImpossibleBudget() {
    auto problem = llama({}, 2);
    problem->cost.memoryBudget = 1000;
    TraceRecorder recorder(problem);
    const auto result = solve::solve(*problem, Engine::Optimal, recorder);
    QVERIFY(result.has_value());
    QVERIFY(result->outcome == Outcome::NoSolution);
    QCOMPARE(result->core.constraints.size(), std::size_t(1));
    const Constraint& constraint = result->core.constraints[0];
    QVERIFY(constraint.kind == ConstraintKind::Budget);
    QCOMPARE(constraint.text, std::string("No plan for 2 ranks fits the memory budget of 1000 B per rank."));
    const std::string& cause = result->causes.front().reason;
    QVERIFY2(cause.starts_with(
                 "Every plan needs more than the budget of 1000 B per rank on 2 ranks. The smallest plan found is"),
             cause.c_str());
    const auto events = eventsOf(*recorder.trace());
    QVERIFY(events.back().type == EventType::Exhausted);
    QCOMPARE(result->stats.events, std::uint64_t(events.size()));
  }

  void conflictingDemandsAreExplainedBySearch() {
    auto problem = llama({}, 2, rules::SequenceParallel::Off);
    problem->pins.push_back(*Pin::parse("lm_head=row"));
    const SolveResult result = solved(*problem);
    QVERIFY(result.outcome == Outcome::NoSolution);
    QVERIFY(!result.causes.empty());
    QVERIFY(result.stats.conflicts > 0);
  }

  void theTraceHasEveryStepOnce() {
    const auto problem = llama({}, 2);
    TraceRecorder recorder(problem);
    const auto result = solve::solve(*problem, Engine::Optimal, recorder);
    QVERIFY(result && result->solution);
    const auto trace = recorder.trace();
    const auto events = eventsOf(*trace);
    const Variables variables(*problem);
    QCOMPARE(events.size(), 2 * variables.deciders().size() + 1);
    for (std::size_t i = 0; i < variables.deciders().size(); ++i) {
      const NodeId node = variables.deciders()[i];
      QVERIFY(events[2 * i].type == EventType::Visit && events[2 * i + 1].type == EventType::Try);
      QCOMPARE(events[2 * i].node, node.raw());
      QCOMPARE(events[2 * i + 1].node, node.raw());
      std::vector<Placement> reads;
      for (const Read& read : variables.reads(node)) reads.push_back(result->solution->of(read.value));
      const auto open = candidatesOf(*problem, variables, node, reads).open;
      QCOMPARE(std::size_t(events[2 * i].detail), open.size());
      QVERIFY(trace->choice(ChoiceId(events[2 * i + 1].detail)) == open[events[2 * i + 1].ordinal]);
    }
    QVERIFY(events.back().type == EventType::Solution);
    Cursor cursor(trace);
    cursor.seek(trace->size());
  }

  void redistributionIsAChoice() {
    const auto graph = parsedGraph(
        "x: f32[2,4,8] = input\n"
        "a.weight: f32[8,8] = parameter @a\n"
        "y: f32[2,4,8] = aten::linear(x, a.weight, None) @a\n"
        "z: f32[2,4,8] = aten::_softmax(y, -1, false)\n"
        "return z=z\n");
    Problem problem;
    problem.graph = graph;
    problem.context = {.worldSize = 2};
    problem.pins.push_back(*Pin::parse("a=column"));
    problem.pins.push_back(*Pin::parse("y=R"));
    QVERIFY(solved(problem).outcome == Outcome::NoSolution);
    problem.redistributable = {"y"};
    const SolveResult result = solved(problem);
    QVERIFY(result.outcome == Outcome::Solved);
    QCOMPARE(result.solution->computedAs.size(), std::size_t(1));
    QVERIFY(check(problem, *result.solution).empty());
  }

  void stopsWhenAsked() {
    std::stop_source source;
    source.request_stop();
    const auto problem = llama({}, 2);
    TraceRecorder recorder(problem);
    const auto result = solve::solve(*problem, Engine::Optimal, recorder, Progress(source.get_token()));
    QVERIFY(result && result->outcome == Outcome::Stopped);
    QVERIFY(eventsOf(*recorder.trace()).back().type == EventType::Stopped);
    const SolveResult whole = solved(*problem);
    QVERIFY(!whole.optimum->front(Progress(source.get_token())).has_value());
    const auto visit = [](Optimum::Listed) -> Result<void> { return {}; };
    QVERIFY(!whole.optimum->best(3, visit, Progress(source.get_token())).has_value());
  }

 private:
  static Problem concatenation(int branches) {
    graph::GraphBuilder builder("concatenation");
    const graph::ValueId x = builder.addInput("x", {graph::DType::Float32, {2, 8, 16}});
    graph::ValueList results;
    for (int i = 0; i < branches; ++i) {
      const std::string path = fmt::format("branch{}", i);
      const auto weight = builder.addParameter(path + ".weight", {graph::DType::Float32, {16, 16}});
      results.push_back(builder.addCall("aten::linear", {x, weight, graph::Argument{}},
                                        {{graph::DType::Float32, {2, 8, 16}}}, builder.scope(path))[0]);
    }
    builder.addOutput("y", builder.addCall("aten::stack", {results, std::int64_t{0}},
                                           {{graph::DType::Float32, {branches, 2, 8, 16}}})[0]);
    Problem problem;
    problem.graph = std::make_shared<const graph::Graph>(*std::move(builder).finish());
    problem.context = {
        .worldSize = 4, .candidateSet = rules::CandidateSet::Full, .sequenceParallel = rules::SequenceParallel::Auto};
    return problem;
  }
};

QTEST_GUILESS_MAIN(TestOptimal)
#include "tst_optimal.moc"
