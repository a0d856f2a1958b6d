#include "cli/cli_process.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
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

  /// A budget below the whole model makes `optimal` split, in forms that no menu of the reference has.
  void theOptimumUnderABudgetComputesTheSame_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QStringList>("flags");
    QTest::newRow("llama") << "llama" << QStringList{"--ranks", "2", "--memory-budget", "400KiB"};
    QTest::newRow("tied, sequence parallel where it pays") << "llama-tied" << QStringList{"--ranks", "4", "--memory-budget", "420KiB", "--sequence-parallel", "auto"};
    QTest::newRow("qwen2, tight") << "qwen2" << QStringList{"--ranks", "2", "--memory-budget", "460KiB", "--sequence-parallel", "auto"};
  }
  void theOptimumUnderABudgetComputesTheSame() {
    QFETCH(QString, name);
    QFETCH(QStringList, flags);
    const QJsonObject json = report(QStringList{model(name), "--backend", "gloo", "--engine", "optimal", "--expect",
                                                model(name) + "/expected.safetensors", "--atol", "1e-4", "--rtol", "0"} + flags);
    QVERIFY(json["passed"].toBool());
    for (const QJsonValue& rank : json["ranks"].toArray()) {
      const QJsonObject executed = rank["collectives"].toObject();
      QVERIFY(executed["all_reduce"].toInt() + executed["all_gather"].toInt() + executed["reduce_scatter"].toInt() > 0);
    }
  }

  void withoutAFileTheUnsplitRunIsTheMeasure() {
    const QJsonObject json = report({model("llama"), "--ranks", "2", "--backend", "gloo", "--seq", "12"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
  }

  /// Without the redistribution these demands have no solution.
  void aRedistributedValueComputesTheSame() {
    const QStringList demands{model("llama"), "--ranks", "2", "--backend", "gloo", "--seq", "12", "--engine", "reference", "--pin", "lm_head=row"};
    QCOMPARE(cli(QStringList{"run"} + demands).exitCode, 1);
    const QJsonObject json = report(demands + QStringList{"--redistribute", "*"});
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

  /// The forms of the full menu that no ordinary model needs, each against an unsplit run of the same weights.
  void theFullMenuComputesTheSame_data() {
    QTest::addColumn<QString>("base");
    QTest::addColumn<QVariantMap>("changes");  // of config.json
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("weight");  // one whose placement shows the form
    QTest::addColumn<QString>("placement");
    const QString oneHead = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head");
    const QString threeHeads = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/three-heads");
    const QString embedding = "model.embed_tokens.weight", head = "lm_head.weight", key = "model.layers.0.self_attn.k_proj.weight";
    QTest::newRow("one KV head on 2") << oneHead << QVariantMap() << 2 << key << "S(0,x2)";
    QTest::newRow("2 KV heads on 4") << oneHead << QVariantMap{{"num_key_value_heads", 2}} << 4 << key << "S(0,x2)";
    QTest::newRow("3 heads on 2") << threeHeads << QVariantMap() << 2 << key << "S(0)";  // in columns that are gathered: the heads stay whole
    for (int ranks : {2, 3, 4}) {
      QTest::addRow("vocabulary of 257 on %d", ranks) << oneHead << QVariantMap{{"vocab_size", 257}} << ranks << head
                                                      << (ranks == 2 ? "S(0,pad 1)" : ranks == 3 ? "S(0,pad 1)" : "S(0,pad 3)");
      QTest::addRow("tied vocabulary of 257 on %d", ranks) << oneHead << QVariantMap{{"vocab_size", 257}, {"tie_word_embeddings", true}} << ranks
                                                           << embedding << (ranks == 4 ? "S(0,pad 3)" : "S(0,pad 1)");
    }
  }
  void theFullMenuComputesTheSame() {
    QFETCH(QString, base);
    QFETCH(QVariantMap, changes);
    QFETCH(int, ranks);
    QFETCH(QString, weight);
    QFETCH(QString, placement);
    QTemporaryDir folder;
    QFile source(base + "/config.json");
    QVERIFY(source.open(QIODevice::ReadOnly));
    QVariantMap config = QJsonDocument::fromJson(source.readAll()).object().toVariantMap();
    config.insert(changes);
    QFile changed(folder.filePath("config.json"));
    QVERIFY(changed.open(QIODevice::WriteOnly));
    changed.write(QJsonDocument(QJsonObject::fromVariantMap(config)).toJson());
    changed.close();

    const QStringList options{folder.path(), "--ranks", QString::number(ranks), "--engine", "reference", "--menu", "full", "--seq", "7", "--batch", "2"};
    const QJsonObject plan = QJsonDocument::fromJson(cli(QStringList{"plan"} + options + QStringList{"--json", "-"}).out).object();
    QString lies;
    for (const QJsonValue& parameter : plan["parameters"].toArray()) {
      if (parameter["name"].toString() == weight) lies = parameter["placement"].toString();
    }
    QCOMPARE(lies, placement);
    const QJsonObject json = report(options + QStringList{"--backend", "gloo", "--skip-weights", "--atol", "1e-5"});
    QVERIFY(json["passed"].toBool());
    QCOMPARE(json["compared_with"].toString(), QString("an unsplit run"));
    QCOMPARE(json["outputs"].toArray().size(), 2);  // logits and loss
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
