/// Answers and cores agree with the engine: what they call possible has a plan with the cost that they say, and what
/// they forbid, no plan has.
#include "solve/candidates/domains.h"
#include "solve/problem/variables.h"
#include "tests/solve/explain/questions.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

class TestExplainAgrees : public QObject {
  Q_OBJECT
 private slots:
  void coresOfRandomProblemsAreUnsolvableAndIrreducible() {
    const test::Seeds seeds(300, 7000);
    int unsolved = 0;
    const char* const words[] = {"row", "column", "replicated"};
    for (const std::uint64_t seed : seeds) {
      test::RandomGraph generator(seed);
      const auto graph = generator.build(static_cast<int>(generator.pick({4, 6, 9})));
      std::vector<std::string> layers;
      for (NodeId n : idRange<NodeId>(graph->nodes.size())) {
        if (graph::layerShape(*graph, n)) layers.push_back(graph::layerName(*graph, n));
      }
      std::vector<std::string> pins;
      for (std::int64_t i = generator.pick({1, 2, 3, 4}); i > 0 && !layers.empty(); --i) {
        const auto& layer = layers[static_cast<std::size_t>(generator.pick({0, 1, 2, 3, 4, 5})) % layers.size()];
        pins.push_back(
            fmt::format("{}{}{}", layer, generator.pick({0, 0, 1}) ? "!=" : "=", words[generator.pick({0, 1, 2})]));
      }
      const auto problem = test::problemOf(graph, 2, pins);
      if (isSolvable(*problem)) continue;
      ++unsolved;
      const Core core = coreOf(*problem);
      const std::string where = fmt::format("seed {}, pins {}\n{}", seed, fmt::join(pins, " "), textOf(core));
      QVERIFY2(core.isIrreducible, where.c_str());
      QVERIFY2(!core.constraints.empty(), where.c_str());
      const auto lifts = liftsOf(core);
      QVERIFY2(!isSolvable(*test::problemOf(graph, 2, lifts)), where.c_str());
      for (std::size_t i = 0; i < lifts.size(); ++i) {
        auto fewer = lifts;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        QVERIFY2(isSolvable(*test::problemOf(graph, 2, fewer)), where.c_str());
      }
    }
    QVERIFY2(!seeds.isFull() || unsolved > 30, fmt::format("{} unsolved", unsolved).c_str());
  }

  void answersOfRandomProblemsAgreeWithTheEngine() {
    int impossible = 0, forbidden = 0, possible = 0;
    const test::Seeds seeds(60);
    for (const std::uint64_t seed : seeds) {
      test::RandomGraph generator(seed);
      const auto problem = test::problemOf(generator.build(7), 2);
      const Graph& graph = *problem->graph;
      const Progress progress;
      Work work(kDefaultWork, progress);
      Domains domains(*problem, std::make_shared<CandidateTable>(), work);
      for (ValueId v : idRange<ValueId>(graph.values.size())) {
        for (int dim = 0; dim < static_cast<int>(graph.shapeOf(v).size()); ++dim) {
          const Placement wanted = Placement::split(dim);
          const WhyNot answer = ask(*problem, v, wanted.text());
          Problem pinned = *problem;
          pinned.pins.push_back({.pattern = graph.value(v).name, .placement = wanted, .text = "question"});
          const bool isPossible = isSolvable(pinned);
          const std::string where =
              fmt::format("seed {}: {}={}\n{}", seed, graph.value(v).name, wanted.text(), textOf(answer));
          const bool saysPossible = answer.answer == WhyNotAnswer::IsSo || answer.answer == WhyNotAnswer::Possible;
          QVERIFY2(isPossible == saysPossible, where.c_str());
          QVERIFY2(domains.has(v, wanted) == (answer.answer != WhyNotAnswer::Impossible), where.c_str());
          QVERIFY2(!answer.sentences.empty(), where.c_str());
          if (!saysPossible) QVERIFY2(!answer.core.constraints.empty(), where.c_str());
          impossible += answer.answer == WhyNotAnswer::Impossible;
          forbidden += answer.answer == WhyNotAnswer::Forbidden;
          possible += saysPossible;
        }
      }
    }
    QVERIFY2(impossible > 0 && (!seeds.isFull() || forbidden > 0) && possible > 0,
             fmt::format("{} {} {}", impossible, forbidden, possible).c_str());
  }

