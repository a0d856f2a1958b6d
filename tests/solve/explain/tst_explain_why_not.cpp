#include "solve/candidates/domains.h"
#include "solve/explain/explain.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

Solution solved(const Problem& problem) {
  const auto result = solve::solve(problem, Engine::Learning, *makeCountingSink());
  return result && result->solution ? *result->solution : Solution{};
}

ValueId valueOf(const Problem& problem, std::string_view name) {
  const ValueId found = problem.graph->findValue(name);
  if (!found.isValid()) qFatal("no value %s", std::string(name).c_str());
  return found;
}

NodeId layerOf(const Graph& graph, std::string_view layer) {
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n) && graph::layerName(graph, n) == layer) return n;
  }
  qFatal("no layer %s", std::string(layer).c_str());
}

ValueId resultOf(const Graph& graph, std::string_view layer) {
  return graph.node(layerOf(graph, layer)).results.front();
}

std::string textOf(const WhyNot& answer) {
  std::string text =
      fmt::format("[{}{}]\n", static_cast<int>(answer.answer), answer.core.isIrreducible ? ", irreducible" : "");
  for (const Sentence& s : answer.sentences) text += plainText(s) + "\n";
  return text;
}

std::string textOf(const Core& core) {
  std::string text = core.isIrreducible ? "irreducible\n" : "not irreducible\n";
  for (const Constraint& c : core.constraints) text += c.text + "\n";
  return text;
}

WhyNot ask(const Problem& problem, ValueId value, std::string_view placement) {
  auto answer = whyNot(problem, solved(problem), Engine::Learning, value, *Placement::parse(placement));
  if (!answer) qFatal("%s", answer.error().message.c_str());
  return std::move(*answer);
}
WhyNot ask(const Problem& problem, std::string_view layer, rules::Strategy strategy) {
  auto answer = whyNot(problem, solved(problem), Engine::Learning, layerOf(*problem.graph, layer), strategy);
  if (!answer) qFatal("%s", answer.error().message.c_str());
  return std::move(*answer);
}
Core coreOf(const Problem& problem, Engine engine = Engine::Learning) {
  auto found = irreducibleCore(problem, engine);
  if (!found) qFatal("%s", found.error().message.c_str());
  return std::move(found->core);
}

bool isSolvable(const Problem& problem) {
  const auto result = solve::solve(problem, Engine::Learning, *makeCountingSink());
  return result && result->outcome == Outcome::Solved;
}

std::vector<std::string> liftsOf(const Core& core) {
  std::vector<std::string> lifts;
  for (const Constraint& c : core.constraints) {
    if (c.lift) lifts.push_back(*c.lift);
  }
  return lifts;
}

#define COMPARE_ANSWER(given, expected) QVERIFY2((given).answer == (expected), textOf(given).c_str())
#define VERIFY_SAYS(text, part) \
  QVERIFY2((text).find(part) != std::string::npos, fmt::format("no \"{}\" in:\n{}", part, text).c_str())

}  // namespace

