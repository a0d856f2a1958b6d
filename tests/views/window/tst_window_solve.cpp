// Solving in the window: engines, settings and their memory, branches, remedies, colours, and stopping a long survey.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDockWidget>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QToolButton>
#include <QtTest>

#include "graph/operators.h"
#include "pipeline/source/open.h"
#include "tests/support/patience.h"
#include "tests/support/rows.h"
#include "tests/support/session_window.h"
#include "tests/views/window/window_fixture.h"
#include "views/graph/view/graph_view.h"
#include "views/window/branch_bar.h"
#include "views/window/graph_area.h"
#include "views/window/main_window.h"
#include "views/window/solve_settings.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;
using cleave::test::kPatience;

namespace {
constexpr std::int64_t kTightBudget = 400 << 10;

/// A budget that the plan for 2 ranks exceeds, with all its remedies.
void openOverBudget(MainWindow& window) {
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Optimal);
  window.session().settings().setRanks(2);
  window.session().settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = kTightBudget; });
  window.openPath(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(window.session().jobs().activity() == Activity::Idle && window.isSettled(), kPatience);
}

QPushButton* visibleButton(QWidget& window, const QString& text) {
  for (auto* button : window.findChildren<QPushButton*>())
    if (button->isVisible() && button->text() == text) return button;
  return nullptr;
}

/// The box whose accessible name this is.
template <class Box>
Box* boxNamed(QWidget& window, const char* name) {
  for (Box* box : window.findChildren<Box*>())
    if (box->accessibleName() == QLatin1String(name)) return box;
  return nullptr;
}

void choose(QComboBox* box, const QString& text) {
  QVERIFY(box);
  const int index = box->findText(text);
  QVERIFY2(index >= 0, qPrintable(text));
  box->setFocus();
  box->setCurrentIndex(index);
}

void trigger(MainWindow& window, const char* name) {
  auto* action = window.findChild<QAction*>(QLatin1String(name));
  QVERIFY2(action, name);
  QVERIFY2(action->isEnabled(), name);
  action->trigger();
}
}  // namespace

