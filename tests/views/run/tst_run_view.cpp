// Before a run: the memory checks, and ranks that do not fit start only after a confirmation.
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QtTest>

#include "launch/rank_program.h"
#include "pipeline/memory/memory_check.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "pipeline/source/plan_file.h"
#include "plan/file/plan_file.h"
#include "tests/support/patience.h"
#include "tests/support/rows.h"
#include "tests/support/run_on.h"
#include "views/base/save_file.h"
#include "views/base/text.h"
#include "views/run/cluster_dialog.h"
#include "views/run/rank_bars.h"
#include "views/run/run_checks.h"
#include "views/run/run_export.h"
#include "views/run/run_view.h"
#include "views/session/session.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;
using cleave::views::testing::runOn;

namespace {
/// A Llama with this number of layers; 1,000 of them are 40 TiB.
QString makeModel(const QTemporaryDir& folder, int hidden, int layers) {
  QFile config(folder.filePath(QStringLiteral("config.json")));
  if (!config.open(QIODevice::WriteOnly)) qFatal("cannot write the config");
  config.write(
      QStringLiteral(
          "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": %1,"
          " \"intermediate_size\": %2, \"num_hidden_layers\": %3, \"num_attention_heads\": 8, \"num_key_value_heads\": "
          "8,"
          " \"vocab_size\": 512, \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0,"
          " \"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}")
          .arg(hidden)
          .arg(4 * hidden)
          .arg(layers)
          .toUtf8());
  return folder.path();
}

void open(Session& session, const QString& model) {
  session.settings().setEngine(solve::Engine::Reference);
  spec::InputSpec options;
  options.sequence = 8;
  session.openSource(model, options);
  QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && session.jobs().activity() == Activity::Idle, kPatience);
}

QPushButton* startButton(RunView& panel) {
  for (QPushButton* button : panel.findChildren<QPushButton*>())
    if (button->text().startsWith(QLatin1String("Run on"))) return button;
  return nullptr;
}
}  // namespace

