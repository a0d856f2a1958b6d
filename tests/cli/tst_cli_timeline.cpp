/// The time of a run on real ranks: in the report, in the text, and in the file for trace viewers.
#include "tests/support/cli_json.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonObject>
#include <QMap>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

QString commandOf(const QStringList& arguments) { return arguments.contains("--steps") ? "train" : "run"; }

QJsonObject read(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

/// Complete events of each process and thread, in file order.
QMap<std::pair<int, int>, QList<QJsonObject>> eventsOf(const QJsonObject& trace) {
  QMap<std::pair<int, int>, QList<QJsonObject>> events;
  for (const QJsonValue& value : trace["traceEvents"].toArray()) {
    const QJsonObject event = value.toObject();
    if (event["ph"].toString() == "X") events[{event["pid"].toInt(-1), event["tid"].toInt(-1)}].append(event);
  }
  return events;
}

}  // namespace

class TestCliTimeline : public QObject {
  Q_OBJECT
 private slots:
  void writesWhatTraceViewersOpen_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QStringList>("kinds");
    QTest::newRow("forward") << QStringList{"--ranks", "2"} << QStringList{"linear"};
    QTest::newRow("one rank") << QStringList{"--ranks", "1"} << QStringList{"linear"};
    QTest::newRow("training") << QStringList{"--ranks", "4", "--sequence-parallel", "on",
                                             "--steps", "2", "--clip-norm",         "1"}
                              << QStringList{"linear",   "linear backward", "optimizer",
                                             "clipping", "gradient sum",    "waiting for reduce_scatter"};
  }
  void writesWhatTraceViewersOpen() {
    QFETCH(QStringList, arguments);
    QFETCH(QStringList, kinds);
    const QTemporaryDir folder;
    const QString file = folder.filePath("trace.json");
    const QJsonObject run =
        json(QStringList{commandOf(arguments), family("llama"), "--no-check", "--timeline", file} + arguments + kSplit);
    const QJsonObject trace = read(file);
    QCOMPARE(trace["displayTimeUnit"].toString(), "ns");
    const auto events = eventsOf(trace);
    const auto ranks = run["ranks"].toArray();
    QSet<QString> names;
    for (const auto& [thread, ofThread] : events.asKeyValueRange()) {
      QVERIFY(thread.first >= 0 && thread.first < ranks.size());
      double end = 0;
      for (const QJsonObject& event : ofThread) {
        QVERIFY(event["ts"].toDouble(-1) >= end - 1e-3);
        QVERIFY(event["dur"].toDouble(-1) >= 0);
        end = event["ts"].toDouble() + event["dur"].toDouble();
        names.insert(event["name"].toString());
      }
    }
    for (const QString& kind : kinds) QVERIFY2(names.contains(kind), qPrintable(kind));
    const bool isTraining = arguments.contains("--steps");
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const QJsonObject counts = ranks[rank]["collectives"].toObject();
      const qint64 counted =
          counts["all_reduce"].toInteger() + counts["all_gather"].toInteger() + counts["reduce_scatter"].toInteger();
      const auto ofRank = events.value({rank, 1});
      const auto traced = std::count_if(ofRank.begin(), ofRank.end(), [](const QJsonObject& event) {
        return event["cat"].toString() == "collective";
      });
      if (ranks.size() > 1) QCOMPARE(traced, isTraining ? counted / 2 : counted);
    }
  }

  void reportsTheTimeOfEachRank() {
    const QStringList arguments = QStringList{"run", family("llama"), "--ranks", "2", "--no-check"} + kSplit;
    const QJsonObject run = json(arguments);
    const QJsonObject time = run["time"].toObject();
    const auto ranks = time["ranks"].toArray();
    QCOMPARE(ranks.size(), 2);
    for (int rank = 0; rank < 2; ++rank) {
      const QJsonObject sums = ranks[rank].toObject();
      const double parts =
          sums["compute_us"].toDouble() + sums["collective_us"].toDouble() + sums["waiting_us"].toDouble();
      QVERIFY(parts > 0 && parts <= sums["total_us"].toDouble() + 1e-3);
      // The rank's own clock measures the same step.
      QVERIFY(sums["total_us"].toDouble() <= run["ranks"][rank]["step_us"].toDouble() + 1);
    }
    QVERIFY(time["predicted_step_us"].toDouble() > 0);
    const QJsonObject trainable = json(arguments + QStringList{"--train"})["time"].toObject();
    QCOMPARE(trainable["predicted_step_us"].toDouble(), time["predicted_step_us"].toDouble());
    const auto operators = time["operators"].toArray();
    QVERIFY(operators.size() > 10);
    for (int i = 1; i < operators.size(); ++i)
      QVERIFY(operators[i - 1]["compute_us"].toDouble() >= operators[i]["compute_us"].toDouble());
    const Finished words = cli(arguments);
    QVERIFY2(words.out.contains(" computing, ") && words.out.contains("longest (predicted on "), words.out.constData());
  }

  void standardOutputHasOneDocument() {
    const QStringList run{"run", family("llama"), "--seq", "8", "--timeline", "-"};
    const Finished alone = cli(run);
    QCOMPARE(alone.exitCode, 0);
    QVERIFY2(QJsonDocument::fromJson(alone.out).isObject(), alone.out.right(200).constData());
    const Finished both = cli(run + QStringList{"--json", "-"});
    QCOMPARE(both.exitCode, 2);
    QVERIFY2(both.err.contains("both write to standard output"), both.err.constData());
  }

  void shapesHaveNoOneTimeline() {
    const Finished run = cli({"run", family("llama"), "--shapes", "1x8,1x16", "--timeline", "/tmp/never.json"});
    QCOMPARE(run.exitCode, 2);
    QVERIFY2(run.err.contains("Each of the shapes would replace the file of the one before: leave --timeline out."),
             run.err.constData());
  }

  /// Each rank's memory by category, with the prediction. Categories without transients are exact.
  void reportsMemoryByCategory_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("forward") << QStringList{"--ranks", "2"};
    QTest::newRow("training") << QStringList{"--ranks", "2", "--steps", "3"};
    QTest::newRow("training on the sequence")
        << QStringList{"--ranks", "4", "--steps", "3", "--sequence-parallel", "on"};
  }
  void reportsMemoryByCategory() {
    QFETCH(QStringList, arguments);
    const bool isTraining = arguments.contains("--steps");
    const QJsonObject run =
        json(QStringList{commandOf(arguments), family("llama"), "--batch", "4", "--seq", "64"} + arguments + kSplit);
    const QJsonArray memory = run["memory"].toArray();
    QCOMPARE(memory.size(), run["ranks"].toArray().size());
    for (const QJsonValue& rank : memory) {
      QMap<QString, std::pair<double, double>> parts;
      for (const QJsonValue& part : rank["parts"].toArray())
        parts[part["name"].toString()] = {part["measured"].toDouble(), part["predicted"].toDouble(-1)};
      const auto isWithin = [&](const QString& name, double share, double bytes) {
        const auto [measured, predicted] = parts.value(name, {-1, 1e18});
        const bool is = std::abs(measured - predicted) <= share * predicted + bytes;
        if (!is) qWarning("%s: %.0f, not %.0f", qPrintable(name), measured, predicted);
        return is;
      };
      QVERIFY(isWithin("parameters", 0, 0));
      QVERIFY(isWithin("inputs and constants", 0, 4096));  // and no gradients of the step before
      if (isTraining) {
        QVERIFY(isWithin("gradients", 0, 0));
        QVERIFY(isWithin("optimizer states", 0, 4096));  // and a counter for each parameter
        QVERIFY(isWithin("saved activations", 0.1, 4096));
      }
      const double peak = rank["peak"]["measured"].toDouble(), predicted = rank["peak"]["predicted"].toDouble();
      QVERIFY2(std::abs(peak / predicted - 1) < 0.1, qPrintable(QString("%1 of %2").arg(peak).arg(predicted)));
    }
  }
};

QTEST_GUILESS_MAIN(TestCliTimeline)
#include "tst_cli_timeline.moc"