class TestWindowSolve : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources");
    QVERIFY(m_home.isValid());
    QCoreApplication::setOrganizationName(QStringLiteral("cleave-tests"));
    QCoreApplication::setApplicationName(QStringLiteral("solve"));
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_home.path());
  }

  void anotherEngineGivesItsPlan() {
    SessionWindow window;
    openModel(window);
    const auto before = window.session().plans().plan();
    const auto other =
        before->spec.engine == solve::Engine::Learning ? solve::Engine::Reference : solve::Engine::Learning;
    choose(boxNamed<QComboBox>(window, "Engine"), QString::fromUtf8(solve::toText(other).data()));
    QCOMPARE(window.session().plans().plan(), before);  // no solve before the user asks for one
    QTest::keyClick(&window, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().branches().size() == 2 && window.isSettled(), kPatience);
    QCOMPARE(window.session().plans().plan()->spec.engine, other);
    QCOMPARE(window.session().plans().branches()[0].plan, before);
  }

  void theSwitchShowsEitherBranch() {
    SessionWindow window;
    openModel(window);
    auto* bar = window.findChild<BranchBar*>();
    QVERIFY(bar && !bar->isVisible());
    boxNamed<QSpinBox>(window, "Ranks")->setValue(4);
    QTest::keyClick(&window, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(bar->isVisible());
    QCOMPARE(window.session().plans().plan()->spec.ranks, 4);
    QTest::keyClick(&window, Qt::Key_B, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(window.session().plans().plan()->spec.ranks, 2, kPatience);
    QCOMPARE(boxNamed<QSpinBox>(window, "Ranks")->value(), 2);
    QTest::mouseClick(bar->findChild<QToolButton*>(QStringLiteral("B")), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(window.session().plans().plan()->spec.ranks, 4, kPatience);
    trigger(window, "drop-branch");
    QTRY_VERIFY_WITH_TIMEOUT(!bar->isVisible(), kPatience);
    QCOMPARE(window.session().plans().plan()->spec.ranks, 2);
  }

  /// Its figures are those of the solve, independent of later changes to the settings.
  void aRemedyIsAppliedAndCompared_data() {
    const cleave::test::Rows<bool> row("typesFirst");
    row("at once", false);
    row("after another number of ranks was typed", true);
  }
  void aRemedyIsAppliedAndCompared() {
    QFETCH(bool, typesFirst);
    SessionWindow window;
    window.resize(1400, 900);
    window.show();
    const auto& samples = window.samples();
    QVERIFY(samples.has_value());
    for (const pipeline::Sample& sample : *samples)
      if (sample.name == "one-kv-head") window.session().openSample(sample);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().solved() && window.isSettled(), kPatience);
    QVERIFY(window.session().answers().remedies());
    QVERIFY(!window.session().answers().remedies()->offers.empty());
    const solve::Remedy remedy = window.session().answers().remedies()->offers.front();
    if (typesFirst) window.session().settings().setRanks(4);
    window.session().plans().applyChange(remedy.change);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(window.findChild<BranchBar*>()->isVisible());
    QVERIFY(window.session().plans().plan());
    QVERIFY(window.session().plans().diff() && !window.session().plans().diff()->isSame());
    QCOMPARE(window.session().plans().diff()->splitLayers.after, std::int64_t(remedy.after.splitLayers));
    QCOMPARE(window.session().plans().plan()->cost.bytes(), remedy.after.rankBytes);
    QVERIFY(window.session().plans().plan()->cost.femtoseconds() == remedy.after.femtoseconds);
    window.session().undoStack().undo();
    const std::size_t left = typesFirst ? 2 : 1;  // the typed settings are the state to undo to
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().branches().size() == left && window.isSettled(), kPatience);
    QCOMPARE(window.session().settings().spec().ranks, typesFirst ? 4 : 2);
  }

  void whatFitsIsOneClickAway() {
    SessionWindow window;
    std::size_t offered = 1;
    for (std::size_t i = 0; i < offered; ++i) {
      openOverBudget(window);
      QVERIFY(!window.session().plans().plan());
      const auto remedies = window.session().answers().remedies();
      QVERIFY(remedies && remedies->fits && remedies->fits->found.size() > 2);
      offered = remedies->fits->found.size();
      const pipeline::Fit fit = remedies->fits->found.at(i);
      const bool isOtherGraph = fit.input != window.session().opened().model()->info.input;
      const QString what = isOtherGraph ? QStringLiteral("Capture again with %1") : QStringLiteral("Solve with %1");
      const QString name = what.arg(QString::fromStdString(fit.change));
      QPushButton* button = nullptr;
      QTRY_VERIFY2((button = visibleButton(window, name)), qPrintable(name));
      button->click();
      QTRY_VERIFY2_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), qPrintable(name), kPatience);
      QCOMPARE(window.session().plans().plan()->cost.bytes(), fit.rankBytes);
      QVERIFY(fit.rankBytes <= window.session().settings().spec().cost.budgetBytes());
      QVERIFY(window.session().plans().plan()->cost.femtoseconds() == fit.femtoseconds);
    }
  }

  void coloursFollowTheMenu_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"time", "memory", "traffic"}) QTest::newRow(name) << QString::fromLatin1(name);
  }
  void coloursFollowTheMenu() {
    QFETCH(QString, name);
    SessionWindow window;
    openModel(window);
    trigger(window, qPrintable(QStringLiteral("color-") + name));
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().view().heat() && !window.graphArea().view().heat()->isEmpty(),
                             kPatience);
    QCOMPARE(colorName(window.graphArea().view().colorBy()), name);
    // Another plan has other amounts.
    const auto before = window.graphArea().view().heat()->most();
    window.session().settings().setRanks(1);
    window.session().solve();
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(window.graphArea().view().heat()->most() != before);
    trigger(window, "color-axis");
    QVERIFY(!window.graphArea().view().heat());
  }

  void whatSlackGaveUpIsANegativeRegret() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    session.settings().setEngine(solve::Engine::Optimal);
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.slackPercent = 9000; });
    session.solve();
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().branches().size() == 2 && window.isSettled(), kPatience);
    const auto& optimum = session.plans().solved()->result.optimum;
    QVERIFY(optimum && optimum->fastest().femtoseconds() < optimum->cost().femtoseconds());
    trigger(window, "color-regret");
    const auto heat = [&] { return window.graphArea().view().heat(); };
    QTRY_VERIFY_WITH_TIMEOUT(heat() && session.answers().heat(), kPatience);
    // The fastest plan treats some layer differently, so its amount is negative.
    const double gained = double(optimum->fastest().femtoseconds() - optimum->cost().femtoseconds());
    double least = 0;
    for (const auto node : idRange<graph::NodeId>(session.opened().graph()->nodes.size()))
      least = std::min(least, heat()->of(node).value_or(0));
    QCOMPARE(least, gained);
    QVERIFY(heat()->hasNegative());
  }

  void settingsAreRemembered() {
    {
      SessionWindow window(true);
      boxNamed<QSpinBox>(window, "Ranks")->setValue(8);
      choose(boxNamed<QComboBox>(window, "Engine"), QStringLiteral("learning"));
      auto* settings = window.findChild<SolveSettings*>();
      QVERIFY(settings);
      settings->show();
      for (auto* box : settings->findChildren<QCheckBox*>())
        if (!box->isChecked()) QTest::keyClick(box, Qt::Key_Space);
      QVERIFY(window.session().settings().spec().cost.isTraining);
      QVERIFY(window.session().settings().spec().dropout);
      QVERIFY(window.session().settings().spec().cost.memoryBudget.has_value());
      QCOMPARE(window.session().settings().spec().cost.slackPercent, 1.0);
      auto* slack = boxNamed<QDoubleSpinBox>(*settings, "Slack");
      slack->setValue(2.5);
      emit slack->editingFinished();
      QCOMPARE(window.session().settings().spec().cost.slackPercent, 2.5);
    }
    SessionWindow window(true);
    QCOMPARE(window.session().settings().spec().ranks, 8);
    QCOMPARE(window.session().settings().spec().engine, solve::Engine::Learning);
    QVERIFY(window.session().settings().spec().cost.isTraining);
    QVERIFY(window.session().settings().spec().dropout);
    QVERIFY(window.session().settings().spec().cost.memoryBudget.has_value());
    QCOMPARE(window.session().settings().spec().cost.slackPercent, 2.5);
    QCOMPARE(boxNamed<QSpinBox>(window, "Ranks")->value(), 8);
    QSettings().clear();
  }

  /// The change needs another graph, so the model is captured again before the solve.
  void aBoxTrainsWithDropout() {
    SessionWindow window;
    openModel(window, "gpt2");
    Session& session = window.session();
    const auto isSettledWith = [&](bool hasDropout) {
      const auto& plan = session.plans().plan();
      return plan && window.isSettled() && plan->model.input.dropout == hasDropout && !session.plans().isOutdated();
    };
    const auto drops = [&] {
      return std::ranges::any_of(session.opened().graph()->nodes, [&](const graph::Node& node) {
        return graph::isDropout(*session.opened().graph(), node);
      });
    };
    auto* settings = window.findChild<SolveSettings*>();
    settings->show();
    const auto box = [&](const char* text) -> QCheckBox* {
      for (auto* each : settings->findChildren<QCheckBox*>())
        if (each->text().startsWith(QLatin1String(text))) return each;
      return nullptr;
    };
    QCheckBox *training = box("Plan for a training step"), *dropout = box("Train with the dropout");
    QVERIFY(training && dropout && !dropout->isEnabled());
    QTest::keyClick(training, Qt::Key_Space);
    QVERIFY(dropout->isEnabled() && !dropout->isChecked());
    QVERIFY2(dropout->toolTip().contains(QStringLiteral("attn_pdrop 0.1")), qPrintable(dropout->toolTip()));
    QTest::keyClick(dropout, Qt::Key_Space);
    QVERIFY(isSettledWith(false) == false && !drops());  // the shown plan is outdated and stays until the next solve
    trigger(window, "solve");
    QTRY_VERIFY_WITH_TIMEOUT(isSettledWith(true), kPatience);
    QVERIFY(drops());
    QVERIFY(session.plans().plan()->spec.cost.isTraining && dropout->isChecked());
    RunSettings run{.ranks = 2};
    run.training.steps = 2;
    QVERIFY(session.runs().arguments(run).join(QLatin1Char(' ')).contains(QStringLiteral("--dropout on")));
    // A plan for inference has no dropout, whatever the box's state.
    QTest::keyClick(training, Qt::Key_Space);
    QVERIFY(!dropout->isEnabled());
    trigger(window, "solve");
    QTRY_VERIFY_WITH_TIMEOUT(isSettledWith(false), kPatience);
    QVERIFY(!drops() && !session.plans().plan()->spec.cost.isTraining);
  }

  void escStopsTheSurveyOfWorldSizes() {
    SessionWindow window;
    openModel(window, "llama-126-layers");
    window.session().answers().computeWorldSizes();
    QVERIFY(window.session().answers().isPending(AnswerKind::WorldSizes));
    QTest::keyClick(&window, Qt::Key_Escape);
    QTRY_VERIFY_WITH_TIMEOUT(!window.session().answers().isPending(AnswerKind::WorldSizes), kPatience);
    QVERIFY(window.session().answers().worldSizes());
    QVERIFY(!window.session().answers().worldSizes()->isComplete);
    QVERIFY(window.session().plans().plan());
  }

  void everyPanelIsInTheWindowMenu() {
    SessionWindow window;
    openModel(window);
    for (const char* name : {"Pre-flight", "Pareto", "Diff", "Decision", "Conflict"})
      QVERIFY2(window.raiseDock(QLatin1String(name)), name);
    for (auto* dock : window.findChildren<QDockWidget*>()) {
      QVERIFY2(dock->widget()->minimumSizeHint().width() < 500, qPrintable(dock->objectName()));
    }
  }

  /// The dialog opens as large as its texts.
  void settingsAreNotClipped() {
    SessionWindow window;
    openModel(window);
    SolveSettings dialog(window.session().opened(), window.session().settings(), &window);
    dialog.show();
    QVERIFY(QTest::qWaitForWindowExposed(&dialog));
    const auto labels = dialog.findChildren<QLabel*>();
    QVERIFY(labels.size() > 10);
    for (const QLabel* label : labels) {
      if (!label->isVisible()) continue;
      const int height =
          label->hasHeightForWidth() ? label->heightForWidth(label->width()) : label->sizeHint().height();
      QVERIFY2(label->height() >= height && (label->wordWrap() || label->width() >= label->sizeHint().width()),
               qPrintable(label->text()));
    }
  }

 private:
  QTemporaryDir m_home;
};

QTEST_MAIN(TestWindowSolve)
#include "tst_window_solve.moc"
