/// Files of the command line: outputs that are not regular files, models that are links, untrusted inputs.
#include "tests/support/cli_process.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

using namespace cleave::test;
namespace fs = std::filesystem;

namespace {

const QString kModel = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

QByteArray contentOf(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Copies the model into the layout of the Hub's cache, a snapshot of links to blobs. Returns the snapshot.
QString snapshotOf(const QTemporaryDir& cache) {
  const fs::path repo = fs::path(cache.path().toStdString()) / "models--org--tiny";
  fs::create_directories(repo / "blobs");
  fs::create_directories(repo / "snapshots/0123");
  int blob = 0;
  for (const auto& entry : fs::directory_iterator(kModel.toStdString())) {
    const fs::path target = fs::path("blobs") / ("hash" + std::to_string(blob++));
    fs::copy_file(entry.path(), repo / target);
    fs::create_symlink("../.." / target, repo / "snapshots/0123" / entry.path().filename());
  }
  return QString::fromStdString((repo / "snapshots/0123").string());
}

QStringList planOf(const QString& model, const QStringList& more = {}) {
  return QStringList{"plan", model, "--seq", "16", "--batch", "2", "--engine", "reference"} + more;
}

}  // namespace

class TestCliFiles : public QObject {
  Q_OBJECT
 private slots:
  /// Every option that writes, with a device node that discards its input.
  void outputsAreWrittenToDevices_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("plan --json") << planOf(kModel, {"--json", "OUT"});
    QTest::newRow("plan --trace") << planOf(kModel, {"--trace", "OUT"});
    QTest::newRow("pareto --json") << QStringList{"pareto", kModel, "--seq", "16", "--json", "OUT"};
    QTest::newRow("explain --json") << QStringList{"explain", kModel, "--engine", "reference", "--json", "OUT"};
    QTest::newRow("export --out") << QStringList{"export", kModel, "--format", "dot", "--out", "OUT"};
    QTest::newRow("run --json") << QStringList{"run",  kModel,       "--seq",  "8",  "--backend",
                                               "gloo", "--no-check", "--json", "OUT"};
    QTest::newRow("run --output") << QStringList{"run",  kModel,       "--seq",    "8",  "--backend",
                                                 "gloo", "--no-check", "--output", "OUT"};
  }
  void outputsAreWrittenToDevices() {
    QFETCH(QStringList, arguments);
    QTemporaryDir folder;
    const std::string node = folder.filePath("node").toStdString();
    constexpr int kMemoryDevices = 1, kNull = 3;
    if (::mknod(node.c_str(), S_IFCHR | 0600, makedev(kMemoryDevices, kNull)) != 0)
      QSKIP("device nodes cannot be made here");
    const int opened = ::open(node.c_str(), O_WRONLY);
    if (opened < 0) QSKIP("device nodes are not usable here");
    ::close(opened);
    arguments.replaceInStrings("OUT", QString::fromStdString(node));
    const Finished done = cli(arguments);
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY(fs::is_character_file(fs::symlink_status(node)));
    QCOMPARE(
        QDir(folder.path()).entryList(QDir::AllEntries | QDir::System | QDir::Hidden | QDir::NoDotAndDotDot).size(), 1);
  }

  void aLinkToAFileStays() {
    QTemporaryDir folder;
    writeBytes(folder.filePath("kept.json"), "old");
    QVERIFY(QFile::link("kept.json", folder.filePath("link.json")));
    QCOMPARE(cli(planOf(kModel, {"--json", folder.filePath("link.json")})).exitCode, 0);
    QVERIFY(fs::is_symlink(folder.filePath("link.json").toStdString()));
    QVERIFY(contentOf(folder.filePath("kept.json")).startsWith("{"));
  }

