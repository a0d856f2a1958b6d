/// Two simulated hosts: two network namespaces with a cable (veth) between them. Ranks on both compute over Gloo and
/// report to one of them, also when the cable is cut.
#include "launch/launcher.h"
#include "tests/support/machines.h"
#include "tests/support/seeds.h"

#include <QElapsedTimer>
#include <QTemporaryDir>

using namespace cleave;
using namespace cleave::test;

namespace {

constexpr qint64 kSilenceMs = launch::kSilence.count();
constexpr qint64 kStarts = 4;  ///< what follows the silence takes at most this multiple of the time to the phase

const QString kLlama = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

/// Empty if the command works.
QString complaintOf(const QString& command) {
  QProcess process;
  process.start("sh", {"-c", command});
  if (!process.waitForStarted() || !process.waitForFinished(60'000)) return command + " does not end";
  return process.exitCode() == 0 ? QString()
                                 : command + ": " + QString::fromUtf8(process.readAllStandardError()).trimmed();
}

/// Hosts "a" (10.77.0.1) and "b" (10.77.0.2). Each also has another network without the other host, and a name that
/// resolves to its loopback device.
class TwoHosts {
 public:
  TwoHosts() {
    const QString id = QString::number(::getpid());
    m_a = "cleave-a-" + id;
    m_b = "cleave-b-" + id;
    for (const QString& command : {"ip netns add " + m_a, "ip netns add " + m_b,
                                   "ip -n " + m_a + " link add cable type veth peer name cable netns " + m_b,
                                   "ip -n " + m_a + " link add other type veth peer name other-end",
                                   "ip -n " + m_b + " link add other type veth peer name other-end",
                                   "ip -n " + m_a + " address add 192.168.77.1/24 dev other",
                                   "ip -n " + m_b + " address add 192.168.78.1/24 dev other",
                                   "ip -n " + m_a + " address add 10.77.0.1/24 dev cable",
                                   "ip -n " + m_b + " address add 10.77.0.2/24 dev cable"}) {
      if (whyNot.isEmpty()) whyNot = complaintOf(command);
    }
    for (const QString& host : {m_a, m_b}) {
      for (const char* device : {"lo", "other", "other-end", "cable"}) {
        if (whyNot.isEmpty()) whyNot = complaintOf("ip -n " + host + " link set " + device + " up");
      }
    }
  }
  ~TwoHosts() {
    for (const QString& host : {m_a, m_b}) complaintOf("ip netns delete " + host);
  }
  QStringList onA() const { return {"ip", "netns", "exec", m_a}; }
  QStringList onB() const { return {"ip", "netns", "exec", m_b}; }
  QString cut() const { return complaintOf("ip -n " + m_b + " link set cable down"); }
  QString mend() const { return complaintOf("ip -n " + m_b + " link set cable up"); }

  QString whyNot;  ///< why the namespaces could not be made, a sentence

 private:
  QString m_a, m_b;
};

}  // namespace

class TestTwoHosts : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;
  QString m_plan, m_big;
  std::unique_ptr<TwoHosts> m_hosts;

  void startRanks(ListenedRun& run, const QStringList& options) const {
    for (int rank = 0; rank < 4; ++rank) run.startRank(rank, options, {}, rank < 2 ? m_hosts->onA() : m_hosts->onB());
  }

 private slots:
  void initTestCase() {
    m_hosts = std::make_unique<TwoHosts>();
    if (!m_hosts->whyNot.isEmpty()) QSKIP(qPrintable("no network namespaces here: " + m_hosts->whyNot));
    m_plan = makeSplitPlan(m_folder.filePath("plan.json"), kLlama, 4, {"--batch", "2", "--seq", "16"});
    m_big = makeSplitPlan(m_folder.filePath("big.json"), makeBigModel(m_folder.path()), 4, {"--seq", "512"});
  }
  void cleanup() {
    QVERIFY(waitUntil([&] { return ranksBelow(m_folder.path()).empty(); }));
  }

  void ranksOnBothComputeAndReport() {
    const QString expected = kLlama + "/expected.safetensors";
    ListenedRun run(m_plan, 4, {"--nodes", "2", "--expect", expected}, "10.77.0.1", m_hosts->onA());
    startRanks(run, {"--input", expected});
    const int code = run.listener->exitCode();
    QVERIFY2(code == 0, qPrintable(run.listener->err()));
    QVERIFY(run.listener->out().contains("passed: LlamaForCausalLM on 4 ranks over gloo"));
    for (const auto& rank : run.ranks) QCOMPARE(rank->exitCode(), 0);
  }

  /// The listener may be on another host than rank 0.
  void theListenerMayBeOnTheOtherHost() {
    const QString expected = kLlama + "/expected.safetensors";
    ListenedRun run(m_plan, 4, {"--expect", expected}, "10.77.0.2", m_hosts->onB());
    for (int rank = 0; rank < 4; ++rank)
      run.startRank(rank, {"--input", expected}, {}, rank < 2 ? m_hosts->onB() : m_hosts->onA());
    QVERIFY2(run.listener->exitCode() == 0, qPrintable(run.listener->err()));
  }

  /// A cut cable closes no connection, so only silence shows it.
  void aCutCableIsSeenAndLeavesNoRank_data() {
    QTest::addColumn<QString>("phase");
    for (const char* phase : {"loading", "running"}) QTest::newRow(phase) << QString(phase);
  }
  void aCutCableIsSeenAndLeavesNoRank() {
    QFETCH(QString, phase);
    for (std::uint64_t round = 0; round < rounds(1); ++round) {
      QElapsedTimer timer;
      timer.start();
      ListenedRun run(m_big, 4, {"--nodes", "2", "--skip-weights", "--no-check"}, "10.77.0.1", m_hosts->onA());
      startRanks(run, {"--skip-weights"});
      QVERIFY(run.listener->says(phase));
      const qint64 startMs = timer.elapsed();
      QCOMPARE(m_hosts->cut(), QString());
      timer.restart();
      const int code = run.listener->exitCode();
      const qint64 seenMs = timer.elapsed();
      QVERIFY2(code == 5, qPrintable(QString::number(code) + run.listener->err()));
      static const QRegularExpression kWhat(
          "Rank (2 sent nothing for 2.5 s, and neither did rank 3|3 sent nothing for 2.5 s, and neither did rank 2): "
          "10.77.0.2 or its network is down");
      QVERIFY2(kWhat.match(run.listener->err()).hasMatch(), qPrintable(run.listener->err().right(400)));
      for (const auto& rank : run.ranks) {
        QVERIFY(rank->exitCode() > 0);
        // Its neighbour may have ended earlier for the same reason.
        QVERIFY2(rank->err().contains("has ended or is unreachable") || rank->err().contains("losed by peer"),
                 qPrintable(rank->err()));
      }
      const qint64 goneMs = timer.elapsed();
      QVERIFY(ranksBelow(m_folder.path()).empty());
      QCOMPARE(m_hosts->mend(), QString());
      qInfo("running after %lld ms, the cut seen after %lld ms, all gone after %lld ms", startMs, seenMs, goneMs);
      QVERIFY(seenMs <= kSilenceMs + kStarts * startMs);
      QVERIFY(goneMs <= seenMs + kStarts * startMs);
    }
  }
};

QTEST_GUILESS_MAIN(TestTwoHosts)
#include "tst_two_hosts.moc"
