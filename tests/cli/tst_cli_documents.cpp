/// Runs the commands of the documents as they are written.
#include "tests/support/hub_server.h"
#include "tests/support/machines.h"
#include "tests/support/patience.h"

#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QRegularExpression>
#include <QSet>
#include <QTemporaryDir>
#include <QTest>

using namespace cleave::test;

namespace {

const QString kSource = QStringLiteral(CLEAVE_SOURCE_DIR);

/// Commands that build, install or take long are not run here. The test checks their scripts, options and presets, and
/// names the check that runs each.
struct Exception {
  const char* command;
  const char* isRunBy;
};
constexpr Exception kExceptions[] = {
    {"packaging/run", "packaging/test: packaging/setup, and the tour in tst_script"},
    {"packaging/setup --tests", "packaging/test, as its first step"},
    {"packaging/test", "CI, with --sanitize"},
    {"packaging/test --sanitize", "CI"},
    {"packaging/test --all", "CI"},
    {"packaging/checks/format --fix", "packaging/test, without --fix"},
    {"packaging/checks/rooms", "packaging/test"},
    {"cmake --preset dev && cmake --build --preset dev", "packaging/test, with the presets release and asan"},
    {"ctest --preset release -L core", "packaging/test, with all labels"},
    {"ctest --preset release -L '^gpu$'", "packaging/test, with all labels"},
    {"ctest --preset release -L 'simulated-gpu|cuda-shims'", "packaging/test, with all labels"},
    {"packaging/gpu-check", "tst_gpu_check, with fake programs"},
    {"packaging/gpu-check --quick", "tst_gpu_check, with fake programs"},
};

/// README.md first; a command may read what an earlier one of its document wrote.
QStringList documents() {
  QStringList found{"README.md", "CONTRIBUTING.md", "SECURITY.md"};
  for (const QString& name : QDir(kSource + "/docs").entryList({"*.md"}, QDir::Files, QDir::Name))
    found << "docs/" + name;
  return found;
}

QStringList linesOf(const QString& document) {
  QFile file(kSource + "/" + document);
  if (!file.open(QIODevice::ReadOnly)) qFatal("no %s", qPrintable(document));
  return QString::fromUtf8(file.readAll()).split('\n');
}

/// The text without fenced blocks.
QString proseOf(const QString& document) {
  QStringList blocks = linesOf(document).join('\n').split("```"), prose;
  for (qsizetype i = 0; i < blocks.size(); i += 2) prose << blocks[i];
  return prose.join('\n');
}

/// Commands in the code blocks, in order: each line of a block fenced as `sh`, and in indented blocks, which may be
/// drawings, the lines that begin like a command.
QStringList commandsOf(const QString& document) {
  static const QRegularExpression kCommand(
      "^ {4,}((?:[A-Z_]+=\\S+ +)*(?:cleave-cli|torchrun|alias|cmake|ctest|packaging/|build/)\\S*.*)$");
  QStringList found;
  bool isShell = false, isFenced = false;
  for (const QString& line : linesOf(document)) {
    if (line.trimmed().startsWith("```")) {
      isShell = !isFenced && line.trimmed() == "```sh";
      isFenced = !isFenced;
      continue;
    }
    const auto match = kCommand.match(line);
    if (!isShell && (isFenced || !match.hasMatch())) continue;
    QString command = isShell ? line : match.captured(1);
    command = command.remove(QRegularExpression("(^|\\s+)#.*$")).trimmed();
    if (!command.isEmpty()) found << command;
  }
  return found;
}

/// Trimmed lines of all files of these kinds.
QSet<QString> linesBelow(const QStringList& folders, const QStringList& kinds) {
  QSet<QString> lines;
  for (const QString& folder : folders) {
    QDirIterator files(kSource + "/" + folder, kinds, QDir::Files, QDirIterator::Subdirectories);
    while (files.hasNext()) {
      QFile file(files.next());
      if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(file.fileName()));
      for (const QString& line : QString::fromUtf8(file.readAll()).split('\n')) lines.insert(line.trimmed());
    }
  }
  return lines;
}

