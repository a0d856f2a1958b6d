// The verdict on any safetensors file, valid or not, equals that of the reference library.
#include "formats/safetensors.h"
#include "tests/support/files_below.h"
#include "tests/support/seeds.h"

#include <QProcess>
#include <QTest>

#include <cstring>

using namespace cleave;

class TstSafetensorsReference : public QObject {
  Q_OBJECT

 private slots:
  void verdictsAreTheReferencesOnes() {
    if (test::python().isEmpty() || QProcess::execute(test::python(), {"-c", "import safetensors"}) != 0)
      QSKIP("No Python with safetensors here: packaging/setup --tests installs it");
    const int count = static_cast<int>(test::rounds(5000));
    QProcess process;
    process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    process.start(test::python(), {CLEAVE_SOURCE_DIR "/tests/tools/safetensors_verdicts.py",
                                   CLEAVE_SOURCE_DIR "/tests/fuzz/corpus/safetensors", QString::number(count), "1"});
    QVERIFY(process.waitForFinished(1'800'000));
    QCOMPARE(process.exitCode(), 0);
    const QByteArray answers = process.readAllStandardOutput();
    int read = 0, refused = 0, duplicates = 0, different = 0;
    for (qsizetype at = 0; at < answers.size();) {
      std::uint32_t length = 0;
      std::memcpy(&length, answers.constData() + at, sizeof length);
      const std::string_view content(answers.constData() + at + sizeof length, length);
      const char verdict = answers[at + static_cast<qsizetype>(sizeof length + length)];
      at += static_cast<qsizetype>(sizeof length + length + 1);
      const auto ours = formats::parseSafetensorsHeader(content, "file");
      read += verdict == 1 ? 1 : 0;
      refused += verdict == 0 ? 1 : 0;
      duplicates += verdict == 2 ? 1 : 0;
      if (ours.has_value() == (verdict == 1)) continue;
      if (++different <= 20)
        qWarning("the library %s: %s\n  Cleave: %s", verdict == 0 ? "refuses" : "reads",
                 QByteArray(content.data(), static_cast<qsizetype>(length)).toPercentEncoding(" {}[]\":,_").constData(),
                 ours ? "reads it" : ours.error().message.c_str());
    }
    qInfo(
        "%d files: %d read, %d refused, %d with a key twice or a dimension beyond 2^63 - 1, which Cleave alone refuses",
        count, read, refused, duplicates);
    QCOMPARE(read + refused + duplicates, count);
    QVERIFY(read > count / 20 && refused > count / 20);
    QCOMPARE(different, 0);
  }
};

QTEST_GUILESS_MAIN(TstSafetensorsReference)
#include "tst_safetensors_reference.moc"
