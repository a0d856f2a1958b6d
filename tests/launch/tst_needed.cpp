/// Only libcleave_nccl.so may link CUDA: checks each program's direct NEEDED entries in its ELF file.
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTest>

class NeededTest : public QObject {
  Q_OBJECT

  static QStringList neededBy(const QString& file) {
    QProcess readelf;
    readelf.start("readelf", {"--dynamic", "--wide", file});
    if (!readelf.waitForFinished(60'000) || readelf.exitCode() != 0) return {};
    QStringList result;
    for (const QString& line : QString::fromUtf8(readelf.readAllStandardOutput()).split('\n')) {
      if (line.contains("(NEEDED)")) result << line.section('[', 1).section(']', 0, 0);
    }
    return result;
  }

 private slots:
  void programsDoNotLinkCuda_data() {
    QTest::addColumn<QString>("program");
    for (const char* program : {"cleave-rank", "cleave-cli", "cleave"}) QTest::newRow(program) << program;
  }
  void programsDoNotLinkCuda() {
    QFETCH(QString, program);
    const QString file = QString(CLEAVE_BIN_DIR "/") + program;
    if (!QFile::exists(file)) QSKIP("not built");
    if (QStandardPaths::findExecutable("readelf").isEmpty()) QSKIP("readelf is not installed");
    const QStringList needed = neededBy(file);
    QVERIFY2(!needed.isEmpty(), "readelf named no libraries");
    for (const QString& library : needed) {
      for (const char* word : {"cuda", "nccl", "cudart", "cublas", "cudnn", "cupti", "gloo"}) {
        QVERIFY2(!library.contains(word), qPrintable(program + " needs " + library));
      }
    }
  }

  /// A rank runs a plan, so its program must not contain the search.
  void ranksLinkNoSolver() {
    const QString file = QStringLiteral(CLEAVE_BIN_DIR "/cleave-rank");
    if (!QFile::exists(file)) QSKIP("not built");
    if (QStandardPaths::findExecutable("nm").isEmpty()) QSKIP("nm is not installed");
    QProcess nm;
    nm.start("nm", {"--demangle", file});
    QVERIFY(nm.waitForFinished(60'000));
    const QByteArray symbols = nm.readAllStandardOutput();
    if (!symbols.contains("cleave::torch_rank::")) QSKIP("stripped");
    for (const char* room : {"cleave::solve::", "cleave::plan::", "cleave::launch::"})
      QVERIFY2(!symbols.contains(room), room);
  }
};

QTEST_APPLESS_MAIN(NeededTest)
#include "tst_needed.moc"
