#include "solve/explain/remedy.h"
#include "tests/support/llama_graph.h"
#include "tests/support/rows.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

SolveResult solved(const Problem& problem, Engine engine = Engine::Learning) { return test::solvedBy(engine, problem); }

std::vector<Remedy> remediesOf(const Problem& problem, std::size_t most = 4) {
  const SolveResult result = solved(problem);
  return test::need(remediesFor(problem, result, Engine::Learning, nullptr, {}, most));
}

std::string textOf(const std::vector<Remedy>& remedies) {
  std::string text;
  for (const Remedy& remedy : remedies) text += remedy.text + "\n";
  return text;
}

bool offers(const std::vector<Remedy>& remedies, const Change& change) {
  return std::any_of(remedies.begin(), remedies.end(), [&](const Remedy& r) { return r.change == change; });
}

/// Every remedy has the stated effect when it is applied.
void verifyEach(const Problem& problem, const std::vector<Remedy>& remedies) {
  const SolveResult before = solved(problem);
  const Figures figuresBefore = figuresOf(problem, before.solution ? &*before.solution : nullptr);
  for (const Remedy& remedy : remedies) {
    const auto changed = applied(problem, remedy.change);
    QVERIFY2(changed.has_value(), remedy.text.c_str());
    const SolveResult after = solved(*changed);
    QVERIFY2(after.solution.has_value(), remedy.text.c_str());
    const Figures figures = figuresOf(*changed, &*after.solution);
    QCOMPARE(figures.splitLayers, remedy.after.splitLayers);
    QCOMPARE(figures.rankBytes, remedy.after.rankBytes);
    QCOMPARE(figures.femtoseconds, remedy.after.femtoseconds);
    const bool isSaidOver = remedy.text.find("more than the memory budget of") != std::string::npos;
    QCOMPARE(isSaidOver, figures.rankBytes > changed->cost.budgetBytes());
    QCOMPARE(figuresBefore.splitLayers, remedy.before.splitLayers);
    if (!figuresBefore.hasPlan) continue;
    const bool isSlower = figures.femtoseconds > figuresBefore.femtoseconds,
               isLarger = figures.rankBytes > figuresBefore.rankBytes;
    QVERIFY2(!isSlower || !isLarger, remedy.text.c_str());
  }
}

/// The remedies for the first conflict of the reference engine.
void findAtTheFirstConflict(const std::shared_ptr<const Problem>& problem, std::optional<std::vector<Remedy>>& found) {
  const auto recorded = test::record(problem);
  Cursor cursor(recorded.trace);
  const auto at = cursor.next(EventType::Conflict);
  QVERIFY(at.has_value());
  cursor.seek(*at);
  const auto card = conflictAt(cursor);
  if (auto remedies = remediesFor(*problem, recorded.result, Engine::Reference, &*card)) found = std::move(*remedies);
}

}  // namespace

