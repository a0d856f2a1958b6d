/// Outputs of the command line: they never replace an input, and they are complete even if a reader stops.
#include "tests/support/cli_process.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace cleave::test;

namespace {

const QString kModel = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

/// A temporary folder with the model, expected values, a plan, a device profile, and links to them.
class Workplace {
 public:
  Workplace() {
    std::filesystem::copy(kModel.toStdString(), at("model").toStdString());
    writeBytes(at("device.json"), readBytes(QStringLiteral(CLEAVE_SOURCE_DIR "/resources/devices/cpu.json")));
    writeBytes(at("expected.st"), readBytes(kModel + "/expected.safetensors"));
    if (cli({"plan", at("model"), "--batch", "2", "--seq", "16", "--engine", "reference", "--json", at("plan.json")})
            .exitCode != 0)
      qFatal("no plan");
    QFile::link(at("expected.st"), at("link.st"));
    std::filesystem::create_hard_link(at("expected.st").toStdString(), at("twin.st").toStdString());
  }
  QString at(const QString& name) const { return m_folder.filePath(name); }
  /// Every file's bytes, by its path.
  QMap<QString, QByteArray> content() const {
    QMap<QString, QByteArray> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(m_folder.path().toStdString())) {
      const QString path = QString::fromStdString(entry.path().string());
      if (entry.is_regular_file()) all[path] = readBytes(path);
    }
    return all;
  }

 private:
  QTemporaryDir m_folder;
};

/// Runs in a shell, for its redirections. `@` is the folder.
Finished shell(QString command, const QString& folder) {
  command.replace("@", folder + "/").replace("cleave-cli", CLEAVE_BIN_DIR "/cleave-cli");
  QProcess process;
  process.start("/bin/bash", {"-o", "pipefail", "-c", command});
  process.closeWriteChannel();
  Finished finished;
  finished.crashed = !process.waitForFinished(120'000) || process.exitStatus() != QProcess::NormalExit;
  finished.exitCode = process.exitCode();
  finished.out = process.readAllStandardOutput();
  finished.err = process.readAllStandardError();
  return finished;
}

}  // namespace

class TestCliOutputs : public QObject {
  Q_OBJECT
 private slots:
  /// `@` is the folder of a Workplace; `phrase` names the file that would be lost.
  void inputsAreNotOverwritten_data() {
    QTest::addColumn<QString>("command");
    QTest::addColumn<QByteArray>("phrase");
    const auto row = [](const char* command, const char* phrase) {
      QTest::newRow(command) << QString(command) << QByteArray(phrase);
    };
    row("run @model --expect @expected.st --output @expected.st", "expected.st is the same file as --expect");
    row("run @model --expect @expected.st --output @link.st", "link.st is the same file as --expect");
    row("run @model --expect @expected.st --output @twin.st", "twin.st is the same file as --expect");
    row("run @model --expect @expected.st --json @expected.st", "--json");
    row("run @model --input @expected.st --output @model/../expected.st", "is the same file as --input");
    row("run @model --no-check --output @model/model-00002-of-00003.safetensors",
        "is the same file as the model's model-00002-of-00003.safetensors");
    row("run @plan.json --no-check --output @model/model-00002-of-00003.safetensors",
        "the model's model-00002-of-00003.safetensors");
    row("run @plan.json --no-check --json @plan.json", "plan.json is the same file as ");
    row("run @model --no-check --output @new --json @new", "--output and --json both write to ");
    row("run @model --shapes 1x8 --json @model/config.json", "the model's config.json");
    row("plan @model --engine reference --json @model/config.json", "--json");
    row("plan @model --engine reference --json @model/model.safetensors.index.json",
        "the model's model.safetensors.index.json");
    row("plan @model --engine reference --json @new --trace @new", "--trace and --json both write to ");
    row("plan @model --engine reference --trace @model/config.json", "--trace");
    row("plan @model --engine reference --device-profile @device.json --json @device.json",
        "is the same file as --device-profile");
    row("compare @model @plan.json,reference --json @plan.json", "plan.json is the same file as ");
    row("preflight @model --json @model/config.json", "the model's config.json");
    row("explain @model --engine reference --json @model/config.json", "the model's config.json");
    row("export @model --engine reference --out @model/config.json", "the model's config.json");
    row("export @plan.json --format dot --out @plan.json", "plan.json is the same file as ");
    row("export @plan.json --out @model/config.json", "the model's config.json");
  }
  void inputsAreNotOverwritten() {
    QFETCH(QString, command);
    QFETCH(QByteArray, phrase);
    const Workplace work;
    const auto before = work.content();
    const Finished done = cli(command.replace("@", work.at("./")).split(' '));
    QVERIFY2(done.exitCode == 2, (QByteArray::number(done.exitCode) + done.err + done.out).constData());
    QVERIFY2(done.err.contains(phrase), done.err.constData());
    QVERIFY(work.content() == before);
  }

