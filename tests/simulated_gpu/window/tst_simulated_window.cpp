/// The window on the simulated GPU: CUDA's answer, live memory of the ranks, and a named failure.
#include "launch/rank_program.h"
#include "tests/support/run_on.h"
#include "tests/views/window/window_fixture.h"
#include "views/run/run_checks.h"
#include "views/run/run_verdict.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

const RunSettings kOnGpus = runOn(2, launch::Backend::Nccl);

void run(MainWindow& window, const RunSettings& settings) {
  window.session().runs().setSettings(settings);
  window.session().runs().run(settings);
  QTRY_VERIFY_WITH_TIMEOUT(
      window.isSettled() && window.session().runs().state() && !window.session().runs().state()->isActive, kPatience);
}

const Verdict& verdict(MainWindow& window) { return window.findChild<VerdictStrip*>()->verdict(); }

}  // namespace

class TestSimulatedWindow : public QObject {
  Q_OBJECT
 private slots:
  void init() { qputenv("SIMULATED_GPU", "devices=2,delay_us=500"); }

  void theTestUsesTheSimulatedPrograms() {
    const auto program = launch::rankProgram();
    QVERIFY(program);
    QVERIFY(std::filesystem::canonical(*program).parent_path().parent_path().filename() == "simulated");
    QVERIFY(QFile::exists(QStringLiteral(CLEAVE_TEST_DATA "/models/llama")));
  }

  /// Before a run: CUDA is asked off the GUI thread, and its answer is shown when it arrives.
  void whatCudaOffersIsShownBeforeARun() {
    SessionWindow window;
    openModel(window);
    Runs& runs = window.session().runs();
    runs.setSettings(kOnGpus);
    QTRY_VERIFY_WITH_TIMEOUT(runs.backendFor(kOnGpus).has_value(), kPatience);
    const auto backend = runs.backendFor(kOnGpus);
    const auto checks = checksBeforeRun(window.session().plans().plan().get(), kOnGpus, backend);
    QVERIFY(checks[0].isOk);
    QCOMPARE(checks[0].text, QStringLiteral("NCCL on 2 of 2 GPUs, as requested."));
    const bool isMemorySaid = std::any_of(checks.begin(), checks.end(), [](const RunCheck& check) {
      return check.isOk && check.text.contains(QLatin1String("free on the fullest GPU"));
    });
    QVERIFY(isMemorySaid);
    const RunSettings four = runOn(4, launch::Backend::Nccl);
    const auto tooMany = checksBeforeRun(window.session().plans().plan().get(), four, runs.backendFor(four));
    QVERIFY(!tooMany[0].isOk);
    QVERIFY2(tooMany[0].text.contains(QLatin1String("CUDA lists 2 GPUs for 4 ranks")), qPrintable(tooMany[0].text));
  }

  void memoryOfTheGpusIsLive() {
    SessionWindow window;
    openModel(window);
    run(window, kOnGpus);
    QVERIFY2(verdict(window).word == QStringLiteral("passed"), qPrintable(verdict(window).sentence));
    const RunState* state = window.session().runs().state();
    QCOMPARE(state->backend, launch::Backend::Nccl);
    QCOMPARE(QString::fromStdString(state->report->comparedWith),
             QStringLiteral("an unsplit run on GPU 0 (Simulated GPU)"));
    const auto snapshot = state->monitor->snapshot();
    for (const RankView& rank : snapshot) {
      QVERIFY2(rank.device.startsWith(QLatin1String("Simulated GPU (cuda:")), qPrintable(rank.device));
      QVERIFY(rank.history.size() > 1);
      QCOMPARE(rank.memory.total, std::int64_t{8192} << 20);
      QVERIFY(rank.memory.peak.program > 0 && rank.memory.peak.program < (1 << 20));
    }
  }

  void aFailureIsNamed() {
    qputenv("SIMULATED_GPU", "devices=2,fail=1:60");
    SessionWindow window;
    openModel(window);
    run(window, kOnGpus);
    QCOMPARE(verdict(window).word, QStringLiteral("failed"));
    const auto& report = window.session().runs().state()->report;
    QVERIFY(report && report->outcome.firstFailure);
    QCOMPARE(report->outcome.firstFailure->rank, 1);
    QVERIFY2(verdict(window).sentence.contains(QLatin1String("illegal memory access")),
             qPrintable(verdict(window).sentence));
  }
};

QTEST_MAIN(TestSimulatedWindow)
#include "tst_simulated_window.moc"
