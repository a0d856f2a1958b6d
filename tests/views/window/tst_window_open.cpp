// All ways to open models, plans and recorded searches are equivalent, and so is the command line's.
#include <CLI/CLI.hpp>
#include <QMenu>
#include <QProcess>
#include <QSettings>
#include <QTemporaryDir>

#include "base/output_file.h"
#include "pipeline/settings/plan_settings.h"
#include "plan/build/diff.h"
#include "plan/file/plan_file.h"
#include "tests/support/run_on.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/text.h"
#include "views/run/run_checks.h"
#include "views/window/plan_strip.h"
#include "views/window/script.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

/// The words that a shell splits a line into.
QStringList inShell(const QString& line) {
  QProcess shell;
  shell.start(QStringLiteral("/bin/sh"), {QStringLiteral("-c"), QStringLiteral("printf '%s\\n' ") + line});
  shell.waitForFinished(kPatience);
  return QString::fromUtf8(shell.readAllStandardOutput()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
}

}  // namespace

class TestWindowOpen : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources");
    QVERIFY(m_folder.isValid());
    QCoreApplication::setOrganizationName(QStringLiteral("cleave-tests"));
    QCoreApplication::setApplicationName(QStringLiteral("open"));
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
    SessionWindow window;
    window.session().settings().setRanks(4);
    openModel(window);
    m_plan = window.session().plans().plan();
    m_events = window.session().debugger().stepCount();
    // The content of a file decides, not its name.
    m_planFile = m_folder.filePath(QStringLiteral("saved"));
    m_traceFile = m_folder.filePath(QStringLiteral("recorded.json"));
    QVERIFY(writeFile(toStd(m_planFile), plan::toJson(*m_plan)).has_value());
    window.session().saveTrace(m_traceFile);
    settle(window);
  }

  void aPlanStandsAsItWasMade() {
    SessionWindow window;
    window.show();
    drop(window, m_planFile);
    Session& session = window.session();
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && window.isSettled(), kPatience);
    const auto difference = plan::diff(*m_plan, *session.plans().plan());
    QVERIFY(difference.has_value() && difference->isSame());
    QCOMPARE(session.settings().spec().ranks, 4);
    QCOMPARE(session.settings().spec().engine, solve::Engine::Reference);
    for (const ValueId value : idRange<ValueId>(session.opened().graph()->values.size()))
      QVERIFY(session.debugger().placementOf(value) == m_plan->solution->of(value));
    session.solve();  // the model is open too: the same settings give the same answer
    settle(window);
    QCOMPARE(session.plans().branches().size(), std::size_t(1));
    QVERIFY(session.debugger().trace());
    QVERIFY(session.plans().plan()->solution->placements == m_plan->solution->placements);
  }

  void whatAFileBroughtStaysWithIt() {
    SessionWindow window;
    window.show();
    Session& session = window.session();
    const spec::PlanSpec own = session.settings().spec();
    QVERIFY(own.ranks != 4);
    for (const QString& file : {m_planFile, m_traceFile}) {
      window.openPath(file);
      QTRY_VERIFY_WITH_TIMEOUT(session.debugger().state() && window.isSettled() && session.settings().spec().ranks == 4,
                               kPatience);
      QVERIFY(session.settings().isBorrowed());
    }
    window.openPath(kLlama);
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && window.isSettled(), kPatience);
    QVERIFY(!session.settings().isBorrowed());
    QCOMPARE(session.settings().spec().ranks, own.ranks);
    QCOMPARE(session.settings().spec().engine, own.engine);
    QVERIFY(session.settings().spec().cost == own.cost && session.settings().spec().candidateSet == own.candidateSet);
  }

  /// A plan file always contains a memory limit. The device's own memory is not a demand of the user.
  void theDevicesMemoryIsNoBudget() {
    SessionWindow window;
    window.show();
    window.openPath(m_planFile);
    Session& session = window.session();
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && window.isSettled(), kPatience);
    QVERIFY(!session.settings().spec().cost.memoryBudget);
    QVERIFY(!session.plans().isOutdated());
    const QString command = runCommand(session.runs(), runOn(4, launch::Backend::Gloo));
    QVERIFY2(!command.isEmpty() && !command.contains(QStringLiteral("--memory-budget")), qPrintable(command));
    QVERIFY(session.settings().setDeviceProfile(QStringLiteral("l40s")).has_value());
    QCOMPARE(session.settings().spec().cost.budgetBytes(), session.settings().spec().cost.profile.memoryBytes);
  }

  /// The file contains the engine, and the next solve uses the recording's settings.
  void aRecordingSaysWhoseItIs() {
    SessionWindow window;
    window.show();
    Session& session = window.session();
    QCOMPARE(session.settings().spec().engine, solve::Engine::Optimal);
    window.openPath(m_traceFile);
    QTRY_VERIFY_WITH_TIMEOUT(session.debugger().state() && window.isSettled(), kPatience);
    QCOMPARE(session.settings().spec().engine, solve::Engine::Reference);
    QVERIFY(!session.settings().spec().candidateSet);
    const QString strip = window.findChild<PlanStrip*>()->text();
    QVERIFY2(strip.contains(QStringLiteral("This is a recorded search for 4 ranks (engine reference)")),
             qPrintable(strip));
    session.settings().setEngine(solve::Engine::Optimal);
    session.solve();
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && window.isSettled(), kPatience);
    QCOMPARE(session.plans().plan()->spec.candidates(), rules::CandidateSet::Full);
  }

  /// Any device set in the window is ignored: the recording has its own.
  void aRecordingBringsItsDevice() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    QVERIFY(session.settings().setDeviceProfile(QStringLiteral("l40s")).has_value());
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1 << 10; });
    session.settings().setEngine(solve::Engine::Optimal);
    session.solve();
    settle(window);
    QVERIFY(session.plans().solved() && !session.plans().plan());
    const QString file = m_folder.filePath(QStringLiteral("of l40s"));
    session.saveTrace(file);
    settle(window);
    const solve::CostSettings cost = session.settings().spec().cost;

    SessionWindow other;
    other.show();
    other.openPath(file);
    QTRY_VERIFY_WITH_TIMEOUT(other.session().debugger().state() && other.isSettled(), kPatience);
    QVERIFY(other.session().settings().spec().cost == cost);
    const QString strip = other.findChild<PlanStrip*>()->text();
    QVERIFY2(strip.contains(QStringLiteral("without a plan: the search found no solution.")), qPrintable(strip));
  }

  /// The same as for its ranks and engine: the next open does not inherit it.
  void aSampleBringsItsDevice() {
    SessionWindow window;
    Session& session = window.session();
    QVERIFY(session.settings().setDeviceProfile(QStringLiteral("cpu")).has_value());
    openSample(window, "tiny-llama");
    QCOMPARE(session.settings().spec().cost.profile.name, std::string(pipeline::kDefaultDevice));
    window.openPath(kLlama);
    QTRY_VERIFY_WITH_TIMEOUT(!session.settings().isBorrowed() && session.plans().plan() && window.isSettled(),
                             kPatience);
    QCOMPARE(session.settings().spec().cost.profile.name, std::string("cpu"));
  }

  void whatHasNoModelIsNotRun() {
    SessionWindow window;
    window.show();
    window.openPath(m_traceFile);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().debugger().state() && window.isSettled(), kPatience);
    int offers = 0;
    for (const QAction* action : window.findChildren<QAction*>()) {
      if (!action->text().startsWith(QLatin1String("Run on"))) continue;
      ++offers;
      QVERIFY(!action->isEnabled());
    }
    QVERIFY(offers > 0);
    window.session().runs().run(runOn(4, launch::Backend::Gloo));
    QVERIFY2(message(window).contains("Open its model folder"), qPrintable(message(window)));
    QVERIFY(!window.session().runs().state());
  }

  void aPlanWithoutItsModelIsShownAlone_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("whyNotRun");
    QTest::newRow("gone") << m_folder.filePath(QStringLiteral("gone"))
                          << "gone does not exist: its weights cannot be read, and the unsplit run";
    QTest::newRow("another model now") << QStringLiteral(CLEAVE_TEST_DATA "/models/qwen2") << "is not the planned one";
  }
  void aPlanWithoutItsModelIsShownAlone() {
    QFETCH(QString, source);
    QFETCH(QString, whyNotRun);
    auto lost = *m_plan;
    lost.model.source = toStd(source);
    SessionWindow window;
    openPlan(window, lost);
    QVERIFY2(message(window).contains("without its model"), qPrintable(message(window)));
    QVERIFY(window.session().debugger().placementOf(ValueId(0)).has_value());
    for (const int ranks :
         {2, lost.spec.ranks}) {  // another plan needs the model; this one needs only its weights and the unsplit run
      window.session().notices().say({}, Severity::Info);
      window.session().runs().run(runOn(ranks, launch::Backend::Gloo));
      QVERIFY2(message(window).contains(whyNotRun), qPrintable(message(window)));
      QVERIFY(!window.session().runs().state());
    }
  }

  /// A plan file's statements about its layers are checked against the plan made again.
  void anAlteredPlanSaysSo_data() {
    QTest::addColumn<bool>("isAltered");
    QTest::addColumn<QString>("maker");
    QTest::addColumn<QString>("says");
    QTest::newRow("as it was written") << false << QString() << QString();
    QTest::newRow("a layer's reason altered") << true << QString() << "failed its check: plan.layers[1].standing";
    QTest::newRow("of another version") << false << "0.0.9"
                                        << "Cleave \"0.0.9\" made it, and this is ";
    QTest::newRow("of another version, and altered") << true << "0.0.9"
                                                     << "failed its check: plan.layers[1].standing";
  }
  void anAlteredPlanSaysSo() {
    QFETCH(bool, isAltered);
    QFETCH(QString, maker);
    QFETCH(QString, says);
    auto told = *m_plan;
    if (isAltered) told.layers[1].replication = plan::Cannot{"the moon is full"};
    if (!maker.isEmpty()) told.madeBy = maker.toStdString();
    SessionWindow window;
    openPlan(window, told);
    QVERIFY2(message(window).contains(says) && message(window).isEmpty() == says.isEmpty(),
             qPrintable(message(window)));
  }

  void everyWayInTakesEveryKind_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<bool>("hasPlan");
    QTest::newRow("model") << kLlama << true;
    QTest::newRow("config") << kLlama + QStringLiteral("/config.json") << true;
    QTest::newRow("plan") << m_planFile << true;
    QTest::newRow("trace") << m_traceFile << false;
  }
  void everyWayInTakesEveryKind() {
    QFETCH(QString, path);
    QFETCH(bool, hasPlan);
    const auto isOpen = [&](MainWindow& window) {
      Session& session = window.session();
      return session.debugger().state() && window.isSettled() && (session.plans().plan() != nullptr) == hasPlan &&
             (hasPlan || session.debugger().stepCount() == m_events);
    };
    SessionWindow dropped;
    dropped.show();
    drop(dropped, path);
    QTRY_VERIFY_WITH_TIMEOUT(isOpen(dropped), kPatience);
    SessionWindow scripted;
    ScriptRunner runner(scripted, *parseScript(QStringLiteral("open %1\nwait\n").arg(path)), {});
    QCOMPARE(runner.run(), 0);
    QVERIFY(isOpen(scripted));
    {
      SessionWindow first(true);
      first.openPath(path);
      QTRY_VERIFY_WITH_TIMEOUT(isOpen(first), kPatience);
    }
    SessionWindow again(true);  // also from Recent
    const QStringList recent = QSettings().value(QStringLiteral("recent")).toStringList();
    QVERIFY(!recent.isEmpty());
    for (QMenu* menu : again.findChildren<QMenu*>())
      for (QAction* entry : menu->actions())
        if (entry->text() == recent.front()) entry->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(isOpen(again), kPatience);
    QSettings().clear();
  }

  void whatElseIsThereIsSaid_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("weights") << QByteArray(16, '\0') << "model.safetensors"
                             << "Open its folder instead";
    QTest::newRow("gguf") << QByteArray("GGUF\3") << "model.gguf"
                          << "a GGUF file";
    QTest::newRow("a run") << QByteArray("{\"schema\": \"cleave.run/1\"}") << "run.json"
                           << "a cleave.run/1";
    QTest::newRow("checkpoint") << QByteArray("PK\3\4") << "pytorch_model.bin"
                                << "a PyTorch checkpoint";
    QTest::newRow("nothing") << QByteArray() << "empty"
                             << "empty";
    QTest::newRow("text") << QByteArray("hello") << "notes.txt"
                          << "model folders with a config.json, exported programs (.pt2), plans, recorded searches and "
                             "sessions";
  }
  void whatElseIsThereIsSaid() {
    QFETCH(QByteArray, content);
    QFETCH(QString, name);
    QFETCH(QString, phrase);
    QFile file(m_folder.filePath(name));
    QVERIFY(file.open(QFile::WriteOnly));
    file.write(content);
    file.close();
    SessionWindow window;
    window.show();
    drop(window, file.fileName());
    QTRY_VERIFY_WITH_TIMEOUT(!message(window).isEmpty(), kPatience);
    QVERIFY2(message(window).contains(phrase), qPrintable(message(window)));
    QVERIFY(message(window).contains(file.fileName()));
    QVERIFY(!window.session().opened().model());
  }

  void theCommandLineSaysTheSame() {
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    session.recapture({.batch = 2, .sequence = 64, .dtype = graph::DType::BFloat16, .mask = true, .loss = false});
    settle(window);
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.isTraining = true; });
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.optimizer = solve::Optimizer::Sgd; });
    QVERIFY(session.settings().setDeviceProfile(QStringLiteral("cpu")).has_value());
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1ll << 33; });
    session.settings().change([](spec::PlanSpec& spec) { spec.sequenceParallel = rules::SequenceParallel::Auto; });
    session.settings().change([](spec::PlanSpec& spec) { spec.candidateSet = rules::CandidateSet::Full; });
    QVERIFY(session.settings().addPin(QStringLiteral("model.layers.*.mlp.up_proj!=row")).has_value());
    settle(window);
    QVERIFY(session.settings().set("rule-off", "aten::mul.Tensor").has_value());
    settle(window);
    RunSettings asked{.ranks = session.settings().spec().ranks};
    asked.backend = launch::Backend::Gloo;
    const QStringList words = inShell(runCommand(session.runs(), asked));
    QCOMPARE(words.mid(0, 2), (QStringList{QStringLiteral("cleave-cli"), QStringLiteral("run")}));
    QCOMPARE(words.mid(words.size() - 2), (QStringList{QStringLiteral("--backend"), QStringLiteral("gloo")}));
    std::vector<std::string> rest;
    for (qsizetype i = 3; i < words.size() - 2; ++i)
      if (words[i] != QLatin1String("--skip-weights")) rest.push_back(toStd(words[i]));  // it belongs to `run`
    auto read = pipeline::readPlanArguments(toStd(words[2]), rest);
    QVERIFY(read && read->settle());
    const spec::InputSpec* capture = &read->input;
    const spec::PlanSpec* solve = &read->plan;
    QCOMPARE(capture->batch, std::int64_t{2});
    QCOMPARE(capture->sequence, std::int64_t{64});
    QVERIFY(capture->dtype == graph::DType::BFloat16 && capture->mask && !capture->loss);
    QVERIFY(solve->cost == session.settings().spec().cost);
    QVERIFY(solve->sequenceParallel == rules::SequenceParallel::Auto &&
            solve->candidateSet == rules::CandidateSet::Full);
    QCOMPARE(solve->pins.size(), std::size_t(1));
    QCOMPARE(solve->rulesOff, session.settings().spec().rulesOff);
  }

 private:
  /// Like a file written by somebody else.
  void openPlan(MainWindow& window, const plan::Plan& plan) {
    const QString file = m_folder.filePath(QStringLiteral("written.json"));
    QVERIFY(writeFile(toStd(file), plan::toJson(plan)).has_value());
    window.show();
    window.openPath(file);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
  }

  QTemporaryDir m_folder;
  QString m_planFile, m_traceFile;
  std::shared_ptr<const plan::Plan> m_plan;
  StepId m_events = 0;
};

QTEST_MAIN(TestWindowOpen)
#include "tst_window_open.moc"