/// Replacements for PyTorch's and Slurm's launchers, which may not be installed. They set the same environment, and end
/// with kWaitForAll.
constexpr const char* kTorchrun = R"(#!/usr/bin/env bash
while true; do
  case "$1" in
    --no-python | --standalone) shift ;;
    --nproc-per-node) ranks=$2; shift 2 ;;
    *) break ;;
  esac
done
export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1
started=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &
)";
constexpr const char* kSrun = R"(#!/usr/bin/env bash
while true; do
  case "$1" in
    --nodes=1 | --kill-on-bad-exit=1) shift ;;
    --ntasks=*) ranks=${1#*=}; shift ;;
    *) break ;;
  esac
done
export SLURM_NTASKS=$ranks SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=1
started=()
for ((rank = 0; rank < ranks; ++rank)); do
  SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" &
)";
constexpr const char* kWaitForAll = R"(  started+=($!)
done
code=0
for process in "${started[@]}"; do wait "$process" || code=$?; done
exit $code
)";

void writeExecutable(const QString& path, const QByteArray& text) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("cannot write %s", qPrintable(path));
  file.setPermissions(file.permissions() | QFile::ExeOwner);
}

/// "core/spec/{input,plan}": core/spec/input and core/spec/plan.
QStringList foldersOf(const QString& room) {
  const qsizetype open = room.indexOf('{'), close = room.indexOf('}');
  if (open < 0) return {room};
  QStringList folders;
  for (const QString& name : room.mid(open + 1, close - open - 1).split(','))
    folders << room.left(open) + name + room.mid(close + 1);
  return folders;
}

}  // namespace

