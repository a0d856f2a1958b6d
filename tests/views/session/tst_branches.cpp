// Branches: what is kept when something changes, what every view sees, and the way back.
#include <QtTest>

#include "views/base/text.h"
#include "views/session/document.h"

using namespace cleave;
using namespace cleave::views;

namespace {
constexpr int kPatience = 60'000;

void settle(Document& document) { QTRY_VERIFY_WITH_TIMEOUT(document.isIdle(), kPatience); }

void openModel(Document& document) {
  document.setEngine(solve::Engine::Reference);
  document.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.plan(), kPatience);
}

void solveWith(Document& document, int ranks) {
  document.setRanks(ranks);
  document.solve();
  settle(document);
}
}  // namespace

class TestBranches : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void solvingAgainUnchangedIsOneBranch() {
    Document document;
    openModel(document);
    QCOMPARE(document.branches().size(), std::size_t(1));
    document.solve();
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(1));
    QCOMPARE(document.plan(), document.branches()[0].plan);
  }

  /// A device brings its memory along: nobody asked for a budget.
  void aChangeIsCalledWhatWasChanged() {
    Document document;
    openModel(document);
    const QString other =
        document.settings().cost.profile.name == "h200" ? QStringLiteral("h100") : QStringLiteral("h200");
    QVERIFY(document.setDeviceProfile(other).has_value());
    document.solve();
    settle(document);
    QCOMPARE(document.branches()[1].label, other);
    document.setMemoryBudget(1ll << 30);
    document.solve();
    settle(document);
    QCOMPARE(document.branches()[1].label, other + QStringLiteral(", budget 1 GiB"));
  }

  void aChangeStandsBesideWhatWasBefore() {
    Document document;
    openModel(document);
    const auto before = document.plan();
    QVERIFY(!document.isOutdated());
    document.setRanks(4);
    QVERIFY(document.isOutdated());
    document.solve();
    settle(document);
    QVERIFY(!document.isOutdated());
    QCOMPARE(document.branches().size(), std::size_t(2));
    QCOMPARE(document.shownBranch(), std::size_t(1));
    QCOMPARE(document.plan()->ranks, 4);
    QCOMPARE(document.branches()[0].plan, before);
    QCOMPARE(document.branches()[1].label, QStringLiteral("4 ranks"));
    QVERIFY(document.planDiff());
    QCOMPARE(document.planDiff()->ranksBefore, 2);
    QCOMPARE(document.planDiff()->ranksAfter, 4);

    document.showBranch(0);
    settle(document);
    QCOMPARE(document.plan(), before);
    QCOMPARE(document.settings().ranks, 2);
    QCOMPARE(document.trace(), document.branches()[0].trace);
    QCOMPARE(document.stepState()->step, document.stepCount());
  }

  void aThirdPlanTakesThePlaceOfB() {
    Document document;
    openModel(document);
    const auto before = document.plan();
    solveWith(document, 4);
    solveWith(document, 1);
    QCOMPARE(document.branches().size(), std::size_t(2));
    QCOMPARE(document.branches()[0].plan, before);
    QCOMPARE(document.branches()[1].plan->ranks, 1);
  }

  void keepMakesBTheOnlyOne() {
    Document document;
    openModel(document);
    solveWith(document, 4);
    document.showBranch(0);
    document.keepBranch();
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(1));
    QCOMPARE(document.plan()->ranks, 4);
    QCOMPARE(document.settings().ranks, 4);
    QVERIFY(!document.planDiff());
  }

  void dropGoesBackToA() {
    Document document;
    openModel(document);
    const auto before = document.plan();
    solveWith(document, 4);
    document.dropBranch();
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(1));
    QCOMPARE(document.plan(), before);
    QCOMPARE(document.settings().ranks, 2);
    QVERIFY(!document.planDiff());
  }

  void undoingAChangeLeavesA() {
    Document document;
    openModel(document);
    QVERIFY(document.addPin(QStringLiteral("lm_head=replicated")).has_value());
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(2));
    QCOMPARE(document.branches()[1].label, QStringLiteral("lm_head=replicated"));
    QVERIFY(document.planDiff());
    QVERIFY(!document.planDiff()->isSame());
    document.undoStack().undo();
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(1));
    QVERIFY(document.pins().empty());
  }

  void undoLeavesAloneWhatWasSetSince() {
    Document document;
    openModel(document);
    QVERIFY(document.addPin(QStringLiteral("lm_head=replicated")).has_value());
    settle(document);
    solveWith(document, 4);
    document.undoStack().undo();
    settle(document);
    QVERIFY(document.pins().empty());
    QCOMPARE(document.settings().ranks, 4);
  }

  void rulesAndRedistributionsAreUndoable() {
    Document document;
    openModel(document);
    QVERIFY(document.setRulesOff({"aten::no_such_operator"}).error().message.find("no_such_operator") !=
            std::string::npos);
    QVERIFY(!document.setRedistributable({"nothing_77"}));
    QVERIFY(document.settings().rulesOff.empty() && document.settings().redistributable.empty());
    QVERIFY(document.setRulesOff({"aten::sigmoid"}).has_value());
    settle(document);
    QCOMPARE(document.solved()->problem->rulesOff, std::vector<std::string>{"aten::sigmoid"});
    document.undoStack().undo();
    settle(document);
    QVERIFY(document.solved()->problem->rulesOff.empty());
    QCOMPARE(document.branches().size(), std::size_t(1));
  }

  void demandsThatCannotHoldLeaveAInReach() {
    Document document;
    openModel(document);
    const auto before = document.plan();
    // A layer that must be split both ways has no solution.
    QVERIFY(document.addPin(QStringLiteral("lm_head=column")).has_value());
    settle(document);
    QVERIFY(document.addPin(QStringLiteral("lm_head!=column")).has_value());
    settle(document);
    QCOMPARE(document.branches().size(), std::size_t(2));
    QVERIFY(!document.plan());
    QCOMPARE(document.solved()->result.outcome, solve::Outcome::NoSolution);
    QVERIFY(!document.planDiff());
    QVERIFY2(document.planDiffFailure().contains(QStringLiteral("B")), qPrintable(document.planDiffFailure()));
    document.showBranch(0);
    settle(document);
    QCOMPARE(document.plan(), before);
  }

  void aSolveThatFailsChangesNothing() {
    Document document;
    openModel(document);
    const auto plan = document.plan();
    const auto trace = document.trace();
    document.seek(3);
    settle(document);
    document.setRanks(pipeline::kMaxRanks + 1);
    document.solve();
    settle(document);
    QCOMPARE(document.plan(), plan);
    QCOMPARE(document.trace(), trace);
    QCOMPARE(document.wantedStep(), StepId(3));
    QCOMPARE(document.branches().size(), std::size_t(1));
  }

  void anotherModelHasItsOwnBranches() {
    Document document;
    openModel(document);
    solveWith(document, 4);
    document.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/qwen2"));
    QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.branches().size() == 1, kPatience);
    QVERIFY(!document.planDiff());
  }

  void aSamplesSettingsAreNotTheUsers() {
    Document document;
    document.setEngine(solve::Engine::Reference);
    document.setRanks(4);
    const auto samples = pipeline::bundledSamples();
    QVERIFY(samples.has_value());
    document.openSample(samples->front());
    QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && document.model(), kPatience);
    QCOMPARE(document.settings().ranks, samples->front().solve.ranks);
    document.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    QTRY_VERIFY_WITH_TIMEOUT(document.isIdle() && !document.sample(), kPatience);
    QCOMPARE(document.settings().ranks, 4);
  }
};

QTEST_GUILESS_MAIN(TestBranches)
#include "tst_branches.moc"
