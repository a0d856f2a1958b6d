#include <QTest>

#include "formats/zip_archive.h"
#include "tests/formats/folder_builder.h"
#include "tests/support/exported_archive.h"
#include "tests/support/need.h"

using namespace cleave;
using namespace cleave::formats;
using cleave::test::need;
using cleave::test::ZipBuilder;

namespace {

ZipBuilder two() { return ZipBuilder().add("a/one", "first").add("a/two", std::string(1000, 'x')); }

QString refusal(const ZipBuilder& zip) {
  const auto archive = ZipArchive::inMemory(zip.bytes(), "x.pt2");
  return archive ? QString("accepted") : QString::fromStdString(archive.error().message);
}

}  // namespace

class ZipArchiveTest : public QObject {
  Q_OBJECT
 private slots:
  void findsTheBytesOfEachEntryInTheFile() {
    const test::TemporaryFolder folder;
    const std::string bytes = two().bytes();
    const auto archive = need(ZipArchive::open(folder.write("x.pt2", bytes)));
    QCOMPARE(archive.entries().size(), 2u);
    const ZipEntry* first = archive.find("a/one");
    QVERIFY(first && !archive.find("one"));
    QCOMPARE(bytes.substr(static_cast<std::size_t>(first->offset), 5), std::string("first"));
    QCOMPARE(need(archive.text(*first, 5)), std::string("first"));
    QCOMPARE(archive.bytesRead(), std::int64_t{5});
    QVERIFY(!archive.text(*first, 4));
    std::string part(3, '\0');
    QVERIFY(archive.read(*first, 2, std::as_writable_bytes(std::span(part))));
    QCOMPARE(part, std::string("rst"));
  }

  void readsWhatTorchWrites() {
    const auto archive = need(ZipArchive::open(fs::path(CLEAVE_TEST_DATA) / "exported/llama.pt2"));
    QVERIFY(archive.entries().size() > 20);
    QCOMPARE(need(archive.text(*archive.find("llama/byteorder"), 16)), std::string("little"));
  }

  void anEmptyArchiveHasNoEntries() {
    QVERIFY(need(ZipArchive::inMemory(ZipBuilder().bytes(), "x.pt2")).entries().empty());
  }

  void refusesWhatItCannotReadInPlace_data() {
    QTest::addColumn<int>("flags");
    QTest::addColumn<int>("method");
    QTest::addColumn<QString>("words");
    QTest::newRow("compressed") << 0x0800 << 8 << "is compressed (method 8)";
    QTest::newRow("encrypted") << 0x0801 << 0 << "is encrypted";
    QTest::newRow("hidden") << 0x2000 << 0 << "is encrypted";
  }
  void refusesWhatItCannotReadInPlace() {
    QFETCH(const int, flags);
    QFETCH(const int, method);
    QFETCH(const QString, words);
    ZipBuilder zip = two();
    zip.entries[1].flags = static_cast<std::uint16_t>(flags);
    zip.entries[1].method = static_cast<std::uint16_t>(method);
    const QString sentence = refusal(zip);
    QVERIFY2(sentence.contains(words) && sentence.contains("a/two") && sentence.startsWith("x.pt2: "),
             qPrintable(sentence));
  }

  void refusesFalseSizes_data() {
    QTest::addColumn<int>("lie");
    QTest::addColumn<QString>("words");
    QTest::newRow("the same name twice") << 0 << "two zip entries have the name \"a/one\"";
    QTest::newRow("another name in its own header") << 1 << "is named \"a/xxx\" in its own header";
    QTest::newRow("more bytes than the file") << 2 << "beyond the end of the file";
    QTest::newRow("bytes of the next entry") << 3 << "shares bytes with \"a/one\"";
    QTest::newRow("a header after the end") << 4 << "beyond the end of the file";
    QTest::newRow("a header in the middle of nothing") << 5 << "contradicts the archive's directory";
    QTest::newRow("no name") << 6 << "has a name that is not UTF-8";
    QTest::newRow("a name that is not text") << 7 << "has a name that is not UTF-8";
  }
  void refusesFalseSizes() {
    QFETCH(const int, lie);
    QFETCH(const QString, words);
    ZipBuilder zip = two();
    if (lie == 0) zip.entries[1].name = "a/one";
    if (lie == 1) zip.entries[1].localName = "a/xxx";
    if (lie == 2) zip.entries[1].claimed = 1 << 20;
    if (lie == 3) zip.entries[0].claimed = 500;
    if (lie == 4) zip.entries[1].header = 1 << 20;
    if (lie == 5) zip.entries[1].header = 3;
    if (lie == 6) zip.entries[1].name = "";
    if (lie == 7) zip.entries[1].name = "a/\xff";
    const QString sentence = refusal(zip);
    QVERIFY2(sentence.contains(words), qPrintable(sentence));
  }

  void refusesEveryCutFile() {
    const std::string whole = two().bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const auto archive = ZipArchive::inMemory(whole.substr(0, length), "x.pt2");
      QVERIFY2(!archive, qPrintable(QString("accepted with %1 bytes").arg(length)));
      QCOMPARE(archive.error().code, ErrorCode::BadInput);
    }
  }
};

QTEST_GUILESS_MAIN(ZipArchiveTest)
#include "tst_zip_archive.moc"