class TestCliDocuments : public QObject {
  Q_OBJECT
 private slots:
  /// A folder like a user's checkout: the files that the commands name are there, and outputs go to this folder.
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    const QDir folder(m_folder.path());
    QVERIFY(folder.mkpath("build/release"));
    QVERIFY(QFile::link(CLEAVE_BIN_DIR, folder.filePath("build/release/bin")));
    QVERIFY(QFile::link(CLEAVE_BIN_DIR "/../tests", folder.filePath("build/release/tests")));
    QVERIFY(QFile::link(kSource + "/resources", folder.filePath("resources")));
    QVERIFY(QFile::link(kSource + "/tests", folder.filePath("tests")));
    QVERIFY(folder.mkpath("path"));
    QVERIFY(QFile::link(CLEAVE_BIN_DIR "/cleave-cli", folder.filePath("path/cleave-cli")));
    writeExecutable(folder.filePath("path/torchrun"), QByteArray(kTorchrun) + kWaitForAll);
    writeExecutable(folder.filePath("path/srun"), QByteArray(kSrun) + kWaitForAll);
    QVERIFY2(m_hub.isUp(), "python3 is needed to serve models");
    m_hub.addFolder("Qwen/Qwen3-0.6B", kSource + "/tests/data/families/qwen3");
  }

  void theDocumentsHaveCommands() {
    QVERIFY(commandsOf("README.md").size() >= 15);
    QVERIFY(commandsOf("CONTRIBUTING.md").size() >= 4);
  }

  void everyCommandWorks_data() {
    QTest::addColumn<QString>("command");
    for (const QString& document : documents()) {
      for (const QString& command : commandsOf(document))
        QTest::newRow(qPrintable(document + ": " + command)) << command;
    }
  }
  void everyCommandWorks() {
    QFETCH(QString, command);
    const QString complaint = isExcepted(command) ? complaintAbout(command) : complaintOf(command);
    QVERIFY2(complaint.isEmpty(), qPrintable(complaint));
  }

  void aCommandThatFailsIsSeen_data() {
    QTest::addColumn<QString>("command");
    for (const char* command :
         {"cleave-cli plan nowhere", "cleave-cli no-such-command", "cleave-cli trace nowhere.trace --text | head",
          "build/release/bin/no-such-program", "build/release/tests/tst_no_such_test", "packaging/checks/no-such-check",
          "packaging/test --quick", "alias cleave-cli=build/release/bin/no-such-program", "packaging/run --unlisted",
          "cmake --preset unlisted"})
      QTest::newRow(command) << QString(command);
  }
  void aCommandThatFailsIsSeen() {
    QFETCH(QString, command);
    QVERIFY(!complaintOf(command).isEmpty());
  }

  void anExceptionThatCannotWorkIsSeen() {
    for (const char* command : {"packaging/test --no-such-option", "cmake --preset no-such-preset", "cmake --build x",
                                "packaging/no-such-script"})
      QVERIFY2(!complaintAbout(command).isEmpty(), command);
  }

  void everyExceptionIsInADocument() {
    QStringList all;
    for (const QString& document : documents()) all << commandsOf(document);
    for (const Exception& exception : kExceptions) QVERIFY2(all.contains(exception.command), exception.command);
  }

  /// Each line of a `cpp` block is in a source, and each line of a `text` block is in a case.
  void codeThatIsShownIsThere() {
    const QSet<QString> sources = linesBelow({"core", "views", "app"}, {"*.h", "*.cpp"}),
                        cases = linesBelow({"tests"}, {"*.txt"});
    int shown = 0;
    for (const QString& document : documents()) {
      const QSet<QString>* known = nullptr;
      for (const QString& whole : linesOf(document)) {
        const QString line = whole.trimmed();
        if (line.startsWith("```")) {
          known = line == "```cpp" ? &sources : line == "```text" ? &cases : nullptr;
        } else if (known && !line.isEmpty() && line != "...") {
          ++shown;
          QVERIFY2(known->contains(line), qPrintable(document + " has a line that no source has: " + line));
        }
      }
    }
    QVERIFY(shown > 50);
  }

  /// Messages in docs/troubleshooting.md are messages of Cleave: the parts between `…` are in the sources.
  void everyMessageIsInTheSources() {
    QString sources;
    for (const char* folder : {"core", "app", "views"}) {
      QDirIterator files(kSource + "/" + folder, {"*.h", "*.cpp"}, QDir::Files, QDirIterator::Subdirectories);
      while (files.hasNext()) {
        QFile file(files.next());
        QVERIFY(file.open(QIODevice::ReadOnly));
        sources += QString::fromUtf8(file.readAll());
      }
    }
    sources.remove(QRegularExpression("\"\\s*\\n\\s*\""));  // adjacent literals are one
    static const QRegularExpression kRow("^\\| `([^`]+)` \\|");
    int messages = 0;
    for (const QString& line : linesOf("docs/troubleshooting.md")) {
      const auto row = kRow.match(line);
      if (!row.hasMatch()) continue;
      ++messages;
      for (const QString& part : row.captured(1).split(QString::fromUtf8("…")))
        QVERIFY2(sources.contains(part.trimmed()), qPrintable(line));
    }
    QVERIFY(messages > 20);
  }

  /// The table of rooms names existing folders and files.
  void everyRoomIsThere() {
    static const QRegularExpression kRow("^\\| `([a-z_/{},]+)` \\|.*\\| (.*) \\|$"), kName("`([^`]+)`");
    int rooms = 0;
    for (const QString& line : linesOf("docs/architecture.md")) {
      const auto row = kRow.match(line);
      if (!row.hasMatch()) continue;
      const QStringList folders = foldersOf(row.captured(1));
      rooms += static_cast<int>(folders.size());
      for (const QString& folder : folders) QVERIFY2(QFileInfo(kSource + "/" + folder).isDir(), qPrintable(folder));
      auto names = kName.globalMatch(row.captured(2));
      QVERIFY2(names.hasNext(), qPrintable(line));
      while (names.hasNext()) {
        const QString file = names.next().captured(1);
        const bool isThere = std::ranges::any_of(
            folders, [&](const QString& folder) { return QFileInfo::exists(kSource + "/" + folder + "/" + file); });
        QVERIFY2(isThere, qPrintable(file));
      }
    }
    QVERIFY(rooms > 20);
  }

  /// Files and pictures that a document links exist.
  void everyLinkLeadsSomewhere() {
    static const QRegularExpression kLink("\\]\\(([^)#]+)(#[^)]*)?\\)");
    int links = 0;
    for (const QString& document : documents()) {
      auto found = kLink.globalMatch(proseOf(document));
      while (found.hasNext()) {
        const QString target = found.next().captured(1);
        if (target.startsWith("http")) continue;
        ++links;
        QVERIFY2(QFileInfo::exists(QFileInfo(kSource + "/" + document).dir().filePath(target)),
                 qPrintable(document + ": " + target));
      }
    }
    QVERIFY(links > 5);
  }

 private:
  static bool isExcepted(const QString& command) {
    return std::any_of(std::begin(kExceptions), std::end(kExceptions),
                       [&](const Exception& exception) { return command == exception.command; });
  }

  /// Runs the command; empty if it works.
  QString complaintOf(QString command) const {
    if (command.startsWith("alias ")) {
      const QString program = command.section('=', 1);
      return QFileInfo(m_folder.filePath(program)).isExecutable() ? "" : program + " is not executable";
    }
    if (command.startsWith("cmake ") || command.startsWith("ctest ") || command.startsWith("packaging/"))
      return "this command builds: add it to kExceptions with the check that runs it";
    // All benchmarks take minutes, and another test runs each once. CTest runs the tests.
    static const QRegularExpression kTest("build/release/tests/\\w+$");
    if (command == "build/release/bin/cleave-bench") command += " --list";
    if (command.contains(kTest)) command += " -functions";
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("PATH", m_folder.filePath("path") + ":" + environment.value("PATH"));
    environment.insert("HF_ENDPOINT", m_hub.endpoint());
    environment.insert("HF_HUB_CACHE", m_folder.filePath("hub"));
    environment.insert("MASTER_PORT", QString::number(freePort()));
    process.setProcessEnvironment(environment);
    process.setWorkingDirectory(m_folder.path());
    process.start("bash", {"-c", command});
    process.closeWriteChannel();
    const bool hasEnded = process.waitForFinished(200'000);
    const QString said = QString::fromUtf8(process.readAllStandardError());
    const QString printed = QString::fromUtf8(process.readAllStandardOutput().right(2000));  // tests fail there
    if (!hasEnded) {
      process.kill();
      process.waitForFinished();
      return "does not end: " + said + printed;
    }
    if (process.exitStatus() != QProcess::NormalExit || process.exitCode() != 0)
      return QString("exit code %1: %2").arg(process.exitCode()).arg(said + printed);
    return said.contains("cleave-cli: ") || said.contains("cleave-rank: ") ? said
                                                                           : "";  // `| head` has its own exit code
  }

  /// Checks a command of the build without running it.
  static QString complaintAbout(const QString& command) {
    return command.startsWith("packaging/") ? complaintAboutScript(command) : complaintAboutPresets(command);
  }

  static QString complaintAboutScript(const QString& command) {
    const QString path = kSource + "/" + command.section(' ', 0, 0);
    if (!QFileInfo(path).isExecutable()) return path + " is not executable";
    QFile script(path);
    if (!script.open(QIODevice::ReadOnly)) return path + " cannot be read";
    const QByteArray text = script.readAll();
    if (text.startsWith("#!/usr/bin/env bash")) {
      QProcess process;
      process.start("bash", {"-n", path});
      if (!process.waitForFinished(kPatience) || process.exitCode() != 0)
        return QString::fromUtf8(process.readAllStandardError());
    }
    for (const QString& option : command.split(' ').mid(1)) {
      if (!text.contains(option.toUtf8())) return path + " has no option " + option;
    }
    return {};
  }

  static QString complaintAboutPresets(const QString& command) {
    QFile file(kSource + "/CMakePresets.json");
    if (!file.open(QIODevice::ReadOnly)) return "no CMakePresets.json";
    const QByteArray presets = file.readAll();
    static const QRegularExpression kPreset("--preset (\\S+)");
    auto matches = kPreset.globalMatch(command);
    if (!matches.hasNext()) return "names no preset";
    while (matches.hasNext()) {
      const QString name = matches.next().captured(1);
      if (!presets.contains(QString("\"name\": \"%1\"").arg(name).toUtf8())) return "no preset " + name;
    }
    return {};
  }

  HubServer m_hub;
  QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestCliDocuments)
#include "tst_cli_documents.moc"
