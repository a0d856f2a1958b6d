// Branches: what they keep after a change, what views show, and the way back.
#include <QtTest>

#include "tests/support/patience.h"
#include "views/base/text.h"
#include "views/session/session.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

namespace {
void settle(Session& session) { QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience); }

void openModel(Session& session) {
  session.settings().setEngine(solve::Engine::Reference);
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
}

void solveWith(Session& session, int ranks) {
  session.settings().setRanks(ranks);
  session.solve();
  settle(session);
}
}  // namespace

class TestBranches : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void solvingAgainUnchangedIsOneBranch() {
    Session session;
    openModel(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    session.solve();
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    QCOMPARE(session.plans().plan(), session.plans().branches()[0].plan);
  }

  /// A device sets its own memory, so there is no budget of the user's.
  void aChangeIsCalledWhatWasChanged() {
    Session session;
    openModel(session);
    const QString other =
        session.settings().spec().cost.profile.name == "h200" ? QStringLiteral("h100") : QStringLiteral("h200");
    QVERIFY(session.settings().setDeviceProfile(other).has_value());
    session.solve();
    settle(session);
    QCOMPARE(session.plans().branches()[1].label, other);
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1ll << 30; });
    session.solve();
    settle(session);
    QCOMPARE(session.plans().branches()[1].label, other + QStringLiteral(", budget 1 GiB"));
  }

  void aChangeStandsBesideWhatWasBefore() {
    Session session;
    openModel(session);
    const auto before = session.plans().plan();
    QVERIFY(!session.plans().isOutdated());
    session.settings().setRanks(4);
    QVERIFY(session.plans().isOutdated());
    session.solve();
    settle(session);
    QVERIFY(!session.plans().isOutdated());
    QCOMPARE(session.plans().branches().size(), std::size_t(2));
    QCOMPARE(session.plans().shownBranch(), std::size_t(1));
    QCOMPARE(session.plans().plan()->spec.ranks, 4);
    QCOMPARE(session.plans().branches()[0].plan, before);
    QCOMPARE(session.plans().branches()[1].label, QStringLiteral("4 ranks"));
    QVERIFY(session.plans().diff());
    QCOMPARE(session.plans().diff()->ranksBefore, 2);
    QCOMPARE(session.plans().diff()->ranksAfter, 4);

    session.plans().showBranch(0);
    settle(session);
    QCOMPARE(session.plans().plan(), before);
    QCOMPARE(session.settings().spec().ranks, 2);
    QCOMPARE(session.debugger().trace(), session.plans().branches()[0].trace);
    QCOMPARE(session.debugger().state()->step, session.debugger().stepCount());
  }

  void aThirdPlanTakesThePlaceOfB() {
    Session session;
    openModel(session);
    const auto before = session.plans().plan();
    solveWith(session, 4);
    solveWith(session, 1);
    QCOMPARE(session.plans().branches().size(), std::size_t(2));
    QCOMPARE(session.plans().branches()[0].plan, before);
    QCOMPARE(session.plans().branches()[1].plan->spec.ranks, 1);
  }

  void keepMakesBTheOnlyOne() {
    Session session;
    openModel(session);
    solveWith(session, 4);
    session.plans().showBranch(0);
    session.plans().keepBranch();
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    QCOMPARE(session.plans().plan()->spec.ranks, 4);
    QCOMPARE(session.settings().spec().ranks, 4);
    QVERIFY(!session.plans().diff());
  }

  void dropGoesBackToA() {
    Session session;
    openModel(session);
    const auto before = session.plans().plan();
    solveWith(session, 4);
    session.plans().dropBranch();
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    QCOMPARE(session.plans().plan(), before);
    QCOMPARE(session.settings().spec().ranks, 2);
    QVERIFY(!session.plans().diff());
  }

  void undoingAChangeLeavesA() {
    Session session;
    openModel(session);
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")).has_value());
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(2));
    QCOMPARE(session.plans().branches()[1].label, QStringLiteral("lm_head=replicated"));
    QVERIFY(session.plans().diff());
    QVERIFY(!session.plans().diff()->isSame());
    session.undoStack().undo();
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    QVERIFY(session.settings().pins().empty());
  }

  void undoLeavesAloneWhatWasSetSince() {
    Session session;
    openModel(session);
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")).has_value());
    settle(session);
    solveWith(session, 4);
    session.undoStack().undo();
    settle(session);
    QVERIFY(session.settings().pins().empty());
    QCOMPARE(session.settings().spec().ranks, 4);
  }

  void rulesAndRedistributionsAreUndoable() {
    Session session;
    openModel(session);
    QVERIFY(session.settings().set("rule-off", "aten::no_such_operator").error().message.find("no_such_operator") !=
            std::string::npos);
    QVERIFY(!session.settings().set("redistribute", "nothing_77"));
    QVERIFY(session.settings().spec().rulesOff.empty() && session.settings().spec().redistributable.empty());
    QVERIFY(session.settings().set("rule-off", "aten::sigmoid").has_value());
    settle(session);
    QCOMPARE(session.plans().solved()->problem->rulesOff, std::vector<std::string>{"aten::sigmoid"});
    session.undoStack().undo();
    settle(session);
    QVERIFY(session.plans().solved()->problem->rulesOff.empty());
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
  }

  void demandsThatCannotHoldLeaveAInReach() {
    Session session;
    openModel(session);
    const auto before = session.plans().plan();
    // A layer that must be split both ways has no solution.
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head=column")).has_value());
    settle(session);
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head!=column")).has_value());
    settle(session);
    QCOMPARE(session.plans().branches().size(), std::size_t(2));
    QVERIFY(!session.plans().plan());
    QCOMPARE(session.plans().solved()->result.outcome, solve::Outcome::NoSolution);
    QVERIFY(!session.plans().diff());
    QVERIFY2(session.plans().diffFailure().contains(QStringLiteral("B")), qPrintable(session.plans().diffFailure()));
    session.plans().showBranch(0);
    settle(session);
    QCOMPARE(session.plans().plan(), before);
  }

  void aSolveThatFailsChangesNothing() {
    Session session;
    openModel(session);
    const auto plan = session.plans().plan();
    const auto trace = session.debugger().trace();
    session.debugger().seek(3);
    settle(session);
    session.settings().setRanks(spec::kMaxRanks + 1);
    session.solve();
    settle(session);
    QCOMPARE(session.plans().plan(), plan);
    QCOMPARE(session.debugger().trace(), trace);
    QCOMPARE(session.debugger().wantedStep(), StepId(3));
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
  }

  void anotherModelHasItsOwnBranches() {
    Session session;
    openModel(session);
    solveWith(session, 4);
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/qwen2"));
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().branches().size() == 1, kPatience);
    QVERIFY(!session.plans().diff());
  }

  void aSamplesSettingsAreNotTheUsers() {
    Session session;
    session.settings().setEngine(solve::Engine::Reference);
    session.settings().setRanks(4);
    const auto samples = pipeline::bundledSamples();
    QVERIFY(samples.has_value());
    session.openSample(samples->front());
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.opened().model(), kPatience);
    QCOMPARE(session.settings().spec().ranks, samples->front().spec.ranks);
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && !session.opened().sample(), kPatience);
    QCOMPARE(session.settings().spec().ranks, 4);
  }
};

QTEST_GUILESS_MAIN(TestBranches)
#include "tst_branches.moc"
