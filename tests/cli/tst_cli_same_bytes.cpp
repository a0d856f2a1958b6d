// The same model and options give the same plan and the same trace, byte for byte, also on a busy machine. Only the
// timings of a plan may differ.
#include "tests/support/cli_process.h"
#include "tests/support/files_below.h"
#include "tests/support/seeds.h"

#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <thread>

using namespace cleave;
using test::contentOf;
using test::Finished;

namespace {

QByteArray withoutTimings(const QByteArray& plan) {
  static const QRegularExpression kTimings("\"timings_ms\":\\s*\\{[^}]*\\}");
  const QString text = QString::fromUtf8(plan);
  return text.count(kTimings) == 1 ? QString(text).remove(kTimings).toUtf8() : QByteArray();
}

/// Keeps every core busy during its lifetime.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
      m_threads.emplace_back([this] {
        std::uint64_t count = 0;
        while (!m_isOver) m_sum = ++count;
      });
  }
  ~Load() { m_isOver = true; }

 private:
  std::atomic<bool> m_isOver{false};
  std::atomic<std::uint64_t> m_sum{0};
  std::vector<std::jthread> m_threads;
};

}  // namespace

class TstCliSameBytes : public QObject {
  Q_OBJECT
 private slots:
  void plansAndTracesAreTheSame_data() {
    QTest::addColumn<QStringList>("options");
    QTest::newRow("reference") << QStringList{"--engine", "reference", "--sequence-parallel", "on"};
    QTest::newRow("learning") << QStringList{"--engine", "learning", "--candidates", "full"};
    QTest::newRow("optimal") << QStringList{"--engine", "optimal", "--device-profile", "cpu", "--train"};
  }
  void plansAndTracesAreTheSame() {
    QFETCH(QStringList, options);
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json"), trace = folder.filePath("search.trace");
    const QStringList command = QStringList{"plan",    CLEAVE_SOURCE_DIR "/resources/models/one-kv-head",
                                            "--ranks", "2",
                                            "--json",  plan,
                                            "--trace", trace} +
                                options;
    QByteArray firstPlan, firstTrace;
    const Load load;
    const auto rounds = static_cast<int>(test::rounds(5));
    for (int round = 0; round < rounds; ++round) {
      const Finished done = test::cliProgram(command);
      QVERIFY2(done.exitCode == 0, done.err);
      const QByteArray madePlan = withoutTimings(contentOf(plan)), madeTrace = contentOf(trace);
      QVERIFY(!madePlan.isEmpty() && !madeTrace.isEmpty());
      if (round == 0) firstPlan = madePlan, firstTrace = madeTrace;
      QVERIFY2(madePlan == firstPlan, qPrintable(QString("plan %1").arg(round)));
      QVERIFY2(madeTrace == firstTrace, qPrintable(QString("trace %1").arg(round)));
    }
    qInfo("%d of %d alike", rounds, rounds);
  }
};

QTEST_GUILESS_MAIN(TstCliSameBytes)
#include "tst_cli_same_bytes.moc"
