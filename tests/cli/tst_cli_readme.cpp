/// The README's commands, taken from the README itself: what stands there works as it stands there.
#include "tests/support/cli_process.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cleave::test;

namespace {

const QString kSource = QStringLiteral(CLEAVE_SOURCE_DIR);

/// Lines of code blocks, in order: four blanks before what is a command.
QStringList commands() {
  QFile readme(kSource + "/README.md");
  if (!readme.open(QIODevice::ReadOnly)) qFatal("no README.md");
  QStringList found;
  static const QRegularExpression kCommand(
      "^ {4,}((?:cleave-cli|torchrun|alias|cmake|ctest|packaging/|build/)\\S*.*)$");
  for (const QString& line : QString::fromUtf8(readme.readAll()).split('\n')) {
    const auto match = kCommand.match(line);
    if (match.hasMatch()) found.append(match.captured(1).remove(QRegularExpression("\\s+#.*$")));
  }
  return found;
}

/// A stand-in for PyTorch's launcher, for machines that have none: the same environment for each rank.
constexpr const char* kTorchrun = R"(#!/usr/bin/env bash
while true; do
  case "$1" in
    --no-python) shift ;;
    --nproc-per-node) ranks=$2; shift 2 ;;
    *) break ;;
  esac
done
export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1
started=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &
  started+=($!)
done
code=0
for process in "${started[@]}"; do wait "$process" || code=$?; done
exit $code
)";

int freePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

void writeExecutable(const QString& path, const QByteArray& text) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("cannot write %s", qPrintable(path));
  file.setPermissions(file.permissions() | QFile::ExeOwner);
}

}  // namespace

class TestCliReadme : public QObject {
  Q_OBJECT
 private slots:
  /// A checkout as a user's: what the commands name lies where they say, what they write goes elsewhere.
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    const QDir folder(m_folder.path());
    QVERIFY(folder.mkpath("build/release"));
    QVERIFY(QFile::link(CLEAVE_BIN_DIR, folder.filePath("build/release/bin")));
    QVERIFY(QFile::link(kSource + "/resources", folder.filePath("resources")));
    QVERIFY(folder.mkpath("path"));
    QVERIFY(QFile::link(CLEAVE_BIN_DIR "/cleave-cli", folder.filePath("path/cleave-cli")));
    writeExecutable(folder.filePath("path/torchrun"), kTorchrun);
  }

  void theReadmeHasCommands() { QVERIFY(commands().size() >= 15); }

  void everyCommandWorks_data() {
    QTest::addColumn<QString>("command");
    for (const QString& command : commands()) QTest::newRow(qPrintable(command)) << command;
  }
  /// In order: one may read what another wrote.
  void everyCommandWorks() {
    QFETCH(QString, command);
    if (command.startsWith("packaging/")) return checkScript(command.section(' ', 0, 0));
    if (command.startsWith("cmake ") || command.startsWith("ctest ")) return checkPresets(command);
    if (command.startsWith("alias ")) {
      QVERIFY(QFileInfo(m_folder.filePath(command.section('=', 1))).isExecutable());
      return;
    }
    // A run of all benchmarks takes minutes; another test runs each once.
    if (command == "build/release/bin/cleave-bench") command += " --list";
    run(command);
  }

 private:
  void run(const QString& command) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("PATH", m_folder.filePath("path") + ":" + environment.value("PATH"));
    environment.insert("MASTER_PORT", QString::number(freePort()));
    process.setProcessEnvironment(environment);
    process.setWorkingDirectory(m_folder.path());
    process.start("bash", {"-c", command});
    process.closeWriteChannel();
    const bool ended = process.waitForFinished(200'000);
    const QByteArray err = process.readAllStandardError();
    if (!ended) process.kill();
    QVERIFY2(ended && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0,
             qPrintable(QString("exit code %1: %2").arg(process.exitCode()).arg(QString::fromUtf8(err))));
    QVERIFY2(!err.contains("cleave-cli:") && !err.contains("cleave-rank:"), err.constData());
  }

  static void checkScript(const QString& script) {
    const QString path = kSource + "/" + script;
    QVERIFY(QFileInfo(path).isExecutable());
    QProcess process;
    process.start("bash", {"-n", path});
    QVERIFY(process.waitForFinished() && process.exitCode() == 0);
  }

  static void checkPresets(const QString& command) {
    QFile file(kSource + "/CMakePresets.json");
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray presets = file.readAll();
    static const QRegularExpression kPreset("--preset (\\S+)");
    auto matches = kPreset.globalMatch(command);
    QVERIFY(matches.hasNext());
    while (matches.hasNext()) {
      const QString name = matches.next().captured(1);
      QVERIFY2(presets.contains(QString("\"name\": \"%1\"").arg(name).toUtf8()), qPrintable(name));
    }
  }

  QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestCliReadme)
#include "tst_cli_readme.moc"