class TestExplainWhyNot : public QObject {
  Q_OBJECT
 private slots:
  void saysWhenItIsSo() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    COMPARE_ANSWER(ask(*problem, resultOf(*problem->graph, "model.layers.0.mlp.up_proj"), "S(2)"), WhyNotAnswer::IsSo);
    COMPARE_ANSWER(ask(*problem, "model.layers.0.mlp.up_proj", rules::Strategy::Column), WhyNotAnswer::IsSo);
  }

  void refusesADimensionThatIsNotThere() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto answer =
        whyNot(*problem, solved(*problem), Engine::Learning, valueOf(*problem, "input_ids"), *Placement::parse("S(2)"));
    QVERIFY(!answer);
    QCOMPARE(answer.error().code, ErrorCode::BadUsage);
    VERIFY_SAYS(answer.error().message, "`input_ids` [1, 16] has no dimension 2");
  }

  void givesTheNumbersOfSizesThatDoNotDivide() {
    const auto problem =
        test::problemOf(test::llamaGraph({.hidden = 48, .heads = 3, .kvHeads = 3, .intermediate = 113}), 2);
    const WhyNot layer = ask(*problem, "model.layers.0.mlp.up_proj", rules::Strategy::Column);
    COMPARE_ANSWER(layer, WhyNotAnswer::Impossible);
    VERIFY_SAYS(textOf(layer),
                "`model.layers.0.mlp.up_proj` cannot be column: 113 output features do not divide by 2 ranks.");
    QCOMPARE(layer.core.constraints.front().kind, ConstraintKind::Sizes);
    const WhyNot value = ask(*problem, resultOf(*problem->graph, "model.layers.0.mlp.up_proj"), "S(2)");
    COMPARE_ANSWER(value, WhyNotAnswer::Impossible);
    VERIFY_SAYS(textOf(value), "113");
  }

  void namesTheMenuThatHasTheForm() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const WhyNot answer = ask(*problem, "model.embed_tokens", rules::Strategy::Replicated);
    COMPARE_ANSWER(answer, WhyNotAnswer::Impossible);
    QCOMPARE(answer.core.constraints.front().kind, ConstraintKind::CandidateSet);
    VERIFY_SAYS(textOf(answer), "the full candidate set");
    VERIFY_SAYS(textOf(answer), "With that setting and the pin `model.embed_tokens=");
    const std::string text = textOf(answer);
    const std::size_t pin = text.find("the pin `") + 9;
    Problem wider = *problem;
    wider.context.candidateSet = rules::CandidateSet::Full;
    wider.pins.push_back(*Pin::parse(text.substr(pin, text.find('`', pin) - pin)));
    QVERIFY(isSolvable(wider));
  }

  /// Another setting has the strategy, but no plan with that setting alone uses it. The text names settings that have a
  /// plan, and they do.
  void reportsTheSettingsThatHaveAPlan() {
    const auto problem =
        test::problemOf(test::llamaGraph({.hidden = 48, .heads = 6, .kvHeads = 6, .intermediate = 64}), 4);
    const WhyNot answer = ask(*problem, resultOf(*problem->graph, "model.layers.0.mlp.down_proj"), "S(1)");
    COMPARE_ANSWER(answer, WhyNotAnswer::Impossible);
    VERIFY_SAYS(textOf(answer), "sequence parallelism");
    VERIFY_SAYS(textOf(answer), "With that setting, it conflicts with other constraints.");
    VERIFY_SAYS(textOf(answer), "With redistribution of all values (`*`) and the pin");
    Problem wider = *problem;
    wider.context.sequenceParallel = rules::SequenceParallel::Auto;
    wider.pins.push_back(
        *Pin::parse(problem->graph->value(resultOf(*problem->graph, "model.layers.0.mlp.down_proj")).name + "=S(1)"));
    QVERIFY(!isSolvable(wider));
    wider.context.sequenceParallel = problem->context.sequenceParallel;
    wider.redistributable = {"*"};
    QVERIFY(isSolvable(wider));
  }

  /// The pin `=column` admits every strategy of its axis, so the answer for column names the strategy that the pin
  /// gives.
  void reportsTheStrategyThatThePinMayMean() {
    const std::string layer = "model.layers.0.self_attn.q_proj";
    Problem problem =
        *test::problemOf(test::llamaGraph({.hidden = 112, .heads = 7, .kvHeads = 7, .intermediate = 128}), 2);
    problem.context.candidateSet = rules::CandidateSet::Optimum;
    QVERIFY(textOf(ask(problem, layer, rules::Strategy::Column)).find("column+gather") == std::string::npos);
    problem.context.candidateSet = rules::CandidateSet::Full;
    const WhyNot answer = ask(problem, layer, rules::Strategy::Column);
    QCOMPARE(answer.answer, WhyNotAnswer::Forbidden);
    VERIFY_SAYS(textOf(answer), "can be column+gather: a plan with it exists");
    Problem pinned = problem;
    pinned.pins.push_back(*Pin::parse(layer + "=column"));
    QCOMPARE(solved(pinned).strategies[layerOf(*problem.graph, layer).index()]->strategy,
             rules::Strategy::ColumnGather);
  }

  /// A layer whose "column" is a copy on every rank is replicated, in every answer.
  void copiesAreWhole() {
    const auto problem = test::problemOf(test::llamaGraph({.heads = 4, .kvHeads = 1}), 4);
    const WhyNot whole = ask(*problem, "model.layers.0.self_attn.k_proj", rules::Strategy::Replicated);
    COMPARE_ANSWER(whole, WhyNotAnswer::IsSo);
    const WhyNot column = ask(*problem, "model.layers.0.self_attn.k_proj", rules::Strategy::Column);
    QVERIFY2(column.answer != WhyNotAnswer::IsSo && textOf(column).find("is pinned") == std::string::npos,
             textOf(column).c_str());
    QVERIFY2(textOf(column).find(" .") == std::string::npos, textOf(column).c_str());
    const auto links =
        why(*problem, solved(*problem), Engine::Learning, resultOf(*problem->graph, "model.layers.0.self_attn.k_proj"));
    std::string text;
    for (const WhyLink& link : links) text += plainText(link.sentence) + "\n";
    QVERIFY2(text.find("k_proj` is column:") == std::string::npos, text.c_str());
  }

  void saysWhatAnOperatorCannotDo() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const WhyNot mean = ask(*problem, valueOf(*problem, "mul_2"), "S(2)");
    COMPARE_ANSWER(mean, WhyNotAnswer::Impossible);
    VERIFY_SAYS(textOf(mean), "`mul_2` cannot be");
    const WhyNot input = ask(*problem, valueOf(*problem, "input_ids"), "S(1)");
    COMPARE_ANSWER(input, WhyNotAnswer::Impossible);
    VERIFY_SAYS(textOf(input), "every rank gets the full input");
  }

  void offersThePinWhereThereIsAPlan() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const WhyNot answer = ask(*problem, "model.layers.0.mlp.up_proj", rules::Strategy::Replicated);
    COMPARE_ANSWER(answer, WhyNotAnswer::Possible);
    QVERIFY(answer.pin.has_value());
    Problem pinned = *problem;
    pinned.pins.push_back(*Pin::parse(*answer.pin));
    QVERIFY(isSolvable(pinned));
  }

  void findsTheNormThatForbidsARowHead() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 3}), 2);
    const WhyNot answer = ask(*problem, "lm_head", rules::Strategy::Row);
    COMPARE_ANSWER(answer, WhyNotAnswer::Forbidden);
    const std::string text = textOf(answer);
    QVERIFY2(answer.core.isIrreducible, text.c_str());
    QVERIFY2(answer.core.constraints.size() <= 2, text.c_str());
    VERIFY_SAYS(text, "model.norm.weight");
    QVERIFY2(liftsOf(answer.core).empty(), text.c_str());
  }

  void findsThePinThatForbids() {
    const auto problem = test::problemOf(test::llamaGraph(), 2, {"*mlp.gate_proj=replicated", "*q_proj=column"});
    const WhyNot answer = ask(*problem, "model.layers.1.mlp.down_proj", rules::Strategy::Row);
    COMPARE_ANSWER(answer, WhyNotAnswer::Forbidden);
    QCOMPARE(liftsOf(answer.core), std::vector<std::string>{"*mlp.gate_proj=replicated"});
    VERIFY_SAYS(textOf(answer), "lift `*mlp.gate_proj=replicated`");
    QVERIFY2(answer.core.isIrreducible, textOf(answer).c_str());
  }

  void findsTheRuleThatIsOff() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2);
    problem.rulesOff = {"aten::sigmoid", "aten::rsqrt"};
    const WhyNot answer = ask(problem, "model.layers.1.mlp.down_proj", rules::Strategy::Row);
    COMPARE_ANSWER(answer, WhyNotAnswer::Forbidden);
    QCOMPARE(liftsOf(answer.core), std::vector<std::string>{"aten::sigmoid"});
  }

  void explainsTheSliceThatTakesTheSequenceApart() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 2, .hasLoss = false, .logitsToKeep = 1}), 2, {},
                                         rules::SequenceParallel::On);
    const WhyNot answer = ask(*problem, "model.embed_tokens", rules::Strategy::VocabScatter);
    COMPARE_ANSWER(answer, WhyNotAnswer::Forbidden);
    const std::string text = textOf(answer);
    QVERIFY2(answer.core.isIrreducible, text.c_str());
    VERIFY_SAYS(text, "slice");
    QVERIFY2(answer.core.constraints.size() <= 8, text.c_str());
  }

  void findsAnIrreducibleCoreOfAProblemWithoutSolution() {
    const auto problem =
        test::problemOf(test::llamaGraph({.layers = 7}), 2, {"lm_head=row", "*q_proj=column", "*down_proj!=vocab"});
    const Core core = coreOf(*problem);
    const std::string text = textOf(core);
    QCOMPARE(liftsOf(core), std::vector<std::string>{"lm_head=row"});
    QVERIFY2(core.isIrreducible, text.c_str());
    VERIFY_SAYS(text, "You pinned `lm_head` to row, which needs its input");
    VERIFY_SAYS(text, "model.norm.weight");
  }

  void saysWhichPinTheSizesForbid() {
    const auto problem =
        test::problemOf(test::llamaGraph({.intermediate = 113}), 2, {"*up_proj=column", "lm_head=column"});
    const Core core = coreOf(*problem);
    QCOMPARE(liftsOf(core), std::vector<std::string>{"*up_proj=column"});
    VERIFY_SAYS(textOf(core), "113 output features do not divide by 2 ranks");
  }

  void isEmptyWhereThereIsASolution() { QVERIFY(coreOf(*test::problemOf(test::llamaGraph(), 2)).constraints.empty()); }

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

  void saysWhenTheWorkEndsBeforeItIsKnown() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 7}), 2, {"lm_head=row"});
    const auto core = irreducibleCore(*problem, Engine::Learning, {}, 1000);
    QVERIFY(core && core->outcome == CoreOutcome::NotKnown && core->core.constraints.empty());
    const auto free = test::problemOf(test::llamaGraph({.layers = 7}), 2);
    QCOMPARE(irreducibleCore(*free, Engine::Learning)->outcome, CoreOutcome::HasSolution);
    const auto answer = whyNot(*free, solved(*free), Engine::Learning, layerOf(*free->graph, "lm_head"),
                               rules::Strategy::Row, {}, 1000);
    QVERIFY(answer.has_value());
    COMPARE_ANSWER(*answer, WhyNotAnswer::NotKnown);
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

  void namesTheBudgetThatNoPlanKeeps() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2, {"lm_head=column"});
    problem.cost.memoryBudget = 1000;
    const Core core = coreOf(problem, Engine::Optimal);
    QCOMPARE(core.constraints.size(), std::size_t{1});
    QCOMPARE(core.constraints[0].kind, ConstraintKind::Budget);
    VERIFY_SAYS(core.constraints[0].text, "1000 B per rank");
  }

  void stopsAtTheToken() {
    std::stop_source source;
    source.request_stop();
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto answer = whyNot(*problem, solved(*problem), Engine::Learning, layerOf(*problem->graph, "lm_head"),
                               rules::Strategy::Row, Progress(source.get_token()));
    QVERIFY(!answer && answer.error().code == ErrorCode::Cancelled);
  }
};

QTEST_APPLESS_MAIN(TestExplainWhyNot)
#include "tst_explain_why_not.moc"
