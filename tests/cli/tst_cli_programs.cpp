/// Versions, problem reports, manual and completions of all three programs.
#include "tests/support/cli_process.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

constexpr const char* kToken = "canary-7f31c9-token";
constexpr const char* kPrefixedToken = "hf_canaryabcdefgh0123456789";

void write(const QString& path, const QByteArray& text) {
  QVERIFY(QDir().mkpath(QFileInfo(path).path()));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
}

Finished runWith(const QProcessEnvironment& environment, const QString& program, const QStringList& arguments) {
  QProcess process;
  process.setProcessEnvironment(environment);
  process.start(program, arguments);
  process.closeWriteChannel();
  Finished done;
  done.crashed = !process.waitForFinished(60'000) || process.exitStatus() != QProcess::NormalExit;
  done.exitCode = process.exitCode();
  done.out = process.readAllStandardOutput();
  done.err = process.readAllStandardError();
  return done;
}

const QString kBin = QStringLiteral(CLEAVE_BIN_DIR "/");

}  // namespace

class TestCliPrograms : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { QVERIFY(m_folder.isValid()); }

  void eachPrintsItsVersions_data() { programs(); }
  void eachPrintsItsVersions() {
    QFETCH(QString, program);
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(name);
    const Finished done = runWith(environment, kBin + program, {"--version"});
    QCOMPARE(done.exitCode, 0);
    const QString said = QString::fromUtf8(done.out);
    const QString none = "not in this build|not in this LibTorch";
    QString form = "^" + program + " \\d+\\.\\d+\\.\\d+\nLibTorch: \\d+\\.\\d+\\.\\d+\\S*\n";
    form += "CUDA: (\\d+\\.\\d+|" + none + ")\nNCCL: (\\d+\\.\\d+\\.\\d+|" + none + ")\n";
    if (program == "cleave") form += "Qt: 6\\.\\d+\\.\\d+\nGraphviz: \\d+\\.\\S+\n";
    form += "Compiler: \\S+ .*\nC library: glibc .*\n$";
    QVERIFY2(QRegularExpression(form).match(said).hasMatch(), qPrintable(said));
    QVERIFY(said.contains("LibTorch: 2.11.0"));
  }

  /// Secrets that a report must not contain: in variables, the log of the last run, the settings, and paths below the
  /// home folder.
  void aReportHasNoSecrets_data() {
    QTest::addColumn<QString>("program");
    for (const char* program : {"cleave", "cleave-cli"}) QTest::newRow(program) << program;
  }
  void aReportHasNoSecrets() {
    QFETCH(QString, program);
    const QString home = m_folder.filePath("ada-lovelace");
    const QString model = home + "/private models/llama";
    write(home + "/data/cleave/cleave/runs/20260102-030405-678.json",
          QString("{'schema':'cleave.run/1','passed':false,'backend':'gloo','plan':{'model':'%1','ranks':2},"
                  "'violations':['%2 in %1/x'],'notes':['https://u:%2@hub/x?t=%3'],'warnings':['Bearer %3'],"
                  "'first_failure':{'rank':1,'message':'cannot read %1 of ada-lovelace'}}")
              .replace('\'', '"')
              .arg(model, kToken, kPrefixedToken)
              .toUtf8());
    write(
        home + "/config/cleave/cleave.conf",
        QString(
            "[General]\nrecent=%1\ntoken=%2\n[solve]\ndevice=%1/device.json\nranks=3\nengine=%2\n[window]\ndark=true\n")
            .arg(model, kToken)
            .toUtf8());
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const auto& [name, value] : {std::pair<const char*, QString>{"HOME", home},
                                      {"XDG_DATA_HOME", home + "/data"},
                                      {"XDG_CONFIG_HOME", home + "/config"},
                                      {"HF_TOKEN", kToken},
                                      {"MY_API_KEY", kPrefixedToken},
                                      {"CLEAVE_RESOURCES", model},
                                      {"USER", "ada-lovelace"},
                                      {"HOSTNAME", "engine-of-ada"},
                                      {"QT_QPA_PLATFORM", "offscreen"}})
      environment.insert(name, value);
    const Finished done = runWith(environment, kBin + program, {"--report"});
    QVERIFY2(done.exitCode == 0, done.err);
    const QByteArray said = done.out;
    for (const QByteArray& secret :
         {QByteArray(kToken), QByteArray(kPrefixedToken), QByteArray("canary"), home.toUtf8(),
          QByteArray("private models"), QByteArray("llama"), QByteArray("ada-lovelace"), QByteArray("engine-of-ada")})
      QVERIFY2(!said.contains(secret), "contains " + secret + ":\n" + said);
    // The facts that a maintainer needs.
    for (const char* fact : {"LibTorch: 2.11.0", "Kernel: Linux", "Memory: ", "Driver: ", "HF_TOKEN",
                             "CLEAVE_RESOURCES", "Ended at 20260102-030405-678", "passed: false", "\"rank\":1"})
      QVERIFY2(said.contains(fact), QByteArray("lacks ") + fact + ":\n" + said);
    if (program != "cleave") return;
    for (const char* fact :
         {"solve/ranks: 3", "window/dark: true", "solve/device: a path", "recent files: 1", "Qt platform: offscreen"})
      QVERIFY2(said.contains(fact), QByteArray("lacks ") + fact + ":\n" + said);
  }

  void theManualIsUpToDate() {
    const Finished made = cli({"manual"});
    QCOMPARE(made.exitCode, 0);
    QFile file(QStringLiteral(CLEAVE_SOURCE_DIR "/docs/cli.md"));
    if (qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(made.out) == made.out.size());
      return;
    }
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY2(file.readAll() == made.out,
             "docs/cli.md differs from `cleave-cli manual`; CLEAVE_UPDATE_CASES=1 rewrites it");
    for (const char* known : {"### cleave-cli plan", "`--engine {optimal,reference,learning}`", "## cleave-rank"})
      QVERIFY2(made.out.contains(known), known);
  }

  /// Each table is between two markers: <!-- fields of NAME --> and <!-- end of NAME -->.
  void tablesOfFileFormatsAreUpToDate() {
    const Finished made = cli({"manual", "--formats"});
    QCOMPARE(made.exitCode, 0);
    QFile file(QStringLiteral(CLEAVE_SOURCE_DIR "/docs/file-formats.md"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QByteArray page = file.readAll();
    file.close();
    const QByteArray before = page;
    static const QRegularExpression marker("<!-- fields of ([^\n]+) -->\n");
    int tables = 0;
    for (auto each = marker.globalMatch(QString::fromUtf8(made.out)); each.hasNext(); ++tables) {
      const QByteArray name = each.next().captured(1).toUtf8(), end = "<!-- end of " + name + " -->\n";
      const auto tableIn = [&](const QByteArray& text) {
        const qsizetype begin = text.indexOf("<!-- fields of " + name + " -->\n");
        const qsizetype stop = begin < 0 ? -1 : text.indexOf(end, begin);
        return stop < 0 ? QByteArray() : text.mid(begin, stop + end.size() - begin);
      };
      const QByteArray old = tableIn(page);
      QVERIFY2(!old.isEmpty(), "docs/file-formats.md has no table of " + name);
      page.replace(old, tableIn(made.out));
    }
    QVERIFY(tables > 0);
    QCOMPARE(page.count("<!-- fields of "), tables);
    if (qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(page) == page.size());
      return;
    }
    QVERIFY2(page == before,
             "docs/file-formats.md differs from `cleave-cli manual --formats`; CLEAVE_UPDATE_CASES=1 rewrites it");
    for (const char* known : {"| `model.cache_positions` |", "| `outputs[].farthest.place` |"})
      QVERIFY2(page.contains(known), known);
  }

  void manPagesAreSound_data() { programs(); }
  void manPagesAreSound() {
    QFETCH(QString, program);
    const QString page = m_folder.filePath(program + ".1");
    const Finished made = cli({"manual", "--format", "man", "--program", program});
    QCOMPARE(made.exitCode, 0);
    write(page, made.out);
    QVERIFY(made.out.contains(".SH SYNOPSIS"));
    const QString mandoc = QStandardPaths::findExecutable("mandoc");
    if (mandoc.isEmpty()) QSKIP("no mandoc here");
    const Finished read = runWith(QProcessEnvironment::systemEnvironment(), mandoc, {"-Tlint", "-Wwarning", page});
    QVERIFY2(read.exitCode == 0, read.out);
  }

  void shellsComplete_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QStringList>("completed");
    QTest::addColumn<QString>("not_completed");
    const auto row = [](const char* line, const QStringList& completed, const char* notCompleted) {
      QTest::newRow(line) << QString(line) << completed << QString(notCompleted);
    };
    row("cleave-cli pl", {"plan"}, "run");
    row("cleave-cli plan --engine ", {"optimal", "reference", "learning"}, "plan");
    row("cleave-cli plan --sequence", {"--sequence-parallel"}, "--shapes");
    row("cleave-cli run --sh", {"--shapes"}, "--seq");
    row("cleave-cli run --optimizer ad", {"adamw"}, "sgd");
    row("cleave-cli plan models/", {"models/llama/", "models/a.pt2"}, "models/notes.txt");
    row("cleave-cli run --input models/", {"models/notes.txt", "models/a.pt2"}, "nothing");
    row("cleave-cli completion ", {"bash", "zsh", "fish"}, "plan");
    row("cleave --platform o", {"offscreen"}, "xcb");
    row("cleave-rank --backend ", {"gloo", "nccl"}, "auto");
  }
  void shellsComplete() {
    QFETCH(QString, line);
    QFETCH(QStringList, completed);
    QFETCH(QString, not_completed);
    QDir().mkpath(m_folder.filePath("models/llama"));
    write(m_folder.filePath("models/a.pt2"), "x");
    write(m_folder.filePath("models/notes.txt"), "x");
    for (const auto& [shell, complete] :
         {std::pair<const char*, QStringList (TestCliPrograms::*)(const QString&)>{"bash", &TestCliPrograms::byBash},
          {"zsh", &TestCliPrograms::byZsh},
          {"fish", &TestCliPrograms::byFish}}) {
      if (QStandardPaths::findExecutable(shell).isEmpty()) continue;
      if (!QFile::exists(m_folder.filePath(shell))) {
        const Finished script = cli({"completion", shell});
        QCOMPARE(script.exitCode, 0);
        write(m_folder.filePath(shell), script.out);
      }
      const QStringList found = (this->*complete)(line);
      for (const QString& wanted : completed) {
        // A shell adds the slash after a folder.
        const bool isThere = found.contains(wanted) || (wanted.endsWith('/') && found.contains(wanted.chopped(1)));
        QVERIFY2(isThere, qPrintable(QString("%1 does not complete %2: %3").arg(shell, wanted, found.join(' '))));
      }
      QVERIFY2(!found.contains(not_completed), qPrintable(QString("%1: %2").arg(shell, found.join(' '))));
    }
  }

 private:
  static void programs() {
    QTest::addColumn<QString>("program");
    for (const char* program : {"cleave", "cleave-cli", "cleave-rank"}) QTest::newRow(program) << program;
  }

  QStringList linesOf(const QString& program, const QStringList& arguments) {
    QProcess process;
    process.setWorkingDirectory(m_folder.path());
    process.start(program, arguments);
    process.closeWriteChannel();
    if (!process.waitForFinished(60'000)) process.kill();
    return QString::fromUtf8(process.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
  }

  /// The function that `complete` names, called as bash calls it.
  QStringList byBash(const QString& line) {
    return linesOf("bash", {"--norc", "-c",
                            "source ./bash; COMP_WORDS=($1); [[ $1 == *' ' ]] && COMP_WORDS+=(''); "
                            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                            "$(complete -p ${COMP_WORDS[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "
                            "printf '%s\\n' \"${COMPREPLY[@]}\"",
                            "bash", line});
  }
  QStringList byFish(const QString& line) {
    QStringList found;
    for (const QString& offer : linesOf("fish", {"--no-config", "-c", "source ./fish; complete -C \"$argv[1]\"", line}))
      found << offer.section('\t', 0, 0);
    return found;
  }
  /// Types the line into a shell with its own terminal, and records the completions that the script adds.
  QStringList byZsh(const QString& line) {
    QDir(m_folder.path()).mkpath("zsh-functions");
    QFile::copy(m_folder.filePath("zsh"), m_folder.filePath("zsh-functions/_cleave"));
    return linesOf("zsh", {"-f", QStringLiteral(CLEAVE_SOURCE_DIR "/tests/tools/zsh-complete"), line});
  }

  QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestCliPrograms)
#include "tst_cli_programs.moc"
