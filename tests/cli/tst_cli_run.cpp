#include "cli/cli_process.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

using namespace cleave::test;

namespace {

QString model(const QString& name) { return QStringLiteral(CLEAVE_TEST_DATA "/models/") + name; }

QJsonObject report(const QStringList& arguments) {
  const Finished done = cli(QStringList{"run"} + arguments + QStringList{"--json", "-"});
  if (done.exitCode != 0) qWarning("exit code %d: %s", done.exitCode, done.err.constData());
  return done.exitCode == 0 ? QJsonDocument::fromJson(done.out).object() : QJsonObject();
}

}  // namespace

class TestCliRun : public QObject {
  Q_OBJECT
 private slots:
  void theSplitModelComputesWhatIsExpected_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("sequenceParallel");
    for (const char* name : {"llama", "llama-tied", "qwen2"}) {
      for (int ranks : {1, 2, 4}) {
        QTest::addRow("%s on %d", name, ranks) << name << ranks << false;
        if (ranks > 1) QTest::addRow("%s on %d, sequence parallel", name, ranks) << name << ranks << true;
      }
    }
  }
  void theSplitModelComputesWhatIsExpected() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    QFETCH(bool, sequenceParallel);
    const QJsonObject json = report({model(name), "--ranks", QString::number(ranks), "--backend", "gloo", "--engine", "reference", "--expect",
                                     model(name) + "/expected.safetensors", "--atol", "1e-4", "--rtol", "0", "--sequence-parallel",
                                     sequenceParallel ? "on" : "off"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["outputs"].toArray().size(), 2);  // logits and loss
    QCOMPARE(json["ranks"].toArray().size(), ranks);
    for (const QJsonValue& rank : json["ranks"].toArray()) {
      QCOMPARE(rank["bytes_read"].toInteger(), rank["shard_bytes"].toInteger());
      const QJsonObject executed = rank["collectives"].toObject();
      QCOMPARE(executed["all_reduce"].toInt() > 0, ranks > 1);
      QCOMPARE(executed["all_gather"].toInt() > 0, ranks > 1);
      QCOMPARE(executed["reduce_scatter"].toInt() > 0, sequenceParallel);
    }
  }

  void withoutAFileTheUnsplitRunIsTheMeasure() {
    const QJsonObject json = report({model("llama"), "--ranks", "2", "--backend", "gloo", "--seq", "12"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
  }

  void aConfigAloneRunsWithInitialisedWeights() {
    const QString folder = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head");
    QVERIFY(report({folder, "--ranks", "2", "--backend", "gloo", "--seq", "8", "--skip-weights"})["passed"].toBool());
    const Finished refused = cli({"run", folder, "--ranks", "2", "--backend", "gloo", "--seq", "8"});
    QVERIFY(refused.exitCode != 0);
    QVERIFY2(refused.err.contains("--init-missing") || refused.err.contains("--skip-weights"), refused.err.constData());
  }

  void ncclWithoutGpusIsAnEnvironmentError() {
    if (QFile::exists("/dev/nvidia0")) QSKIP("this machine has a GPU");
    const Finished done = cli({"run", model("llama"), "--ranks", "2", "--backend", "nccl"});
    QCOMPARE(done.exitCode, 4);
    QVERIFY2(done.err.contains("GPU"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(TestCliRun)
#include "tst_cli_run.moc"