  void anUnwritableOutputIsExitFour_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("plan --json") << planOf(kModel, {"--json", "OUT"});
    QTest::newRow("plan --trace") << planOf(kModel, {"--trace", "OUT"});
    QTest::newRow("export --out") << QStringList{"export", kModel, "--out", "OUT"};
    QTest::newRow("run --output") << QStringList{"run",  kModel,       "--seq",    "8",  "--backend",
                                                 "gloo", "--no-check", "--output", "OUT"};
    QTest::newRow("run --json") << QStringList{"run",  kModel,       "--seq",  "8",  "--backend",
                                               "gloo", "--no-check", "--json", "OUT"};
    QTest::newRow("run --shapes --json") << QStringList{"run",  kModel,       "--shapes", "1x8", "--backend",
                                                        "gloo", "--no-check", "--json",   "OUT"};
  }
  void anUnwritableOutputIsExitFour() {
    QFETCH(QStringList, arguments);
    QTemporaryDir folder;
    arguments.replaceInStrings("OUT", folder.filePath("absent/out"));
    const Finished done = cli(arguments);
    QVERIFY2(done.exitCode == 4, (QByteArray::number(done.exitCode) + done.err).constData());
    QVERIFY2(done.err.contains("absent does not exist."), done.err.constData());
    QVERIFY2(!done.out.contains("passed") && !done.err.contains("running"), "the ranks ran first");
  }

  void aLinkToItselfIsReported() {
    QTemporaryDir folder;
    const QString loop = folder.filePath("model.pt2");
    QVERIFY(QFile::link(loop, loop));
    const Finished done = cli({"info", loop});
    QCOMPARE(done.exitCode, 3);
    QVERIFY2(done.err.contains("model.pt2 is a loop of symbolic links"), done.err.constData());
  }

  void aSnapshotOfTheHubCachePlansAndRuns() {
    QTemporaryDir cache;
    const QString snapshot = snapshotOf(cache);
    const QString plan = cache.filePath("plan.json");
    QCOMPARE(cli(planOf(snapshot, {"--json", plan})).exitCode, 0);
    for (const QString& source : {snapshot, snapshot + "/config.json", plan}) {
      const Finished run = cli({"run", source, "--backend", "gloo", "--expect", kModel + "/expected.safetensors"});
      QVERIFY2(run.exitCode == 0, run.err.constData());
    }
  }

  /// `ln -s /data/models/x/model.safetensors`: the folder's reader and the ranks follow the owner's links, and refuse
  /// those of another user.
  void linksOfTheOwnerPlanAndRun() {
    QTemporaryDir folder, data;
    for (const QString& name : QDir(kModel).entryList(QDir::Files)) {
      QVERIFY(QFile::copy(kModel + "/" + name, data.filePath(name)));
      QVERIFY(QFile::link(data.filePath(name), folder.filePath(name)));
    }
    const QString plan = data.filePath("plan.json");
    QCOMPARE(cli(planOf(folder.path(), {"--json", plan})).exitCode, 0);
    const QStringList arguments{"run", plan, "--backend", "gloo", "--expect", kModel + "/expected.safetensors"};
    const Finished run = cli(arguments);
    QVERIFY2(run.exitCode == 0, run.err.constData());
    if (::lchown(folder.filePath("model-00002-of-00003.safetensors").toUtf8(), 12345, 12345) != 0)
      QSKIP("only root can give files away");
    for (const QStringList& refused : {planOf(folder.path()), arguments}) {
      const Finished done = cli(refused);
      QVERIFY2(done.exitCode == 3, (QByteArray::number(done.exitCode) + done.err).constData());
      QVERIFY2(done.err.contains("is a link that neither you nor the owner of"), done.err.constData());
    }
  }

  /// Damage that only a rank can see is bad input, not a failed rank.
  void damagedWeightsAreExitThree() {
    QTemporaryDir cache;
    const QString snapshot = snapshotOf(cache);
    const QString plan = cache.filePath("plan.json");
    QCOMPARE(cli(planOf(snapshot, {"--json", plan})).exitCode, 0);
    const fs::path shard = fs::canonical(fs::path(snapshot.toStdString()) / "model-00002-of-00003.safetensors");
    fs::resize_file(shard, fs::file_size(shard) - 4);
    const Finished run = cli({"run", plan, "--backend", "gloo", "--no-check"});
    QVERIFY2(run.exitCode == 3, (QByteArray::number(run.exitCode) + run.err).constData());
    QVERIFY2(run.err.contains("model-00002-of-00003.safetensors"), run.err.constData());
  }

  /// If outputs are NaN because of a weight, the report names the tensor, its file and the element.
  void weightsThatAreNotFiniteAreNamed() {
    QTemporaryDir cache;
    const QString snapshot = snapshotOf(cache), shard = snapshot + "/model-00002-of-00003.safetensors";
    const QString healthy = QString::fromStdString(fs::canonical(shard.toStdString()).string());
    const auto header =
        QJsonDocument::fromJson(readBytes(healthy).mid(8, qFromLittleEndian<qint64>(readBytes(healthy).constData())))
            .object();
    QString weight;
    for (const QString& name : header.keys()) {
      if (name.endsWith(".weight")) weight = name;
    }
    QFile::remove(shard);
    writeAltered(healthy, shard, withNumber(weight.toUtf8().constData(), 3, std::numeric_limits<float>::infinity()));
    const Finished run = cli({"run", snapshot, "--ranks", "2", "--backend", "gloo", "--batch", "1", "--seq", "8"});
    QVERIFY2(run.exitCode == 1, (QByteArray::number(run.exitCode) + run.err).constData());
    const QByteArray said = "The weights have values that are not finite: " + weight.toUtf8() +
                            " in model-00002-of-00003.safetensors has inf at element 3.";
    QVERIFY2((run.out + run.err).contains(said), (run.out + run.err).constData());
  }

  /// A mean over 0 labels is NaN in every framework. The weights are not the cause.
  void aLossWithoutLabelsIsExplained() {
    QTemporaryDir folder;
    const QString family = QStringLiteral(CLEAVE_TEST_DATA "/families/qwen3"),
                  inputs = folder.filePath("in.safetensors");
    writeAltered(family + "/expected.safetensors", inputs, [](QJsonObject& header, QByteArray& data) {
      const QJsonArray range = header["labels"].toObject()["data_offsets"].toArray();
      for (int at = range[0].toInt(); at < range[1].toInt(); at += 8) qToLittleEndian<qint64>(-100, data.data() + at);
    });
    const Finished run = cli({"run", family, "--ranks", "2", "--backend", "gloo", "--expect", inputs});
    QVERIFY2(run.exitCode == 1, (QByteArray::number(run.exitCode) + run.err).constData());
    QVERIFY2(run.out.contains("every label is -100"), (run.out + run.err).constData());
    QVERIFY2(run.out.contains("logits: largest difference"), run.out.constData());
  }

  void aConfigWithAnotherNameIsNotAPlan() {
    QTemporaryDir folder;
    QFile::copy(kModel + "/config.json", folder.filePath("my-model.json"));
    for (const char* command : {"plan", "run", "explain"}) {
      const Finished done = cli({command, folder.filePath("my-model.json")});
      QVERIFY2(done.exitCode == 3, (QByteArray::number(done.exitCode) + done.err).constData());
      QVERIFY2(done.err.contains("with another name. Copy it into a folder as config.json"), done.err.constData());
    }
  }

  void aPlanWithABadBatchIsBadInput_data() {
    QTest::addColumn<QString>("key");
    QTest::addColumn<QJsonValue>("value");
    QTest::newRow("no batch") << "batch" << QJsonValue(0);
    QTest::newRow("another batch") << "batch" << QJsonValue(3);
    QTest::newRow("a huge batch") << "batch" << QJsonValue(1e15);
    QTest::newRow("text") << "sequence" << QJsonValue("x");
    QTest::newRow("logits that the loss lacks") << "logits_to_keep" << QJsonValue(3);
  }
  void aPlanWithABadBatchIsBadInput() {
    QFETCH(QString, key);
    QFETCH(QJsonValue, value);
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli(planOf(kModel, {"--json", file})).exitCode, 0);
    QJsonObject plan = QJsonDocument::fromJson(contentOf(file)).object();
    QJsonObject model = plan["model"].toObject();
    model[key] = value;
    plan["model"] = model;
    writeBytes(file, QJsonDocument(plan).toJson());
    for (const char* command : {"check", "run"}) {
      const Finished done = cli({command, file});
      QVERIFY2(done.exitCode == 3, (QByteArray(command) + QByteArray::number(done.exitCode) + done.err).constData());
      QVERIFY(!done.err.contains("json.exception"));
    }
  }

  /// Every kind of foreign file with contents that a reader must refuse: one sentence and exit code 3.
  void foreignFilesAreRefusedInOneSentence_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QByteArray>("content");
    const QList<std::pair<const char*, QByteArray>> contents{
        {"nothing", ""},
        {"no JSON", "hello"},
        {"not UTF-8", "{\"schema\":\"\xff\xfe\"}"},
        {"deep", QByteArray("{\"a\":") + QByteArray(100'000, '[')},
        {"a key twice", "{\"schema\":\"x\",\"schema\":\"y\"}"},
        {"a list", "[]"},
        {"null", "null"},
        {"200,000 keys",
         [] {
           QByteArray text = "{";
           for (int i = 0; i < 200'000; ++i)
             text += "\"key" + QByteArray::number(i) + "\":" + QByteArray::number(i) + ",";
           return text + "\"last\":0}";
         }()},
        {"many values", "{\"warnings\":[" + QByteArray("\"\",").repeated(9'000'000) + "\"\"]}"}};
    for (const char* file :
         {"plan.json", "model/config.json", "model/model.safetensors.index.json", "device.json", "rules.jsonl"}) {
      for (const auto& [name, content] : contents)
        QTest::newRow(qPrintable(QStringLiteral("%1: %2").arg(file, name))) << QString(file) << content;
    }
  }
  void foreignFilesAreRefusedInOneSentence() {
    QFETCH(QString, file);
    QFETCH(QByteArray, content);
    QTemporaryDir folder;
    QDir(folder.path()).mkpath("model");
    if (file != "model/config.json") QFile::copy(kModel + "/config.json", folder.filePath("model/config.json"));
    writeBytes(folder.filePath(file), content);
    const QStringList arguments = file == "plan.json" ? QStringList{"check", folder.filePath(file)}
                                  : file == "device.json"
                                      ? QStringList{"plan", kModel, "--device-profile", folder.filePath(file)}
                                  : file == "rules.jsonl" ? QStringList{"rules", "--eval", folder.filePath(file)}
                                                          : QStringList{"plan", folder.filePath("model")};
    const Finished done = cli(arguments);
    const bool isNothingToDo = file == "rules.jsonl" && content.isEmpty();
    QVERIFY(!done.crashed);
    QVERIFY2(done.exitCode == (isNothingToDo ? 0 : 3),
             (QByteArray::number(done.exitCode) + done.err.left(1000)).constData());
    const QByteArray said = done.err + done.out;
    QVERIFY2(!said.contains("json.exception"), said.left(1000).constData());
    QVERIFY2(said.size() < 2000 && QString::fromUtf8(said).toUtf8() == said, said.left(3000).constData());
  }

  void aWrongLineOfRulesHasAnAnswer() {
    const Finished done = cli({"rules", "--eval", "-"},
                              "{\"op\":\"aten::neg\",\"menu\":5}\n{\"op\":\"aten::ne\xff\"}\n{\"op\":\"aten::neg\","
                              "\"args\":[{\"tensor\":[2]}]}\n");
    QVERIFY(!done.crashed);
    QCOMPARE(done.exitCode, 3);
    const auto lines = done.out.trimmed().split('\n');
    QCOMPARE(lines.size(), 3);
    QCOMPARE(lines[0], QByteArray("{\"error\":\"The line: menu must be a text, but it is 5.\"}"));
    QVERIFY2(lines[1].startsWith("{\"error\":\"The line is not valid JSON at line 1, column 16"), lines[1].constData());
    QCOMPARE(lines[2], QByteArray("{\"out\":[\"R\"]}"));
  }

  void severalShapesAreOneDocument() {
    const Finished done = cli({"run", kModel, "--backend", "gloo", "--shapes", "1x8,2x4", "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QJsonParseError error;
    const QJsonObject json = QJsonDocument::fromJson(done.out, &error).object();
    QVERIFY2(error.error == QJsonParseError::NoError, qPrintable(error.errorString()));
    QCOMPARE(json["schema"].toString(), QString("cleave.runs/1"));
    QVERIFY(json["passed"].toBool());
    const QJsonArray runs = json["runs"].toArray();
    QCOMPARE(runs.size(), 2);
    QCOMPARE(runs[1]["batch"].toInt(), 2);
    QCOMPARE(runs[1]["sequence"].toInt(), 4);
    QCOMPARE(runs[1]["report"]["schema"].toString(), QString("cleave.run/1"));
    QCOMPARE(cli({"run", kModel, "--shapes", "1x8,2x4", "--output", "x"}).exitCode, 2);
  }

  void aShapeThatFailsIsInTheDocument() {
    const Finished done = cli(
        {"run", kModel, "--backend", "gloo", "--engine", "reference", "--shapes", "1x8,1x100000000", "--json", "-"});
    const QJsonObject json = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(json["passed"], QJsonValue(false));
    const QJsonArray runs = json["runs"].toArray();
    QCOMPARE(runs.size(), 1);  // the others do not run
    QCOMPARE(runs[0]["sequence"].toInt(), 100'000'000);
    QCOMPARE(runs[0]["error"]["code"].toInt(), done.exitCode);
    QVERIFY2(done.exitCode != 0 && done.err.contains(runs[0]["error"]["message"].toString().toUtf8()),
             done.err.constData());
  }

  /// A plan is JSON, which cannot name this folder. The ranks would look for another one.
  void aFolderWhoseNameIsNotUtf8IsRefused() {
    QTemporaryDir folder;
    const fs::path bad = fs::path(folder.path().toStdString()) / "bad\xff";
    fs::create_directory(bad);
    fs::copy_file(kModel.toStdString() + "/config.json", bad / "config.json");
    QProcess shell;
    shell.start(
        "/bin/sh",
        {"-c", QStringLiteral("cd %1/bad* && exec %2/cleave-cli plan . --seq 8").arg(folder.path(), CLEAVE_BIN_DIR)});
    QVERIFY(shell.waitForFinished(120'000));
    QCOMPARE(shell.exitCode(), 3);
    QVERIFY2(shell.readAllStandardError().contains(" is not UTF-8, so a plan cannot store it. Rename the folder."),
             "another sentence");
  }

  void aPlanThatNamesNoModelIsRefusedInASentence_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("nothing") << "" << QByteArray("There is no model path. Use a model folder or a config.json.");
    QTest::newRow("a zero byte") << QString(kModel + QChar(0) + "x")
                                 << QByteArray(" has a zero byte, which paths cannot have.");
  }
  void aPlanThatNamesNoModelIsRefusedInASentence() {
    QFETCH(QString, source);
    QFETCH(QByteArray, phrase);
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli(planOf(kModel, {"--json", file})).exitCode, 0);
    QJsonObject plan = QJsonDocument::fromJson(contentOf(file)).object();
    QJsonObject named = plan["model"].toObject();
    named["source"] = source;
    plan["model"] = named;
    writeBytes(file, QJsonDocument(plan).toJson());
    const Finished done = cli({"check", file});
    QCOMPARE(done.exitCode, 3);
    QVERIFY2(done.err.contains(phrase), done.err.constData());
  }

  /// A plan file already has the settings of these flags.
  void aPlanWithAByteOrderMarkRuns() {
    const QTemporaryDir folder;
    const QString plan = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", kModel, "--ranks", "2", "--json", plan}).exitCode, 0);
    writeBytes(plan, QByteArray("\xEF\xBB\xBF") + readBytes(plan));
    const Finished run = cli({"run", plan, "--backend", "gloo", "--no-check"});
    QVERIFY2(run.exitCode == 0, run.err.constData());
  }

  void planFlagsWithAPlanFileAreRefused_data() {
    QTest::addColumn<QStringList>("flags");
    for (const char* flags :
         {"--ranks 4", "--ranks 2", "--batch 3", "--pin lm_head=replicated", "--train", "--dtype bfloat16",
          "--engine learning", "--memory-budget 40GiB", "--seed 1", "--slack 0"}) {
      QTest::newRow(flags) << QString(flags).split(' ');
    }
  }
  void planFlagsWithAPlanFileAreRefused() {
    QFETCH(QStringList, flags);
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli(planOf(kModel, {"--json", file})).exitCode, 0);
    for (const QStringList& command : {QStringList{"run", file, "--no-check"}, QStringList{"export", file}}) {
      const Finished done = cli(command + flags);
      QVERIFY2(done.exitCode == 2, (QByteArray::number(done.exitCode) + done.err).constData());
      QVERIFY2(done.err.contains("is a plan, and " + flags[0].toUtf8() + " is a setting of a new plan"),
               done.err.constData());
    }
  }

  /// A plan is for one shape. Inputs of another shape get a plan with the same settings.
  void inputsOfAnotherShapeArePlannedAgain() {
    QTemporaryDir folder;
    const QString file = folder.filePath("plan.json");
    QCOMPARE(cli({"plan", kModel, "--ranks", "4", "--engine", "reference", "--seq", "64", "--pin", "lm_head=replicated",
                  "--json", file})
                 .exitCode,
             0);
    const Finished done =
        cli({"run", file, "--backend", "gloo", "--expect", kModel + "/expected.safetensors", "--json", "-"});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY2(done.err.contains("is a plan for batch 1, sequence 64"), done.err.constData());
    const QJsonObject report = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(report["plan"]["ranks"].toInt(), 4);
    QCOMPARE(report["plan"]["engine"].toString(), QString("reference"));
    QCOMPARE(report["compared_with"].toString(), QString("expected.safetensors"));
  }
};

QTEST_GUILESS_MAIN(TestCliFiles)
#include "tst_cli_files.moc"
