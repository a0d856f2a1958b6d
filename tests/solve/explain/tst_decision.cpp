#include "solve/explain/conflict_card.h"
#include "solve/explain/decision.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/rows.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

class TestDecision : public QObject {
  Q_OBJECT
 private slots:
  void namesTheFreeChoiceThatCausesEachConflictOfOneKeyValueHead() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.kvHeads = 1}), 2)).trace;
    Cursor cursor(trace);
    int conflicts = 0;
    while (const auto at = cursor.next(EventType::Conflict)) {
      cursor.seek(*at);
      ++conflicts;
      const auto card = conflictAt(cursor);
      QVERIFY(card.has_value());
      QCOMPARE(card->step, *at);
      QVERIFY(!card->headline.empty() && !card->goesBack.empty());
      bool hasChoice = false;
      for (const CulpritLine& line : card->culprits) hasChoice |= line.chooser.isValid() && line.hasAlternative;
      QVERIFY2(hasChoice, plainText(card->headline).c_str());
      QVERIFY(card->target.has_value());
      QVERIFY(*card->target < card->node);
    }
    QVERIFY(conflicts > 4);
  }

  /// The pin that a card suggests must work: the named layer no longer splits the value.
  void suggestsPinsThatRemoveTheConflict() {
    const auto graph = test::llamaGraph({.kvHeads = 1});
    const auto trace = test::record(test::problemOf(graph, 2)).trace;
    Cursor cursor(trace);
    cursor.seek(*cursor.next(EventType::Conflict));
    const auto card = conflictAt(cursor);
    QVERIFY(!card->pinsToTry.empty());
    const auto pinned = test::record(test::problemOf(graph, 2, {card->pinsToTry.front()})).trace;
    Cursor second(pinned);
    while (const auto at = second.next(EventType::Conflict)) {
      second.seek(*at);
      QVERIFY(!(conflictAt(second)->conflict == card->conflict));
    }
  }

  void linksLeadToTheirValueAndMoment() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.hasLoss = false}), 2, {"lm_head=row"})).trace;
    Cursor cursor(trace);
    cursor.seek(trace->size());
    cursor.seek(*cursor.previous(EventType::Conflict));
    const auto card = conflictAt(cursor);
    QCOMPARE(card->conflict.pins, std::vector<std::string>{"lm_head=row"});
    for (const CulpritLine& line : card->culprits) {
      QVERIFY(line.chosenAt.has_value());
      Cursor then(trace);
      then.seek(*line.chosenAt);
      QCOMPARE(then.lastEvent()->type, EventType::Try);
      QCOMPARE(then.lastEvent()->node, line.chooser.raw());
      bool linksStep = false, linksValue = false;
      for (const SentencePart& part : line.sentence) {
        if (const auto* seek = std::get_if<SeekTo>(&part.link)) linksStep |= seek->step == *line.chosenAt;
        if (const auto* value = std::get_if<ValueId>(&part.link)) linksValue |= *value == line.value;
      }
      QVERIFY(linksStep && linksValue);
    }
  }

  /// The title says "not yet" only for a node that the search has never visited.
  void distinguishesVisitedNodesFromOthers() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.kvHeads = 1}), 2)).trace;
    std::map<std::uint32_t, StepId> arrived;  // by node: step of the last visit
    Cursor cursor(trace);
    int returns = 0, never = 0;
    for (StepId step = 1; step <= trace->size(); ++step) {
      cursor.seek(step);
      const Event event = *cursor.lastEvent();
      if (event.type == EventType::Visit) arrived[event.node] = step;
      if (event.type != EventType::Backtrack) continue;
      for (const NodeId node : trace->variables().deciders()) {
        const Decision decision = decisionAt(cursor, node);
        const std::string& title = decision.title;
        if (title.starts_with("The search went back to a node before ")) {
          const auto leadsThere = [&](const SentencePart& part) {
            const auto* seek = std::get_if<SeekTo>(&part.link);
            return seek && seek->step == arrived.at(node.raw());
          };
          const Sentence& first = decision.sentences.front();
          QVERIFY2(std::any_of(first.begin(), first.end(), leadsThere), title.c_str());
          ++returns;
        } else if (title.starts_with("The search has not reached ")) {
          QVERIFY2(!arrived.contains(node.raw()), title.c_str());
          ++never;
        }
      }
    }
    QVERIFY(returns > 10 && never > 10);
  }

  /// If there are too many events to read, the text does not describe earlier events.
  void saysOnlyWhatItLookedAtOfALongSearch() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.layers = 5}), 2, {"lm_head=row"})).trace;
    QVERIFY(trace->size() > 100'000);
    Cursor cursor(trace);
    const NodeId last = trace->variables().deciders().back();
    cursor.seek(1000);
    QVERIFY(decisionAt(cursor, last).title.starts_with("The search has not reached "));
    cursor.seek(trace->size() - 1);
    const std::string title = decisionAt(cursor, last).title;
    QVERIFY2(title.starts_with("The search is not at ") && title.ends_with(" at this step."), title.c_str());
  }

  /// The panel computes candidates again, which must agree with the trace at every step.
  void reportsTheStateOfEveryCandidateAtEveryStep_data() {
    const test::Rows<Engine> row("engine");
    row("reference", Engine::Reference);
    row("learning", Engine::Learning);
  }
  void reportsTheStateOfEveryCandidateAtEveryStep() {
    QFETCH(Engine, engine);
    const auto problem = test::problemOf(test::llamaGraph({.layers = 1, .hasLoss = false}), 2, {"lm_head=row"});
    const auto trace = test::record(problem, {}, {}, engine).trace;
    Cursor cursor(trace);
    std::map<EventType, int> seen;
    std::size_t allSkipped = 0;
    for (StepId step = 0; step <= trace->size(); ++step) {
      cursor.seek(step);
      const auto last = cursor.lastEvent();
      if (!last) continue;
      const NodeId node(last->type == EventType::Backtrack ? last->target : last->node);
      const Decision decision = decisionAt(cursor, node);
      std::size_t chosen = 0, failed = 0, open = 0, skipped = 0;
      for (const CandidateEntry& entry : decision.candidates) {
        chosen += entry.state == CandidateState::Chosen;
        failed += entry.state == CandidateState::Failed;
        open += entry.state == CandidateState::Open;
        skipped += entry.state == CandidateState::Skipped;
      }
      ++seen[last->type];
      allSkipped += skipped;
      if (last->type == EventType::Visit) QCOMPARE(open, std::size_t{last->detail});
      if (last->type == EventType::Try) {
        QCOMPARE(chosen, std::size_t{1});
        QCOMPARE(failed + skipped, std::size_t{last->ordinal});
        QVERIFY(decision.candidates[last->ordinal].choice == trace->choice(ChoiceId(last->detail)));
        QCOMPARE(*decision.setAt, step);
      }
      if (last->type == EventType::Conflict) QCOMPARE(chosen + failed + open, std::size_t{0});
      if (last->type == EventType::Backtrack) QVERIFY(chosen == 0 && failed > 0 && open > 0);
    }
    for (const auto type : {EventType::Visit, EventType::Try, EventType::Conflict, EventType::Backtrack})
      QVERIFY(seen[type] > 0);
    if (engine == Engine::Reference) QCOMPARE(allSkipped, std::size_t{0});
  }

  /// Once `b` is known to fail as column, it is not tried again after `a` changed. The first try then has an ordinal
  /// above 0.
  void reportsCandidatesThatAreSkipped() {
    const auto graph = test::parsedGraph(
        "x: f32[2,4,8] = input\n"
        "a.weight: f32[8,8] = parameter @a\nlinear_0: f32[2,4,8] = aten::linear(x, a.weight, None) @a\n"
        "b.weight: f32[8,8] = parameter @b\nlinear_1: f32[2,4,8] = aten::linear(x, b.weight, None) @b\n"
        "joined: f32[2,4,8] = aten::wants_all_whole([linear_0, linear_1])\nreturn y=joined\n");
    const auto trace = test::record(test::problemOf(graph, 2), {}, {}, Engine::Learning).trace;
    const NodeId b = graph->value(graph->findValue("linear_1")).producer;
    Cursor cursor(trace);
    cursor.seek(trace->size());
    const Decision decision = decisionAt(cursor, b);
    QCOMPARE(decision.candidates[0].name, std::string("column"));
    QCOMPARE(decision.candidates[0].state, CandidateState::Skipped);
    bool hasChosen = false, isReported = false;
    for (const CandidateEntry& entry : decision.candidates)
      hasChosen = hasChosen || (entry.state == CandidateState::Chosen && entry.name == "replicated");
    for (const Sentence& sentence : decision.sentences)
      isReported = isReported || plainText(sentence).find("already shown to fail") != std::string::npos;
    QVERIFY(hasChosen && isReported);
  }

  /// A trace of `optimal` has one plan. The costs of other plans come from the optimum.
  void saysThatThePlanShownDoesNotUseAChoice() {
    auto problem = *test::problemOf(test::llamaGraph({.layers = 1}), 2);
    problem.context.candidateSet = rules::CandidateSet::Full;
    const auto recorded = test::record(std::make_shared<const Problem>(problem), {}, {}, Engine::Optimal);
    QVERIFY(recorded.result.solution && recorded.result.optimum);
    Cursor cursor(recorded.trace);
    cursor.seek(recorded.trace->size());
    int outweighed = 0, priced = 0;
    for (const NodeId node : idRange<NodeId>(problem.graph->nodes.size())) {
      if (!graph::layerShape(*problem.graph, node)) continue;
      const auto regrets = test::need(recorded.result.optimum->regrets(problem.graph->node(node).results.front()));
      const Decision decision = decisionAt(cursor, node);
      for (const CandidateEntry& entry : decision.candidates) {
        if (entry.state != CandidateState::Outweighed) continue;
        ++outweighed;
        const auto isSaid = [&](const Sentence& sentence) {
          return plainText(sentence) == entry.name +
                                            " fits here too. The engine compares complete plans, and the plan "
                                            "shown does not use it.";
        };
        QVERIFY(std::any_of(decision.sentences.begin(), decision.sentences.end(), isSaid));
        QVERIFY(recorded.result.solution->strategies[node.index()]->strategy != entry.choice->strategy->strategy ||
                recorded.result.solution->strategies[node.index()]->weight != entry.choice->strategy->weight);
        const auto isPriced = [&](const Regret& regret) {
          return !regret.isChosen && regret.placement == entry.choice->results.front();
        };
        priced += std::any_of(regrets.begin(), regrets.end(), isPriced);
      }
    }
    QVERIFY(outweighed > 5 && priced > 5);
  }

  /// `learning` skips decisions that have candidates left, so the text must not claim that it goes back to the latest
  /// of them.
  void saysHowEachEngineGoesBack_data() {
    const test::Rows<Engine, QString, QString> row("engine", "words", "target");
    row("reference", Engine::Reference, ", its latest decision with a candidate left, and", "c");
    row("learning", Engine::Learning,
        ", the latest decision that affects this conflict and has a candidate not known to fail, and", "a");
  }
  void saysHowEachEngineGoesBack() {
    QFETCH(Engine, engine);
    QFETCH(QString, words);
    QFETCH(QString, target);
    const auto graph = test::parsedGraph(
        "x: f32[2,4,8] = input\n"
        "a.weight: f32[8,8] = parameter @a\nlinear_0: f32[2,4,8] = aten::linear(x, a.weight, None) @a\n"
        "c.weight: f32[8,8] = parameter @c\nlinear_1: f32[2,4,8] = aten::linear(x, c.weight, None) @c\n"
        "add_0: f32[2,4,8] = aten::add.Tensor(x, linear_0, 1)\nreturn y=add_0, z=linear_1\n");
    const auto trace = test::record(test::problemOf(graph, 2), {}, {}, engine).trace;
    Cursor cursor(trace);
    cursor.seek(*cursor.next(EventType::Conflict));
    const std::string goesBack = plainText(conflictAt(cursor)->goesBack);
    const QString wanted = QStringLiteral("The search goes back to `%1`%2 undoes ").arg(target, words);
    QVERIFY2(goesBack.starts_with(wanted.toStdString()), goesBack.c_str());
  }

  void saysOfAnInputNothingAboutInputsOfItsOwn() {
    const auto trace = test::record(test::problemOf(test::llamaGraph(), 2)).trace;
    const NodeId input = trace->problem()->graph->value(trace->problem()->graph->findValue("input_ids")).producer;
    Cursor cursor(trace);
    QCOMPARE(decisionAt(cursor, input).title, std::string("The search has not decided `input_ids` yet."));
  }

  void saysWhichNodesAreNotReachedYet() {
    const auto trace = test::record(test::problemOf(test::llamaGraph(), 2)).trace;
    Cursor cursor(trace);
    const Decision decision = decisionAt(cursor, NodeId(trace->problem()->graph->nodes.size() - 1));
    QVERIFY(!decision.choice && !decision.setAt);
    QVERIFY(decision.title.find("not reached") != std::string::npos);
    QVERIFY(!conflictAt(cursor).has_value());
  }
};

QTEST_APPLESS_MAIN(TestDecision)
#include "tst_decision.moc"