  /// Replicas of key and value heads and joint splits come from distant layers. 4 heads on 8 ranks have both.
  void deniesNothingThatAPinMakesPossible() {
    const auto problem =
        std::make_shared<Problem>(*test::problemOf(test::llamaGraph({.layers = 1, .hasLoss = false}), 8));
    problem->context.candidateSet = rules::CandidateSet::Full;
    const Graph& graph = *problem->graph;
    const Progress progress;
    Work work(kDefaultWork, progress);
    Domains domains(*problem, std::make_shared<CandidateTable>(), work);
    QVERIFY(domains.isComplete());
    int impossible = 0, possible = 0;
    test::Sample sample;
    for (ValueId v : idRange<ValueId>(graph.values.size())) {
      const int rank = static_cast<int>(graph.shapeOf(v).size());
      for (int dim = 0; dim < rank; ++dim) {
        for (const Placement& wanted :
             {Placement::split(dim), Placement::split(dim).withReplicas(2), Placement::joint(dim, rank - 1)}) {
          if (!sample.takesNext()) continue;
          const WhyNot answer = ask(*problem, v, wanted.text());
          Problem pinned = *problem;
          pinned.pins.push_back(*Pin::parse(fmt::format("{}={}", graph.value(v).name, wanted.text())));
          const bool isPossible = isSolvable(pinned);
          const bool saysPossible = answer.answer == WhyNotAnswer::IsSo || answer.answer == WhyNotAnswer::Possible;
          QVERIFY2(isPossible == saysPossible,
                   fmt::format("{}={}\n{}", graph.value(v).name, wanted.text(), textOf(answer)).c_str());
          QVERIFY2(domains.has(v, wanted) == (answer.answer != WhyNotAnswer::Impossible), textOf(answer).c_str());
          impossible += answer.answer == WhyNotAnswer::Impossible;
          possible += answer.answer == WhyNotAnswer::Possible;
        }
      }
    }
    QVERIFY2(!sample.isFull() || (impossible > 0 && possible > 0), fmt::format("{} {}", impossible, possible).c_str());
  }

