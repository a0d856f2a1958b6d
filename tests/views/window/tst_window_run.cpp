/// The run in the window as a user sees it: its verdict, training, lanes, saved runs, and the first difference of a
/// plan.
#include <QCheckBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>

#include <csignal>

#include "plan/file/plan_file.h"
#include "tests/support/run_on.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/save_file.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/view/legend.h"
#include "views/run/history_page.h"
#include "views/run/lane_view.h"
#include "views/run/lanes_page.h"
#include "views/run/line_chart.h"
#include "views/run/run_verdict.h"
#include "views/run/run_view.h"
#include "views/window/script.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

void run(MainWindow& window, const RunSettings& settings) {
  window.session().runs().run(settings);
  QTRY_VERIFY_WITH_TIMEOUT(
      window.isSettled() && window.session().runs().state() && !window.session().runs().state()->isActive, kPatience);
}

const Verdict& verdict(MainWindow& window) { return window.findChild<VerdictStrip*>()->verdict(); }

bool isInSight(const QWidget& widget, const QWidget& window) {
  const QRect place(widget.mapTo(&window, QPoint()), widget.size());
  return widget.isVisible() && window.rect().contains(place) && widget.visibleRegion().boundingRect() == widget.rect();
}

QPushButton* buttonNamed(QWidget& parent, const QString& text) {
  for (QPushButton* button : parent.findChildren<QPushButton*>())
    if (button->text() == text && button->isVisible()) return button;
  return nullptr;
}

/// A plan whose ranks use another epsilon in one norm than the model.
QString alteredPlan(const QTemporaryDir& folder) {
  Session session;
  session.settings().setEngine(solve::Engine::Reference);
  session.open(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  if (!QTest::qWaitFor([&] { return session.plans().plan() && session.isIdle(); }, kPatience)) qFatal("no plan");
  QJsonObject plan = QJsonDocument::fromJson(QByteArray::fromStdString(plan::toJson(*session.plans().plan()))).object();
  QJsonObject program = plan["program"].toObject();
  QJsonArray nodes = program["nodes"].toArray();
  int norms = 0;
  for (QJsonValueRef entry : nodes) {
    QJsonObject node = entry.toObject();
    QJsonArray arguments = node["args"].toArray();
    for (QJsonValueRef argument : arguments) {
      const double number = argument.toObject()["f"].toDouble(1);
      if (number > 1e-4 || number <= 0 || ++norms != 2) continue;
      argument = QJsonObject{{"f", 0.5}};
    }
    node["args"] = arguments;
    entry = node;
  }
  if (norms < 2) qFatal("no norm to alter");
  program["nodes"] = nodes;
  plan["program"] = program;
  const QString file = folder.filePath(QStringLiteral("altered.json"));
  if (!saveFile(file, QJsonDocument(plan).toJson())) qFatal("cannot write the plan");
  return file;
}

}  // namespace