  /// An output that is not an input is written, also into the model's folder and over an existing file.
  void otherOutputsAreWritten() {
    const Workplace work;
    const auto before = work.content();
    const QString outputs = work.at("model/outputs.safetensors");
    writeBytes(outputs, "old");
    const Finished done = cli(
        {"run", work.at("model"), "--engine", "reference", "--expect", work.at("expected.st"), "--output", outputs});
    QVERIFY2(done.exitCode == 0, done.err.constData());
    auto after = work.content();
    QVERIFY(after.take(outputs).size() > 32'768);
    QVERIFY(after == before);
  }

  /// Differences are reported, and the outputs are still written.
  void theOutputsOfAFailedComparisonAreWritten() {
    const Workplace work;
    writeAltered(kModel + "/expected.safetensors", work.at("wrong.st"), withNumber("logits", 5, 123));
    const QString outputs = work.at("outputs.st");
    const Finished done =
        cli({"run", work.at("model"), "--engine", "reference", "--expect", work.at("wrong.st"), "--output", outputs});
    QCOMPARE(done.exitCode, 1);
    QVERIFY(readBytes(outputs).size() > 32'768);
  }

  void aRankDoesNotOverwriteItsPlan() {
    const Workplace work;
    const QByteArray plan = readBytes(work.at("plan.json"));
    const Finished done = runProgram("cleave-rank", {work.at("plan.json"), "--output", work.at("plan.json")});
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains("is the same file as the plan"), done.err.constData());
    QCOMPARE(readBytes(work.at("plan.json")), plan);
  }

  /// Progress goes to standard error. The command continues if its reader ends.
  void aReaderOfProgressMayLeave_data() {
    QTest::addColumn<QString>("command");
    QTest::newRow("plan") << "cleave-cli plan @model --engine reference";
    QTest::newRow("explain") << "cleave-cli explain @model --engine reference";
    QTest::newRow("export") << "cleave-cli export @model --engine reference";
    QTest::newRow("check") << "cleave-cli check @plan.json";
    QTest::newRow("info") << "cleave-cli info @model";
    QTest::newRow("run") << "cleave-cli run @model --engine reference --backend gloo --seq 8 --no-check";
  }
  void aReaderOfProgressMayLeave() {
    QFETCH(QString, command);
    const Workplace work;
    // The reader has ended before the program starts.
    const Finished done = shell("exec 3> >(exec <&-; exec sleep 0); sleep 1; " + command + " 2>&3", work.at("."));
    QVERIFY2(!done.crashed && done.exitCode == 0, QByteArray::number(done.exitCode).constData());
    QVERIFY(done.out.size() > 20);
  }

  /// Output files are written even if standard output fails.
  void filesAreWrittenBeforeStandardOutput_data() {
    QTest::addColumn<QString>("command");
    QTest::addColumn<int>("runs");
    const QString run = "cleave-cli run @model --engine reference --backend gloo --no-check --json @report.json";
    QTest::newRow("run, closed") << run + " --seq 8 >&-" << 1;
    QTest::newRow("run, reader gone") << run + " --seq 8 | exec sleep 0" << 1;
    QTest::newRow("several shapes, closed") << run + " --shapes 1x8,2x4 >&-" << 2;
    QTest::newRow("several shapes, reader gone") << run + " --shapes 1x8,2x4 | exec sleep 0" << 2;
    QTest::newRow("plan, reader gone") << "cleave-cli plan @model --engine reference --json @report.json | exec sleep 0"
                                       << 0;
  }
  void filesAreWrittenBeforeStandardOutput() {
    QFETCH(QString, command);
    QFETCH(int, runs);
    const Workplace work;
    const Finished done = shell(command, work.at("."));
    QCOMPARE(done.exitCode, 4);
    QCOMPARE(done.err.contains("Cannot write to standard output"), command.endsWith(">&-"));  // no message for `| head`
    QCOMPARE(done.err.contains("cleave-cli: "), command.endsWith(">&-"));
    const QJsonObject report = QJsonDocument::fromJson(readBytes(work.at("report.json"))).object();
    QCOMPARE(report["schema"].toString(), QString(runs == 0   ? "cleave.plan/1"
                                                  : runs == 1 ? "cleave.run/1"
                                                              : "cleave.runs/1"));
    if (runs > 1) QCOMPARE(report["runs"].toArray().size(), runs);
  }
};

QTEST_GUILESS_MAIN(TestCliOutputs)
#include "tst_cli_outputs.moc"