  /// `column` also means `gather+column`, but the offered pin means only the requested strategy.
  void offersThePinOfTheFormThatWasAskedFor() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2, {}, rules::SequenceParallel::Auto);
    problem.context.candidateSet = rules::CandidateSet::Full;
    const auto result = solve::solve(problem, Engine::Optimal, *makeCountingSink());
    QVERIFY(result && result->solution);
    int offered = 0;
    test::Sample sample;
    for (NodeId n : idRange<NodeId>(problem.graph->nodes.size())) {
      if (!graph::layerShape(*problem.graph, n)) continue;
      for (int s = 0; s < 12; ++s) {
        if (!sample.takesNext()) continue;
        const auto strategy = static_cast<rules::Strategy>(s);
        const auto answer = whyNot(problem, *result->solution, Engine::Optimal, n, strategy);
        QVERIFY(answer.has_value());
        if (!answer->pin) continue;
        ++offered;
        Problem pinned = problem;
        pinned.pins.push_back(*Pin::parse(*answer->pin));
        const auto then = solve::solve(pinned, Engine::Optimal, *makeCountingSink());
        QVERIFY2(then && then->solution, answer->pin->c_str());
        QVERIFY2(then->solution->strategies[n.index()]->strategy == strategy, answer->pin->c_str());
        QCOMPARE(*answer->extraFs,
                 costOf(pinned, *then->solution).femtoseconds() - costOf(problem, *result->solution).femtoseconds());
      }
    }
    QVERIFY(!sample.isFull() || offered > 10);
  }

  void saysWhatTheBestPlanWithItCosts() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2);
    problem.context.candidateSet = rules::CandidateSet::Full;
    problem.cost.slackPercent = 0;  // with slack another strategy may be faster and need more memory
    const auto result = solve::solve(problem, Engine::Optimal, *makeCountingSink());
    QVERIFY(result && result->solution && result->optimum);
    int costs = 0;
    for (const std::string layer : {"model.layers.0.mlp.up_proj", "model.layers.1.self_attn.q_proj", "lm_head"}) {
      for (rules::Strategy strategy : {rules::Strategy::Column, rules::Strategy::Replicated}) {
        const auto answer =
            whyNot(problem, *result->solution, Engine::Optimal, layerOf(*problem.graph, layer), strategy);
        QVERIFY(answer.has_value());
        if (answer->answer != WhyNotAnswer::Costs) continue;
        ++costs;
        QVERIFY2(answer->extraFs && *answer->extraFs >= 0 && answer->pin, textOf(*answer).c_str());
      }
    }
    QVERIFY(costs > 0);
  }

  /// Each row of the choices, pinned by its own text, is possible and costs what the row says.
  void eachRowOfTheChoicesCostsWhatItSays_data() {
    QTest::addColumn<int>("heads");
    QTest::addColumn<int>("kvHeads");
    QTest::addColumn<int>("ranks");
    QTest::newRow("heads that divide") << 8 << 4 << 2;
    QTest::newRow("7 heads on 2 ranks") << 7 << 1 << 2;
    QTest::newRow("4 KV heads on 8 ranks") << 8 << 4 << 8;
  }
  void eachRowOfTheChoicesCostsWhatItSays() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    auto problem = *test::problemOf(
        test::llamaGraph({.layers = 2, .hidden = 16 * heads, .heads = heads, .kvHeads = kvHeads}), ranks);
    problem.context.candidateSet = rules::CandidateSet::Full;
    problem.cost.slackPercent = 0;
    const auto sink = makeCountingSink();
    const auto best = solve::solve(problem, Engine::Optimal, *sink);
    QVERIFY(best && best->optimum);
    int rows = 0, copies = 0;
    for (const char* layer : {"model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.v_proj",
                              "model.layers.0.self_attn.o_proj", "lm_head"}) {
      const ValueId value = resultOf(*problem.graph, layer);
      const auto regrets = best->optimum->regrets(value);
      QVERIFY(regrets.has_value());
      for (const Regret& regret : *regrets) {
        if (!regret.extraFs) continue;
        const std::string where = fmt::format("{} {} as {}", layer, regret.name(), regret.demand());
        Problem pinned = problem;
        const bool isPlacement = regret.demand() == regret.placement.text();
        // A strategy may give several placements of its result, and a row is one of them.
        pinned.pins.push_back(
            *Pin::parse(fmt::format("{}={}", problem.graph->value(value).name, regret.placement.text())));
        if (!isPlacement) pinned.pins.push_back(*Pin::parse(demandFor(layer, *regret.strategy)));
        const auto then = solve::solve(pinned, Engine::Optimal, *sink);
        QVERIFY2(then, where.c_str());
        QVERIFY2(then->optimum, (where + " with " + pinned.pins.front().text + ": " + then->core.text()).c_str());
        const Femtoseconds expected = best->optimum->cost().femtoseconds() + *regret.extraFs;
        QVERIFY2(isPlacement ? then->optimum->cost().femtoseconds() <= expected
                             : then->optimum->cost().femtoseconds() == expected,
                 where.c_str());
        const WhyNot answer =
            isPlacement ? ask(problem, value, regret.demand()) : ask(problem, layer, *regret.strategy);
        QVERIFY2(answer.answer != WhyNotAnswer::Impossible && answer.answer != WhyNotAnswer::Forbidden,
                 (where + ": " + textOf(answer)).c_str());
        ++rows;
        copies += regret.isCopied;
      }
    }
    QVERIFY2(rows > 4 && (copies > 0) == (heads % ranks != 0), fmt::format("{} rows, {} copies", rows, copies).c_str());
  }
};

QTEST_APPLESS_MAIN(TestExplainAgrees)
#include "tst_explain_agrees.moc"