class TestRunView : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void ranksThatFitStartAtOnce() {
    QTemporaryDir folder;
    Session session;
    open(session, makeModel(folder, 64, 2));
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    panel.show();
    QVERIFY(startButton(panel)->isEnabled());
    QVERIFY(!panel.findChild<QCheckBox*>(QStringLiteral("start-anyway"))->isVisible());
    const auto checks = checksBeforeRun(session.plans().plan().get(), runOn(2, launch::Backend::Gloo),
                                        launch::chooseBackend(launch::Backend::Gloo, 2));
    const auto memory = std::find_if(checks.begin(), checks.end(), [](const RunCheck& c) {
      return c.text.contains(QLatin1String("this machine has "));
    });
    QVERIFY(memory != checks.end() && memory->isOk);
  }

  /// The predictions before a run hold after it, for the program and its processes, and a report equals the bars.
  void aRunTakesWhatWasChecked() {
    QTemporaryDir folder;
    Session session;
    open(session, makeModel(folder, 256, 2));
    const pipeline::MemoryCheck check = pipeline::checkMemory(*session.plans().plan(), launch::Backend::Gloo);
    session.runs().run(runOn(2, launch::Backend::Gloo));
    QTRY_VERIFY_WITH_TIMEOUT(session.jobs().activity() == Activity::Idle && session.runs().state(), kPatience);
    const RunState& run = *session.runs().state();
    QVERIFY2(run.report && run.report->outcome.succeeded, qPrintable(run.failure));
    std::int64_t processes = 0;
    for (const RankView& rank : run.monitor->snapshot()) {
      const protocol::PeakMemory peak = run.report->outcome.results[static_cast<std::size_t>(rank.rank)]->peak;
      QCOMPARE(rank.memory.peak, peak);
      const std::int64_t predicted = session.plans().plan()->memory.total();
      QVERIFY2(peak.program > predicted / 2 && peak.program < predicted * 5 / 4,
               qPrintable(QStringLiteral("%1 of %2").arg(peak.program).arg(predicted)));
      QVERIFY(peak.process > peak.program);
      processes += peak.process;
    }
    const std::int64_t shared = 72 << 20;  // counted by each process
    QVERIFY2(check.needed >= processes - shared && check.needed < 2 * processes,
             qPrintable(QStringLiteral("%1 of %2").arg(processes).arg(check.needed)));
    const auto json =
        QJsonDocument::fromJson(QByteArray::fromStdString(pipeline::toJson(*run.report, *session.plans().plan())));
    const QJsonObject first = json[QLatin1String("ranks")][0].toObject();
    QCOMPARE(first[QLatin1String("peak_memory")].toInteger(), run.report->outcome.results[0]->peak.program);
    QCOMPARE(json[QLatin1String("plan")][QLatin1String("predicted_memory")].toInteger(),
             session.plans().plan()->memory.total());
    // The window writes the same report as the command line, with the samples.
    QJsonObject exported = QJsonDocument::fromJson(runToJson(run).toUtf8()).object();
    const QJsonArray watched = exported.take(QLatin1String("watched")).toArray();
    QCOMPARE(exported, json.object());
    QCOMPARE(watched.size(), 2);
    QCOMPARE(watched[1][QLatin1String("peak_rss")].toInteger(), run.report->outcome.results[1]->peak.process);
    QVERIFY(!watched[1][QLatin1String("process_bytes_10hz")].toArray().isEmpty());
  }

  /// Solving again would not find a plan either.
  void withoutASolutionThereIsNothingToRun() {
    QTemporaryDir folder;
    Session session;
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1 << 10; });
    spec::InputSpec options;
    options.sequence = 8;
    session.openSource(makeModel(folder, 64, 2), options);
    QTRY_VERIFY_WITH_TIMEOUT(session.jobs().activity() == Activity::Idle && session.plans().solved(), kPatience);
    QVERIFY(!session.plans().plan());
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    panel.show();
    QPushButton* start = startButton(panel);
    QVERIFY(!start->isEnabled());
    QVERIFY2(start->toolTip().contains(QLatin1String("conflict card")), qPrintable(start->toolTip()));
    const auto labels = panel.findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
                        [&](const QLabel* label) { return label->text().contains(start->toolTip()); }));
    QVERIFY(std::none_of(labels.begin(), labels.end(),
                         [](const QLabel* label) { return label->text().contains(QLatin1String("No plan yet")); }));
    session.runs().run(runOn(2, launch::Backend::Gloo));
    QVERIFY(session.jobs().activity() == Activity::Idle && !session.runs().state());
    // Another setting may have a plan.
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = std::nullopt; });
    QVERIFY(start->isEnabled());
  }

  void ranksThatDoNotFitStartOnlyOnRequest() {
    QTemporaryDir folder;
    Session session;
    open(session, makeModel(folder, 65536, 12));
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    panel.show();
    QPushButton* start = startButton(panel);
    auto* startAnyway = panel.findChild<QCheckBox*>(QStringLiteral("start-anyway"));
    QVERIFY(startAnyway->isVisible() && !startAnyway->isChecked());
    QVERIFY(!start->isEnabled());
    const auto checks = checksBeforeRun(session.plans().plan().get(), runOn(2, launch::Backend::Gloo),
                                        launch::chooseBackend(launch::Backend::Gloo, 2));
    QVERIFY(std::any_of(checks.begin(), checks.end(), [](const RunCheck& c) {
      return !c.isOk && c.text.startsWith(QLatin1String("2 ranks need a predicted "));
    }));
    startAnyway->click();
    QVERIFY(start->isEnabled());
    startAnyway->click();
    QVERIFY(!start->isEnabled());

    // The command line below it does the same.
    const auto shown = [&] {
      const auto labels = panel.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(),
                         [](const QLabel* label) { return label->text().endsWith(QLatin1String(" --ignore-memory")); });
    };
    QVERIFY(!shown());
    startAnyway->click();
    QVERIFY(shown());
    startAnyway->click();
    QVERIFY(!shown());

    // A start by key or toolbar returns what to select ...
    const QString refusal = panel.run(2);
    QVERIFY2(refusal.startsWith(QLatin1String("2 ranks need a predicted ")) && refusal.contains(startAnyway->text()),
             qPrintable(refusal));
    QVERIFY(!session.runs().state());
    // ... and a start by a script returns the reason of the refusal.
    QSignalSpy ended(&session.jobs(), &Jobs::ended);
    session.runs().run(runOn(2, launch::Backend::Gloo));
    QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty(), kPatience);
    QVERIFY(session.runs().state() && !session.runs().state()->isActive && !session.runs().state()->report);
    QVERIFY2(session.runs().state()->failure.startsWith(QLatin1String("2 ranks need a predicted ")),
             qPrintable(session.runs().state()->failure));
    QVERIFY(!panel.findChild<RankBars*>()->isVisible());  // no strip for a rank that never started
    QStringList texts;
    for (const QLabel* label : panel.findChildren<QLabel*>())
      if (label->isVisible()) texts << label->text();
    const QString all = texts.join(QLatin1Char('|'));
    QVERIFY2(all.contains(QLatin1String("not started|2 ranks need a predicted")) &&
                 all.contains(QLatin1String("cleave-cli run")) && all.contains(QLatin1String("Planned: ")),
             qPrintable(all));
  }

  /// The copied text equals the command line's output for the same plan.
  void theCommandsForAClusterAreThoseOfTheCommandLine() {
    QTemporaryDir folder;
    Session session;
    open(session, makeModel(folder, 64, 2));
    const QString file = folder.filePath(QStringLiteral("plan.json"));
    QVERIFY(saveFile(file, QByteArray::fromStdString(plan::toJson(*session.plans().plan()))).has_value());
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    panel.findChild<QComboBox*>(QStringLiteral("backend"))->setCurrentIndex(1);  // gloo
    panel.show();
    panel.showCluster();
    auto* dialog = panel.findChild<ClusterDialog*>();
    const auto edits = dialog->findChildren<QLineEdit*>(Qt::FindDirectChildrenOnly);
    auto* nodes = dialog->findChild<QSpinBox*>();
    auto* launcher = dialog->findChild<QComboBox*>();
    QCOMPARE(edits.size(), 2);
    edits[0]->setText(QStringLiteral("node0:4711"));
    edits[1]->setText(file);
    for (const QString& name : {QStringLiteral("torchrun"), QStringLiteral("srun")}) {
      launcher->setCurrentIndex(name == QLatin1String("srun") ? 1 : 0);
      QStringList arguments{QStringLiteral("run"),
                            file,
                            QStringLiteral("--print-command"),
                            name,
                            "--nodes",
                            "2",
                            QStringLiteral("--backend"),
                            "gloo",
                            QStringLiteral("--skip-weights"),
                            "--rank-program",
                            toQ(launch::rankProgram()->lexically_normal().string())};
      if (name == QLatin1String("torchrun")) arguments << QStringLiteral("--master") << QStringLiteral("node0:4711");
      QProcess process;
      process.start(QStringLiteral(CLEAVE_BIN_DIR "/cleave-cli"), arguments);
      QVERIFY(process.waitForFinished(kPatience));
      QCOMPARE(dialog->text(), QString::fromUtf8(process.readAllStandardOutput()));
    }
    launcher->setCurrentIndex(0);
    QPushButton* copy = nullptr;
    for (QPushButton* button : dialog->findChildren<QPushButton*>())
      if (button->text().endsWith(QLatin1String("Copy"))) copy = button;
    copy->click();
    QCOMPARE(QApplication::clipboard()->text(), dialog->text());
    // An impossible setting shows the reason, and there is nothing to copy.
    nodes->setValue(3);
    QVERIFY2(dialog->text().contains(QLatin1String("do not divide over 3 nodes")), qPrintable(dialog->text()));
    QVERIFY(!copy->isEnabled());
    nodes->setValue(2);
    edits[0]->setText(QStringLiteral("node 0"));
    QVERIFY2(dialog->text().contains(QLatin1String("Write HOST:PORT")), qPrintable(dialog->text()));
    edits[0]->clear();
    QVERIFY2(dialog->text().contains(QLatin1String("needs the address of node 0")), qPrintable(dialog->text()));
  }

  /// A plan from elsewhere, for a device that only its author had: the shown command runs in a shell.
  void theCommandThatIsShownRuns_data() {
    const cleave::test::Rows<QString> row("name");
    row("a device of the maker's own", "lab");
    row("another device of a bundled name", "h100");
  }
  void theCommandThatIsShownRuns() {
    QFETCH(QString, name);
    QTemporaryDir folder;
    auto device = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice));
    QVERIFY(device.has_value());
    device->name = toStd(name);
    device->memoryBytes = 3ll << 30;
    spec::PlanSpec options;
    options.engine = solve::Engine::Reference;
    options.cost.profile = *device;
    spec::InputSpec capture;
    capture.sequence = 8;
    const auto model = pipeline::openModel(toStd(makeModel(folder, 64, 1)), capture);
    QVERIFY(model.has_value());
    const auto solved = pipeline::solveModel(*model, options);
    QVERIFY(solved.has_value());
    const auto made = pipeline::planModel(*model, *solved);
    QVERIFY(made.has_value());
    const QString file = folder.filePath(QStringLiteral("it's a plan.json"));
    QVERIFY(saveFile(file, QByteArray::fromStdString(plan::toJson(**made))).has_value());

    Session session;
    session.open(file);
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && session.jobs().activity() == Activity::Idle, kPatience);
    QVERIFY(session.plans().plan()->spec.cost.profile == *device);
    RunSettings asked{.ranks = 2};
    asked.backend = launch::Backend::Gloo;
    asked.ignoreMemory = true;
    const QString command = runCommand(session.runs(), asked);
    QProcess shell;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("PATH"),
                       QStringLiteral(CLEAVE_BIN_DIR ":") + environment.value(QStringLiteral("PATH")));
    shell.setProcessEnvironment(environment);
    shell.setWorkingDirectory(QDir::tempPath());
    const QString planAgain = folder.filePath(QStringLiteral("again.json"));
    shell.start(QStringLiteral("/bin/sh"), {QStringLiteral("-c"), command});
    QVERIFY(shell.waitForFinished(kPatience));
    QVERIFY2(shell.exitCode() == 0,
             qPrintable(command + QLatin1Char('\n') + QString::fromUtf8(shell.readAllStandardError())));
    QVERIFY2(command.contains(QStringLiteral("a plan.json")), qPrintable(command));  // the opened plan runs
    // Solved again, the command is that of a plan for the same device.
    session.settings().solve();
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && session.plans().plan() != session.plans().openedPlan() &&
                                 session.jobs().activity() == Activity::Idle,
                             kPatience);
    QString again = runCommand(session.runs(), asked);
    again.replace(QStringLiteral("cleave-cli run"), QStringLiteral("cleave-cli plan"));
    again.remove(QRegularExpression(QStringLiteral(" --(skip-weights|ignore-memory|backend \\w+)")));
    shell.start(QStringLiteral("/bin/sh"),
                {QStringLiteral("-c"), again + QStringLiteral(" --json '%1'").arg(planAgain)});
    QVERIFY(shell.waitForFinished(kPatience));
    QVERIFY2(shell.exitCode() == 0, shell.readAllStandardError().constData());
    const auto read = pipeline::readPlanFile(toStd(planAgain));
    QVERIFY(read.has_value());
    QVERIFY((*read)->spec.cost.profile == *device);
  }

  /// A stop by the user is not a failure, and the panel is ready for the next run.
  void aRunThatIsStoppedSaysSo() {
    QTemporaryDir folder;
    Session session;
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    open(session, makeModel(folder, 64, 2));
    QString said;
    connect(&session.notices(), &Notices::said, &panel, [&](const QString& text, Severity severity) {
      said = severity == Severity::Info ? text : QStringLiteral("not asked for: ") + text;
    });
    session.runs().run(runOn(2, launch::Backend::Gloo));
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->hasRanks(), kPatience);
    session.runs().stop();
    QTRY_VERIFY_WITH_TIMEOUT(session.jobs().activity() == Activity::Idle && !session.runs().state()->isActive,
                             kPatience);
    QVERIFY2(said.startsWith(QStringLiteral("Stopped while ")), qPrintable(said));
    QVERIFY(!session.runs().state()->report && startButton(panel)->isEnabled());
  }

  /// The unsplit run needs the folder, so checks about weights would not help.
  void whatHasLostItsFolderIsNotRun() {
    QTemporaryDir folder;
    QVERIFY(QDir(folder.path()).mkdir(QStringLiteral("model")));
    const QString gone = folder.filePath(QStringLiteral("model")), plan = folder.filePath(QStringLiteral("plan.json"));
    const QString config = QStringLiteral("/config.json");
    QVERIFY(QFile::rename(makeModel(folder, 64, 1) + config, gone + config));
    Session session;
    RunView panel(session.opened(), session.settings(), session.plans(), session.selection(), session.runs(),
                  session.jobs(), session.files());
    open(session, gone);
    QVERIFY(startButton(panel)->isEnabled());
    QVERIFY(saveFile(plan, QByteArray::fromStdString(plan::toJson(*session.plans().plan()))).has_value());
    QVERIFY(QDir(gone).removeRecursively());
    session.open(plan);
    QTRY_VERIFY_WITH_TIMEOUT(session.opened().source() == plan && session.jobs().activity() == Activity::Idle,
                             kPatience);
    QVERIFY(!startButton(panel)->isEnabled());
    QString said;
    for (const QLabel* label : panel.findChildren<QLabel*>())
      if (label->isVisibleTo(&panel)) said += label->text() + QLatin1Char('\n');
    QVERIFY2(said.contains(QStringLiteral("model does not exist: the unsplit run")), qPrintable(said));
    for (const char* phrase : {"Random ones", "needs a predicted", "cleave-cli"})
      QVERIFY2(!said.contains(QLatin1String(phrase)), qPrintable(said));
    session.runs().run(runOn(2, launch::Backend::Gloo));
    QVERIFY(!session.runs().state());
  }
};

QTEST_MAIN(TestRunView)
#include "tst_run_view.moc"
