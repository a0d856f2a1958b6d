// Solving in the window: engines, settings and their memory, branches, remedies, colours, and stopping a long survey.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDockWidget>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QToolButton>
#include <QtTest>

#include "views/graph/view/graph_view.h"
#include "views/window/branch_bar.h"
#include "views/window/graph_area.h"
#include "views/window/main_window.h"
#include "views/window/solve_settings.h"

using namespace cleave;
using namespace cleave::views;

namespace {
constexpr int kPatience = 60'000;
constexpr std::int64_t kTightBudget = 400 << 10;

void openModel(MainWindow& window, const char* model = "llama") {
  window.resize(1400, 900);
  window.show();
  window.document().setEngine(
      solve::Engine::Reference);  // the fastest plan of a tiny model is whole on any number of ranks
  window.openPath(QStringLiteral(CLEAVE_TEST_DATA "/models/") + QLatin1String(model));
  QTRY_VERIFY_WITH_TIMEOUT(window.document().plan() && window.isSettled(), kPatience);
}

/// On a budget that the plan for 2 ranks is over, with all that can be done about it.
void openOverBudget(MainWindow& window) {
  window.resize(1400, 900);
  window.show();
  window.document().setEngine(solve::Engine::Optimal);
  window.document().setRanks(2);
  window.document().setMemoryBudget(kTightBudget);
  window.openPath(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(window.document().activity() == Activity::Idle && window.isSettled(), kPatience);
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
    MainWindow window(false);
    openModel(window);
    const auto before = window.document().plan();
    const auto other = before->engine == solve::Engine::Learning ? solve::Engine::Reference : solve::Engine::Learning;
    choose(boxNamed<QComboBox>(window, "Engine"), QString::fromUtf8(solve::toText(other).data()));
    QCOMPARE(window.document().plan(), before);  // nothing is solved before it is asked for
    QTest::keyClick(&window, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.document().branches().size() == 2 && window.isSettled(), kPatience);
    QCOMPARE(window.document().plan()->engine, other);
    QCOMPARE(window.document().branches()[0].plan, before);
  }

  void theSwitchShowsEitherBranch() {
    MainWindow window(false);
    openModel(window);
    auto* bar = window.findChild<BranchBar*>();
    QVERIFY(bar && !bar->isVisible());
    boxNamed<QSpinBox>(window, "Ranks")->setValue(4);
    QTest::keyClick(&window, Qt::Key_Return, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.document().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(bar->isVisible());
    QCOMPARE(window.document().plan()->ranks, 4);
    QTest::keyClick(&window, Qt::Key_B, Qt::ControlModifier);
    QTRY_COMPARE(window.document().plan()->ranks, 2);
    QCOMPARE(boxNamed<QSpinBox>(window, "Ranks")->value(), 2);
    QTest::mouseClick(bar->findChild<QToolButton*>(QStringLiteral("B")), Qt::LeftButton);
    QTRY_COMPARE(window.document().plan()->ranks, 4);
    trigger(window, "drop-branch");
    QTRY_VERIFY(!bar->isVisible());
    QCOMPARE(window.document().plan()->ranks, 2);
  }

  /// Its figures are of what was solved, whatever was typed into the settings since.
  void aRemedyIsAppliedAndCompared_data() {
    QTest::addColumn<bool>("typesFirst");
    QTest::newRow("at once") << false;
    QTest::newRow("after another number of ranks was typed") << true;
  }
  void aRemedyIsAppliedAndCompared() {
    QFETCH(bool, typesFirst);
    MainWindow window(false);
    window.resize(1400, 900);
    window.show();
    const auto& samples = window.samples();
    QVERIFY(samples.has_value());
    for (const pipeline::Sample& sample : *samples)
      if (sample.name == "one-kv-head") window.document().openSample(sample);
    QTRY_VERIFY_WITH_TIMEOUT(window.document().solved() && window.isSettled(), kPatience);
    QVERIFY(window.document().remedies());
    QVERIFY(!window.document().remedies()->offers.empty());
    const solve::Remedy remedy = window.document().remedies()->offers.front();
    if (typesFirst) window.document().setRanks(4);
    window.document().applyChange(remedy.change);
    QTRY_VERIFY_WITH_TIMEOUT(window.document().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(window.findChild<BranchBar*>()->isVisible());
    QVERIFY(window.document().plan());
    QVERIFY(window.document().planDiff() && !window.document().planDiff()->isSame());
    QCOMPARE(window.document().planDiff()->splitLayers.after, std::int64_t(remedy.after.splitLayers));
    QCOMPARE(window.document().plan()->cost.bytes(), remedy.after.rankBytes);
    QVERIFY(window.document().plan()->cost.femtoseconds() == remedy.after.femtoseconds);
    window.document().undoStack().undo();
    const std::size_t left = typesFirst ? 2 : 1;  // what was typed is what was undone to
    QTRY_VERIFY_WITH_TIMEOUT(window.document().branches().size() == left && window.isSettled(), kPatience);
    QCOMPARE(window.document().settings().ranks, typesFirst ? 4 : 2);
  }

  void whatFitsIsOneClickAway() {
    MainWindow window(false);
    std::size_t offered = 1;
    for (std::size_t i = 0; i < offered; ++i) {
      openOverBudget(window);
      QVERIFY(!window.document().plan());
      const auto remedies = window.document().remedies();
      QVERIFY(remedies && remedies->fits && remedies->fits->found.size() > 2);
      offered = remedies->fits->found.size();
      const pipeline::Fit fit = remedies->fits->found.at(i);
      const bool isOtherGraph = fit.capture != pipeline::captureOptionsOf(window.document().model()->info);
      const QString what = isOtherGraph ? QStringLiteral("Capture again with %1") : QStringLiteral("Solve with %1");
      const QString name = what.arg(QString::fromStdString(fit.change));
      QPushButton* button = nullptr;
      QTRY_VERIFY2((button = visibleButton(window, name)), qPrintable(name));
      button->click();
      QTRY_VERIFY2_WITH_TIMEOUT(window.document().plan() && window.isSettled(), qPrintable(name), kPatience);
      QCOMPARE(window.document().plan()->cost.bytes(), fit.rankBytes);
      QVERIFY(fit.rankBytes <= window.document().settings().cost.budgetBytes());
      QVERIFY(window.document().plan()->cost.femtoseconds() == fit.femtoseconds);
    }
  }

  void coloursFollowTheMenu_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"time", "memory", "traffic"}) QTest::newRow(name) << QString::fromLatin1(name);
  }
  void coloursFollowTheMenu() {
    QFETCH(QString, name);
    MainWindow window(false);
    openModel(window);
    trigger(window, qPrintable(QStringLiteral("color-") + name));
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().view().heat() && !window.graphArea().view().heat()->isEmpty(),
                             kPatience);
    QCOMPARE(colorName(window.graphArea().view().colorBy()), name);
    // Another plan has other amounts.
    const auto before = window.graphArea().view().heat()->most();
    window.document().setRanks(1);
    window.document().solve();
    QTRY_VERIFY_WITH_TIMEOUT(window.document().branches().size() == 2 && window.isSettled(), kPatience);
    QVERIFY(window.graphArea().view().heat()->most() != before);
    trigger(window, "color-axis");
    QVERIFY(!window.graphArea().view().heat());
  }

  void whatSlackGaveUpIsANegativeRegret() {
    MainWindow window(false);
    openModel(window);
    Document& document = window.document();
    document.setEngine(solve::Engine::Optimal);
    document.setSlack(9000);
    document.solve();
    QTRY_VERIFY_WITH_TIMEOUT(document.branches().size() == 2 && window.isSettled(), kPatience);
    const auto& optimum = document.solved()->result.optimum;
    QVERIFY(optimum && optimum->fastest().femtoseconds() < optimum->cost().femtoseconds());
    trigger(window, "color-regret");
    const auto heat = [&] { return window.graphArea().view().heat(); };
    QTRY_VERIFY_WITH_TIMEOUT(heat() && document.heat(), kPatience);
    // The fastest plan treats some layer otherwise: so much faster that is.
    const double gained = double(optimum->fastest().femtoseconds() - optimum->cost().femtoseconds());
    double least = 0;
    for (const auto node : idRange<graph::NodeId>(document.graph()->nodes.size()))
      least = std::min(least, heat()->of(node).value_or(0));
    QCOMPARE(least, gained);
    QVERIFY(heat()->hasNegative());
  }

  void settingsAreRemembered() {
    {
      MainWindow window(true);
      boxNamed<QSpinBox>(window, "Ranks")->setValue(8);
      choose(boxNamed<QComboBox>(window, "Engine"), QStringLiteral("learning"));
      auto* settings = window.findChild<SolveSettings*>();
      QVERIFY(settings);
      settings->show();
      for (auto* box : settings->findChildren<QCheckBox*>())
        if (!box->isChecked()) QTest::keyClick(box, Qt::Key_Space);
      QVERIFY(window.document().settings().cost.isTraining);
      QVERIFY(window.document().settings().cost.memoryBudget.has_value());
      QCOMPARE(window.document().settings().cost.slackPercent, 1.0);
      auto* slack = boxNamed<QDoubleSpinBox>(*settings, "Slack");
      slack->setValue(2.5);
      emit slack->editingFinished();
      QCOMPARE(window.document().settings().cost.slackPercent, 2.5);
    }
    MainWindow window(true);
    QCOMPARE(window.document().settings().ranks, 8);
    QCOMPARE(window.document().settings().engine, solve::Engine::Learning);
    QVERIFY(window.document().settings().cost.isTraining);
    QVERIFY(window.document().settings().cost.memoryBudget.has_value());
    QCOMPARE(window.document().settings().cost.slackPercent, 2.5);
    QCOMPARE(boxNamed<QSpinBox>(window, "Ranks")->value(), 8);
    QSettings().clear();
  }

  void escStopsTheSurveyOfWorldSizes() {
    MainWindow window(false);
    openModel(window, "llama-126-layers");
    window.document().computeWorldSizes();
    QVERIFY(window.document().isPending(Question::WorldSizes));
    QTest::keyClick(&window, Qt::Key_Escape);
    QTRY_VERIFY_WITH_TIMEOUT(!window.document().isPending(Question::WorldSizes), kPatience);
    QVERIFY(window.document().worldSizes());
    QVERIFY(!window.document().worldSizes()->isComplete);
    QVERIFY(window.document().plan());
  }

  void everyPanelIsInTheWindowMenu() {
    MainWindow window(false);
    openModel(window);
    for (const char* name : {"Pre-flight", "Pareto", "Diff", "Decision", "Conflict"})
      QVERIFY2(window.raiseDock(QLatin1String(name)), name);
    for (auto* dock : window.findChildren<QDockWidget*>()) {
      QVERIFY2(dock->widget()->minimumSizeHint().width() < 500, qPrintable(dock->objectName()));
    }
  }

 private:
  QTemporaryDir m_home;
};

QTEST_MAIN(TestWindowSolve)
#include "tst_window_solve.moc"