class TestRemedy : public QObject {
  Q_OBJECT
 private slots:
  void helpsModelsThatDoNotSplit_data() {
    const test::Rows<int, int, int, bool> row("heads", "kvHeads", "ranks", "hasWideNorms");
    row("one KV head on 2 ranks", 4, 1, 2, false);
    row("2 KV heads on 4 ranks", 8, 2, 4, false);
    row("3 heads on 2 ranks", 3, 3, 2, false);
    row("norms over all heads", 8, 4, 2, true);
  }
  void helpsModelsThatDoNotSplit() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    QFETCH(bool, hasWideNorms);
    const auto problem = test::problemOf(
        test::llamaGraph(
            {.hidden = heads * 16, .heads = heads, .kvHeads = kvHeads, .vocab = 240, .hasWideNorms = hasWideNorms}),
        ranks);
    const auto remedies = remediesOf(*problem);
    QVERIFY2(!remedies.empty(), "no remedy");
    verifyEach(*problem, remedies);
    QVERIFY2(offers(remedies, {ChangeKind::FullCandidateSet, ""}), textOf(remedies).c_str());
  }

  void helpsTheLastPositionUnderSequenceParallelism() {
    const auto graph = test::llamaGraph({.layers = 2, .hasLoss = false, .logitsToKeep = 1});
    const auto problem = test::problemOf(graph, 2, {"model.embed_tokens=vocab+scatter"}, rules::SequenceParallel::On);
    QCOMPARE(solved(*problem).outcome, Outcome::NoSolution);
    const auto remedies = remediesOf(*problem, 8);
    verifyEach(*problem, remedies);
    QVERIFY2(offers(remedies, {ChangeKind::LiftPin, "model.embed_tokens=vocab+scatter"}), textOf(remedies).c_str());
  }

  void findsAPlanWhereAPinExplodes() {
    const auto problem = test::problemOf(test::llamaGraph({.layers = 7}), 2, {"lm_head=row"});
    const auto remedies = remediesOf(*problem);
    verifyEach(*problem, remedies);
    QVERIFY2(!remedies.empty() && remedies.front().after.hasPlan && !remedies.front().before.hasPlan,
             textOf(remedies).c_str());
    QVERIFY2(remedies.front().text.find("a plan exists that splits") != std::string::npos, textOf(remedies).c_str());
    // A plan without the pin is slower and needs more memory than one that gathers a value, so it is not listed.
    const SolveResult lifted = solved(*test::problemOf(problem->graph, 2));
    const Figures figures = figuresOf(*problem, &*lifted.solution);
    const auto beatsLifting = [&](const Remedy& r) {
      return r.after.femtoseconds <= figures.femtoseconds && r.after.rankBytes <= figures.rankBytes &&
             r.change.kind != ChangeKind::LiftPin;
    };
    QVERIFY2(offers(remedies, {ChangeKind::LiftPin, "lm_head=row"}) !=
                 std::any_of(remedies.begin(), remedies.end(), beatsLifting),
             textOf(remedies).c_str());
  }

  /// `learning` returns plans of any size, with or without the change.
  void saysWhatStaysOverTheBudget() {
    Problem problem = *test::problemOf(test::llamaGraph({.layers = 7}), 2, {"lm_head=row"});
    verifyEach(problem, remediesOf(problem));
    problem.cost.memoryBudget = 1;
    const auto remedies = remediesOf(problem);
    QVERIFY(!remedies.empty());
    verifyEach(problem, remedies);
    for (const Remedy& remedy : remedies)
      QVERIFY2(remedy.text.find("optimal keeps to it") != std::string::npos, remedy.text.c_str());
  }

  /// No remedy is worse than another in time, memory and ranks together.
  void showsNoneThatAnotherBeats_data() {
    const test::Rows<int, int, int> row("heads", "kvHeads", "ranks");
    row("4 KV heads on 8 ranks", 8, 4, 8);
    row("3 heads on 2 ranks", 3, 3, 2);
    row("7 heads on 4 ranks", 7, 7, 4);
    row("5 ranks", 8, 4, 5);
  }
  void showsNoneThatAnotherBeats() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    std::size_t shown = 0;
    for (const Engine engine : {Engine::Learning, Engine::Optimal}) {
      const auto problem =
          test::problemOf(test::llamaGraph({.hidden = heads * 16, .heads = heads, .kvHeads = kvHeads}), ranks);
      const auto remedies = remediesFor(*problem, solved(*problem, engine), engine, nullptr, {}, 100);
      QVERIFY(remedies.has_value());
      shown += remedies->size();
      for (const Remedy& a : *remedies) {
        const bool isOtherRanks = a.change.kind == ChangeKind::Ranks;
        const int count = isOtherRanks ? std::stoi(a.change.argument) : ranks;
        QVERIFY2(!isOtherRanks || (count <= 2 * ranks && (count <= 8 || count % 8 == 0)), a.text.c_str());
        QVERIFY2(a.after.femtoseconds < a.before.femtoseconds || a.after.rankBytes < a.before.rankBytes,
                 a.text.c_str());
        for (const Remedy& b : *remedies) {
          const bool isNoWorse = b.after.femtoseconds <= a.after.femtoseconds && b.after.rankBytes <= a.after.rankBytes;
          const bool isBetter = b.after.femtoseconds < a.after.femtoseconds || b.after.rankBytes < a.after.rankBytes;
          const bool isOfSameRanks = !isOtherRanks && b.change.kind != ChangeKind::Ranks;
          QVERIFY2(!(isOfSameRanks && isNoWorse && isBetter), (a.text + "\n" + b.text).c_str());
        }
      }
    }
    QVERIFY(shown > 0);
  }

  /// The text names a cost if and only if there is one.
  void saysThePrice() {
    const auto problem = test::problemOf(test::llamaGraph({.hidden = 48, .heads = 3, .kvHeads = 3}), 2);
    const auto remedies = remediesOf(*problem, 100);
    int prices = 0;
    for (const Remedy& remedy : remedies) {
      const Femtoseconds longer = remedy.after.femtoseconds - remedy.before.femtoseconds;
      const bool isSaid =
          remedy.text.find(fmt::format("It takes {} longer per step.", timeText(longer))) != std::string::npos;
      QVERIFY2(isSaid == (longer > Femtoseconds()), remedy.text.c_str());
      QVERIFY2((remedy.text.find(" more.") != std::string::npos) == (remedy.after.rankBytes > remedy.before.rankBytes),
               remedy.text.c_str());
      prices += isSaid;
    }
    QVERIFY2(prices > 0, textOf(remedies).c_str());
  }

  /// what_fits reports ranks, settings and budgets, so only demands are offered here.
  void whereNoPlanFitsDemandsAreLifted() {
    Problem problem = *test::problemOf(test::llamaGraph({.layers = 2}), 2, {"*_proj=replicated"});
    problem.context.candidateSet = rules::CandidateSet::Full;
    const auto bytesOf = [](const Problem& asked) {
      return solved(asked, Engine::Optimal).optimum->front()->points.back().bytes;
    };
    Problem free = problem;
    free.pins.clear();
    const std::int64_t budget = bytesOf(free);
    QVERIFY(bytesOf(problem) > budget);
    problem.cost.memoryBudget = budget;
    const SolveResult result = solved(problem, Engine::Optimal);
    QVERIFY(!result.solution);
    const auto remedies = remediesFor(problem, result, Engine::Optimal, nullptr, {}, 100);
    QVERIFY(remedies.has_value());
    QVERIFY2(offers(*remedies, {ChangeKind::LiftPin, "*_proj=replicated"}), textOf(*remedies).c_str());
    for (const Remedy& remedy : *remedies) {
      const ChangeKind kind = remedy.change.kind;
      QVERIFY2(kind != ChangeKind::Ranks && kind != ChangeKind::SequenceParallel && kind != ChangeKind::LiftBudget,
               remedy.text.c_str());
      QVERIFY2(remedy.after.rankBytes <= budget, remedy.text.c_str());
    }
  }

  void switchesARuleOnAgain() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2);
    problem.rulesOff = {"aten::sigmoid"};
    const auto remedies = remediesOf(problem);
    verifyEach(problem, remedies);
    QVERIFY2(offers(remedies, {ChangeKind::RuleOn, "aten::sigmoid"}), textOf(remedies).c_str());
  }

  void followsTheCardThatIsLookedAt() {
    const auto problem = test::problemOf(test::llamaGraph({.hidden = 64, .heads = 4, .kvHeads = 1}), 2);
    std::optional<std::vector<Remedy>> remedies;
    findAtTheFirstConflict(problem, remedies);
    QVERIFY(remedies && !remedies->empty());
    verifyEach(*problem, *remedies);
  }

  void avoidsTheConflictOfTheLastPosition() {
    const auto problem =
        test::problemOf(test::llamaGraph({.hasLoss = false, .logitsToKeep = 1}), 2, {}, rules::SequenceParallel::On);
    std::optional<std::vector<Remedy>> remedies;
    findAtTheFirstConflict(problem, remedies);
    QVERIFY(remedies.has_value());
    QVERIFY2(offers(*remedies, {ChangeKind::SequenceParallel, "off"}), textOf(*remedies).c_str());
    for (const Remedy& remedy : *remedies)
      QVERIFY2(remedy.after.splitLayers >= remedy.before.splitLayers, remedy.text.c_str());
  }

  void isEmptyWhereAllIsSplit() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const SolveResult result = solved(*problem);
    const Figures figures = figuresOf(*problem, &*result.solution);
    QCOMPARE(figures.splitLayers, figures.layers);
    QVERIFY(remediesOf(*problem).empty());
  }

  void isSortedAndRepeats() {
    const auto problem = test::problemOf(test::llamaGraph({.hidden = 48, .heads = 3, .kvHeads = 3}), 2);
    const auto first = remediesOf(*problem), second = remediesOf(*problem);
    QCOMPARE(textOf(first), textOf(second));
    // The order is by time of split work. Changes that cost more than they save come later, and other numbers of ranks
    // come last.
    const auto isDear = [](const Remedy& r) {
      const auto ratio = [](auto after, auto before) {
        return static_cast<double>(after) / static_cast<double>(before);
      };
      return ratio(r.after.femtoseconds, r.before.femtoseconds) * ratio(r.after.rankBytes, r.before.rankBytes) > 1;
    };
    const auto key = [&](const Remedy& r) {
      return std::tuple(r.change.kind == ChangeKind::Ranks, isDear(r), r.after.femtoseconds, r.after.rankBytes);
    };
    for (std::size_t i = 1; i < first.size(); ++i) QVERIFY2(key(first[i - 1]) <= key(first[i]), textOf(first).c_str());
  }

  void refusesChangesThatDoNotFit_data() {
    const test::Rows<int, QString> row("kind", "argument");
    row("pin", static_cast<int>(ChangeKind::AddPin), "nobody=row");
    row("no pin", static_cast<int>(ChangeKind::AddPin), "row");
    row("lift", static_cast<int>(ChangeKind::LiftPin), "lm_head=row");
    row("rule", static_cast<int>(ChangeKind::RuleOn), "aten::mm");
    row("redistribute", static_cast<int>(ChangeKind::Redistribute), "nobody");
    row("sequence", static_cast<int>(ChangeKind::SequenceParallel), "maybe");
    row("ranks", static_cast<int>(ChangeKind::Ranks), "0");
    row("ranks with words", static_cast<int>(ChangeKind::Ranks), "2 ranks");
  }
  void refusesChangesThatDoNotFit() {
    QFETCH(int, kind);
    QFETCH(QString, argument);
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto changed = applied(*problem, {static_cast<ChangeKind>(kind), argument.toStdString()});
    QVERIFY(!changed);
    QCOMPARE(changed.error().code, ErrorCode::BadUsage);
  }

  void appliesEachChange() {
    Problem problem = *test::problemOf(test::llamaGraph(), 2, {"lm_head=row"});
    problem.rulesOff = {"aten::sigmoid"};
    QVERIFY(applied(problem, {ChangeKind::LiftPin, "lm_head=row"})->pins.empty());
    QVERIFY(applied(problem, {ChangeKind::RuleOn, "aten::sigmoid"})->rulesOff.empty());
    QCOMPARE(applied(problem, {ChangeKind::AddPin, "*q_proj=column"})->pins.size(), std::size_t{2});
    QCOMPARE(applied(problem, {ChangeKind::Redistribute, "*q_proj"})->redistributable,
             std::vector<std::string>{"*q_proj"});
    QVERIFY(applied(problem, {ChangeKind::FullCandidateSet, ""})->context.candidateSet == rules::CandidateSet::Full);
    QVERIFY(applied(problem, {ChangeKind::SequenceParallel, "auto"})->context.sequenceParallel ==
            rules::SequenceParallel::Auto);
    QCOMPARE(applied(problem, {ChangeKind::Ranks, "4"})->context.worldSize, 4);
    QCOMPARE(toText(Change{ChangeKind::LiftPin, "lm_head=row"}), std::string("lift the pin lm_head=row"));
  }
};

QTEST_APPLESS_MAIN(TestRemedy)
#include "tst_remedy.moc"