class TestWindowRun : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  /// At any size, the page and the panels around it stay visible.
  void theVerdictIsAlwaysInSight_data() {
    QTest::addColumn<QSize>("size");
    QTest::addColumn<bool>("alone");
    for (const QSize size : {QSize(1024, 640), QSize(1280, 800), QSize(1920, 1080)})
      for (const bool alone : {false, true})
        QTest::addRow("%dx%d%s", size.width(), size.height(), alone ? " alone" : "") << size << alone;
  }
  void theVerdictIsAlwaysInSight() {
    QFETCH(QSize, size);
    QFETCH(bool, alone);
    SessionWindow window;
    openModel(window);
    run(window, runOn(2, launch::Backend::Gloo, {.steps = 2}));
    window.applyPreset(alone ? MainWindow::Preset::Run : MainWindow::Preset::Inspect);
    window.showRun();
    window.resize(size);
    QTRY_COMPARE_WITH_TIMEOUT(window.size(), size, kPatience);
    QCOMPARE(verdict(window).word, QStringLiteral("passed"));
    for (const auto page : {RunView::Page::Overview, RunView::Page::Lanes, RunView::Page::Memory, RunView::Page::Log,
                            RunView::Page::History}) {
      window.runView().showPage(page);
      QTRY_VERIFY2(isInSight(*window.findChild<VerdictStrip*>(), window), qPrintable(QString::number(int(page))));
      QCOMPARE(window.size(), size);  // no page makes the window larger
    }
  }

  /// The opened plan runs. Another plan must not run under its title.
  void anOpenedPlanGivesWayToNoOther() {
    const QTemporaryDir folder;
    SessionWindow window;
    window.openPath(alteredPlan(folder));
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && window.session().plans().openedPlan(), kPatience);
    Runs& runs = window.session().runs();
    const auto opened = window.session().plans().plan();
    RunSettings training{.ranks = 2};
    training.training.steps = 2;
    for (const RunSettings& other : {training, RunSettings{.ranks = 4}}) {
      const QString why = runs.whyNot(other);
      QVERIFY2(why.startsWith(QStringLiteral("The opened plan is for 2 ranks and one forward pass, not for ")),
               qPrintable(why));
      runs.run(other);
      QVERIFY(window.isSettled() && !runs.state());
      QCOMPARE(window.session().plans().plan(), opened);
    }
    run(window, runOn(2, launch::Backend::Gloo));
    QCOMPARE(runs.state()->plan, opened);
    QCOMPARE(verdict(window).word, QStringLiteral("failed"));
  }

  /// Steps, optimizer and other settings from the controls. The plan is solved again for training first.
  void trainingIsAskedForInTheView() {
    SessionWindow window;
    openModel(window);
    window.showRun();
    QVERIFY(!window.session().plans().plan()->spec.cost.isTraining);
    window.findChild<QCheckBox*>(QStringLiteral("train"))->click();
    RunSettings settings = window.session().runs().settings();
    QVERIFY(settings.training.steps > 1);
    settings.training.steps = 3;
    settings.training.optimizer = program::Optimizer::Sgd;
    settings.training.clipNorm = 1;
    window.session().runs().setSettings(settings);
    buttonNamed(window.runView(), QStringLiteral("Run on 2"))->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && window.session().runs().state(), kPatience);
    const RunState& state = *window.session().runs().state();
    QVERIFY2(state.report, qPrintable(state.failure));
    QCOMPARE(state.report->steps.size(), std::size_t(3));
    QVERIFY(state.report->steps[2].loss < state.report->steps[0].loss);
    QCOMPARE(state.plan->spec.cost.optimizer, program::Optimizer::Sgd);
    QCOMPARE(verdict(window).word, QStringLiteral("passed"));
    QVERIFY2(verdict(window).sentence.startsWith(QStringLiteral("3 training steps on 2 ranks")),
             qPrintable(verdict(window).sentence));
    QCOMPARE(state.monitor->steps().size(), std::size_t(3));
    bool hasLosses = false;
    for (const LineChart* chart : window.findChildren<LineChart*>())
      hasLosses |= chart->isVisible() && chart->data().title == QStringLiteral("Loss") &&
                   chart->data().lines[0].points.size() == 3;
    QVERIFY(hasLosses);
    // A number that no optimizer accepts is reported and not run.
    for (QLineEdit* edit : window.runView().findChildren<QLineEdit*>()) {
      if (edit->accessibleName() != QStringLiteral("Learning rate")) continue;
      edit->selectAll();
      QTest::keyClick(edit, Qt::Key_0);
    }
    QVERIFY(!buttonNamed(window.runView(), QStringLiteral("Run on 2"))->isEnabled());
  }

  /// Without a GPU, a button offers the remedy.
  void anErrorOffersWhatHelps() {
    if (launch::mayHaveGpu()) QSKIP("this machine has GPUs");
    SessionWindow window;
    openModel(window);
    run(window, runOn(2, launch::Backend::Nccl));
    QCOMPARE(verdict(window).word, QStringLiteral("not started"));
    QPushButton* help = buttonNamed(*window.findChild<VerdictStrip*>(), QStringLiteral("Run over Gloo on CPUs"));
    QVERIFY(help);
    help->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && verdict(window).word == QStringLiteral("passed"), kPatience);
    QCOMPARE(window.session().runs().settings().backend, launch::Backend::Gloo);
  }

  void trainingWithoutALossOffersOne() {
    SessionWindow window;
    window.show();
    window.session().settings().setEngine(solve::Engine::Reference);
    spec::InputSpec options;
    options.loss = false;
    options.sequence = 8;
    window.session().openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), options);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
    run(window, runOn(2, launch::Backend::Gloo, {.steps = 2}));
    QCOMPARE(verdict(window).word, QStringLiteral("not started"));
    QVERIFY2(verdict(window).sentence.contains(QStringLiteral("loss")), qPrintable(verdict(window).sentence));
    QPushButton* help =
        buttonNamed(*window.findChild<VerdictStrip*>(), QStringLiteral("Capture with a Loss and Train"));
    QVERIFY(help);
    help->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && verdict(window).word == QStringLiteral("passed"), kPatience);
    QCOMPARE(window.session().runs().state()->report->steps.size(), std::size_t(2));
  }

  /// Losses are drawn while ranks train. A killed rank is named, and its log is one click away.
  void aRankThatIsKilledIsNamed() {
    SessionWindow window;
    openModel(window);
    window.session().runs().run(runOn(2, launch::Backend::Gloo, {.steps = program::kMostSteps}));
    const auto steps = [&] {
      const RunState* state = window.session().runs().state();
      return state ? state->monitor->steps().size() : 0;
    };
    QTRY_VERIFY_WITH_TIMEOUT(steps() > 3, kPatience);
    LineChart* losses = nullptr;
    for (LineChart* chart : window.findChildren<LineChart*>())
      if (chart->isVisible() && chart->data().title == QStringLiteral("Loss")) losses = chart;
    QVERIFY(losses);
    QTRY_VERIFY_WITH_TIMEOUT(!losses->data().lines[0].points.empty(), kPatience);
    QCOMPARE(verdict(window).word, QStringLiteral("running"));
    QTRY_VERIFY2(verdict(window).sentence.contains(QStringLiteral("of 100000, loss ")),
                 qPrintable(verdict(window).sentence));
    const auto pid = static_cast<pid_t>(window.session().runs().state()->monitor->snapshot()[1].pid);
    QVERIFY(pid > 1);
    QCOMPARE(::kill(pid, SIGKILL), 0);
    QTRY_VERIFY_WITH_TIMEOUT(!window.session().runs().state()->isActive, kPatience);
    QCOMPARE(verdict(window).word, QStringLiteral("failed"));
    QVERIFY2(verdict(window).sentence.startsWith(QStringLiteral("Rank 1 failed first: it was killed")),
             qPrintable(verdict(window).sentence));
    QTRY_VERIFY_WITH_TIMEOUT(buttonNamed(*window.findChild<VerdictStrip*>(), QStringLiteral("Show the Log of Rank 1")),
                             kPatience);
    buttonNamed(*window.findChild<VerdictStrip*>(), QStringLiteral("Show the Log of Rank 1"))->click();
    QCOMPARE(window.runView().page(), RunView::Page::Log);
    // The run is saved with its verdict.
    QCOMPARE(window.session().runs().history().runs()[0]->run.report.outcome.firstFailure->rank, 1);
  }

  void lanesLeadToTheGraph() {
    SessionWindow window;
    openModel(window);
    run(window, runOn(2, launch::Backend::Gloo));
    window.runView().showPage(RunView::Page::Lanes);
    auto* lanes = window.findChild<LaneView*>();
    QTRY_VERIFY_WITH_TIMEOUT(lanes->isVisible(), kPatience);
    // The first stretch of rank 1 with a node.
    const auto& lane = window.session().runs().state()->report->timeline.lanes[1];
    LaneView::Place place{1, 0};
    while (!pipeline::originOf(lane[place.stretch], *window.session().plans().plan()).isValid()) ++place.stretch;
    lanes->zoomBy(20, 0);
    lanes->choose(place);
    QTest::mouseClick(lanes->viewport(), Qt::LeftButton, {}, lanes->rectOf(place).center());
    const graph::NodeId node = window.session().selection().focus().node;
    QCOMPARE(node, pipeline::originOf(lane[lanes->chosen()->stretch], *window.session().plans().plan()));
    QTest::keyClick(lanes, Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().isVisible(), kPatience);
    // The trace equals the command line's.
    const QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("trace.json"));
    window.findChild<LanesPage*>()->saveTrace(file);
    QTRY_VERIFY_WITH_TIMEOUT(!window.session().files().isBusy(), kPatience);
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    QCOMPARE(written.readAll(),
             QByteArray::fromStdString(pipeline::toChromeTrace(window.session().runs().state()->report->timeline,
                                                               *window.session().plans().plan())));
  }

  void runsAreKeptAndCompared() {
    const QTemporaryDir folder;
    SessionWindow window;
    window.session().runs().history().keepIn(folder.path());
    openModel(window);
    run(window, runOn(2, launch::Backend::Gloo, {.steps = 2, .learningRate = 0.001}));
    run(window, runOn(2, launch::Backend::Gloo, {.steps = 2, .learningRate = 0.02}));
    settle(window);
    HistoryPage& history = window.runView().history();
    window.showRun();
    window.runView().showPage(RunView::Page::History);
    QVERIFY(history.compare(1, 2));
    const QString text = history.text();
    for (const char* phrase : {"learning rate", "0.001", "0.02", "passed", "optimizer states", "step time"})
      QVERIFY2(text.contains(QLatin1String(phrase)), qPrintable(text));
    const QString settings = text.section(QStringLiteral("Results"), 0, 0);
    QVERIFY2(!settings.contains(QStringLiteral("optimizer\n")) && !settings.contains(QStringLiteral("backend")),
             qPrintable(settings));  // equal settings are not listed
    QVERIFY(!history.compare(1, 1) && !history.compare(1, 3) && !history.showRun(3) && history.showRun(2));
    QTest::qWait(0);
    buttonNamed(history, QStringLiteral("Forget"))->click();
    QCOMPARE(window.session().runs().history().runs().size(), std::size_t(1));
    QVERIFY(history.showRun(1));
    auto* table = history.findChild<QTableView*>();
    table->setFocus();
    QTest::keyClick(table, Qt::Key_Delete);
    QVERIFY(window.session().runs().history().runs().empty());
  }

  void theFirstDifferenceIsFoundSaidAndColoured() {
    const QTemporaryDir folder;
    SessionWindow window;
    window.resize(1280, 800);
    window.show();
    window.openPath(alteredPlan(folder));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
    run(window, runOn(2, launch::Backend::Gloo));
    QCOMPARE(verdict(window).word, QStringLiteral("failed"));
    QVERIFY2(verdict(window).sentence.contains(QStringLiteral("differs from an unsplit run by up to")),
             qPrintable(verdict(window).sentence));
    // The strip offers it.
    auto* strip = window.findChild<VerdictStrip*>();
    QPushButton* find = buttonNamed(*strip, QStringLiteral("Find the First Difference"));
    QVERIFY(find);
    find->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && window.session().runs().firstDifference() &&
                                 !window.session().runs().firstDifference()->isPending(),
                             kPatience);
    const FirstDifference& difference = *window.session().runs().firstDifference();
    QVERIFY2(difference.found && difference.found->first, qPrintable(difference.failure));
    const graph::Graph& graph = *window.session().opened().graph();
    const graph::NodeId first = graph.value(difference.found->first->value).producer;
    QVERIFY2(graph.opName(graph.node(first)).starts_with("aten::add"), graph.opName(graph.node(first)).c_str());
    QVERIFY2(verdict(window).difference.startsWith(QStringLiteral("First difference: ")),
             qPrintable(verdict(window).difference));
    QCOMPARE(verdict(window).word, QStringLiteral("failed"));
    QCOMPARE(window.session().selection().focus().node, first);
    // With any amount of text, the window stays as small as before.
    window.resize(1024, 640);
    QTRY_COMPARE_WITH_TIMEOUT(window.size(), QSize(1024, 640), kPatience);
    QVERIFY(isInSight(*strip, window));
    // The graph is coloured, with a legend.
    const HeatField* heat = window.graphArea().view().heat();
    QVERIFY(heat && heat->what() == ColorBy::Error);
    QCOMPARE(agreementOf(*heat->of(first)), Agreement::Beyond);
    const QStringList legend = window.graphArea().findChild<Legend*>()->entryTexts();
    QVERIFY2(legend.join(QLatin1Char('|')).contains(QStringLiteral("not compared")), qPrintable(legend.join('|')));
    buttonNamed(*strip, QStringLiteral("Show It in the Graph"))->click();
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().isVisible(), kPatience);
    // Another plan does not have it.
    openModel(window);
    QVERIFY(!window.session().runs().firstDifference());
  }

  void aPlanThatIsRightHasNone() {
    SessionWindow window;
    openModel(window);
    window.session().runs().findFirstDifference();
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && window.session().runs().firstDifference(), kPatience);
    QVERIFY(window.session().runs().firstDifference()->found);
    QVERIFY(!window.session().runs().firstDifference()->found->first);
    QVERIFY2(verdict(window).difference.startsWith(QStringLiteral("No difference: ")),
             qPrintable(verdict(window).difference));
  }

  void theRunHasTheWindowForItself() {
    SessionWindow window;
    openModel(window);
    window.applyPreset(MainWindow::Preset::Run);
    QTRY_VERIFY_WITH_TIMEOUT(window.runView().isVisible(), kPatience);
    QVERIFY(window.runView().width() > window.width() - 10);
    QTest::keyClick(&window, Qt::Key_4, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().isVisible(), kPatience);
    QTest::keyClick(&window, Qt::Key_4, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window.runView().isVisible(), kPatience);
    window.applyPreset(MainWindow::Preset::Inspect);
    QTRY_VERIFY_WITH_TIMEOUT(window.graphArea().isVisible(), kPatience);
  }

  /// A run that waits for a capture with dropout trains afterwards, and so does another model.
  void scriptsTrainWithDropout() {
    SessionWindow window;
    openModel(window, "gpt2");
    const auto commands = parseScript(
        QStringLiteral("solve engine=reference ranks=2 train=on dropout=on\nwait\nrun backend=gloo steps=2\nwait\n"
                       "open %1\nwait\nsolve engine=reference ranks=1\nrun ranks=2 steps=1\nwait\n")
            .arg(QStringLiteral(CLEAVE_TEST_DATA "/families/opt")));
    QVERIFY2(commands.has_value(), commands ? "" : commands.error().message.c_str());
    ScriptRunner runner(window, *commands, {});
    QCOMPARE(runner.run(), 0);
    const RunState* state = window.session().runs().state();
    QVERIFY(state && state->report && state->plan->model.input.dropout);
    QCOMPARE(state->plan->spec.ranks, 2);
    QCOMPARE(state->report->verdict, pipeline::RunVerdict::Passed);
    QCOMPARE(window.session().runs().history().runs().size(), std::size_t(2));
    for (const char* bad : {"solve dropout=0.1", "solve dropout", "solve =2"})
      QVERIFY2(!parseScript(QLatin1String(bad)), bad);
  }

  /// Scripts set the run, start it, and look at saved runs.
  void scriptsDoTheSame() {
    SessionWindow window;
    openModel(window);
    const auto commands = parseScript(QStringLiteral(
        "set-run ranks=2 backend=gloo steps=2 optimizer=sgd lr=0.01 weight_decay=0.1 clip=1 accumulate=2\nrun\nwait\n"
        "page memory\nrun steps=1\nwait\nhistory 1\ncompare 1 2\nforget 2\nbisect\nview graph\ncolour by=error\n"));
    QVERIFY2(commands.has_value(), commands ? "" : commands.error().message.c_str());
    ScriptRunner runner(window, *commands, {});
    QCOMPARE(runner.run(), 0);
    const auto& runs = window.session().runs().history().runs();
    QCOMPARE(runs.size(), std::size_t(1));
    const program::Training& training = runs[0]->run.report.spec.training;
    QCOMPARE(training.steps, 1);
    QCOMPARE(training.optimizer, program::Optimizer::Sgd);
    QCOMPARE(training.weightDecay, 0.1);
    QCOMPARE(training.accumulate, 2);
    QVERIFY(window.session().runs().firstDifference()->found);
    const auto forward = parseScript(QStringLiteral("set-run steps=none"));
    QCOMPARE(ScriptRunner(window, *forward, {}).run(), 0);
    QVERIFY(!window.session().runs().settings().training.isAsked());
    const auto stopped = parseScript(QStringLiteral("run steps=500\nstop\nview graph\n"));
    QCOMPARE(ScriptRunner(window, *stopped, {}).run(), 0);
    for (const char* bad : {"set-run steps=-1", "run shapes=1x4", "set-run lr=0", "run optimizer=none", "run clip=big",
                            "history 0", "compare 1", "forget all", "page nine", "view both"}) {
      const auto parsed = parseScript(QLatin1String(bad));
      QVERIFY2(!parsed && exitCode(parsed.error().code) == 2, bad);
    }
    const auto beyond = parseScript(QStringLiteral("history 99"));
    ScriptRunner failing(window, *beyond, {});
    QCOMPARE(failing.run(), 1);
  }
};

QTEST_MAIN(TestWindowRun)
#include "tst_window_run.moc"
