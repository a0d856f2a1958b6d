/// Why a value has no other placement, and why a problem has no plan: the answer, its sentences and its core.
#include "tests/solve/explain/questions.h"
#include "tests/support/llama_graph.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;
using namespace cleave::test;

namespace {

ValueId valueOf(const Problem& problem, std::string_view name) {
  const ValueId found = problem.graph->findValue(name);
  if (!found.isValid()) qFatal("no value %s", std::string(name).c_str());
  return found;
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
