#include "base/checked.h"
#include "base/files.h"

#include <QTemporaryDir>
#include <QTest>

#include <sys/stat.h>

#include <array>
#include <limits>

using namespace cleave;

class TestFiles : public QObject {
  Q_OBJECT
 private slots:
  void writesAreWholeOrNothing() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "plan.json";
    QVERIFY(writeFileAtomically(file, "one"));
    QVERIFY(writeFileAtomically(file, "two"));
    QCOMPARE(*readTextFile(file, 100), std::string("two"));
    QCOMPARE(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()), std::ptrdiff_t{1});
    const auto refused = writeFileAtomically(file.parent_path() / "absent" / "x", "three");
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Environment);
  }

  void sizesAreCheckedBeforeReading() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "big";
    QVERIFY(writeFileAtomically(file, std::string(1000, 'x')));
    const auto text = readTextFile(file, 999);
    QVERIFY(!text);
    QVERIFY(text.error().message.find("1000 bytes; at most 999") != std::string::npos);
  }

  void foldersPipesAndMissingFilesAreOneSentence() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    QVERIFY(::mkfifo((base / "pipe").c_str(), 0600) == 0);
    for (const fs::path& file : {base, base / "pipe", base / "absent"}) {
      const auto text = readTextFile(file, 100);
      QVERIFY(!text);
      QCOMPARE(text.error().code, ErrorCode::BadInput);
      QVERIFY(text.error().message.find(file.string()) != std::string::npos);
    }
  }

  void aFileThatShrankIsNamed() {
    QTemporaryDir folder;
    const fs::path file = fs::path(folder.path().toStdString()) / "short";
    QVERIFY(writeFileAtomically(file, "abc"));
    const auto opened = RandomAccessFile::open(file);
    QVERIFY(opened.has_value());
    std::array<std::byte, 8> buffer;
    const auto read = opened->readAt(1, buffer);
    QVERIFY(!read);
    QVERIFY(read.error().message.find("truncated") != std::string::npos);
  }

  void knowsWhatLiesInsideAFolder() {
    QTemporaryDir folder;
    const fs::path base = folder.path().toStdString();
    fs::create_directories(base / "model");
    fs::create_symlink(base, base / "model" / "up");
    QVERIFY(isInside(base / "model", base / "model" / "a.safetensors"));
    QVERIFY(!isInside(base / "model", base / "model" / ".." / "b"));
    QVERIFY(!isInside(base / "model", base / "model" / "up" / "b"));
    QVERIFY(!isInside(base / "model", base / "model2"));
  }

  void arithmeticAnswersNothingOnOverflow() {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    QVERIFY(!checkedAdd(kMax, 1));
    QVERIFY(!checkedMul(kMax / 2, 3));
    QCOMPARE(checkedProduct(std::vector<std::int64_t>{}), std::optional<std::int64_t>(1));
    QVERIFY(!checkedProduct(std::vector<std::int64_t>{2, -1}));
    QVERIFY(!checkedProduct(std::vector<std::int64_t>{kMax, kMax, 0}));
  }
};

QTEST_APPLESS_MAIN(TestFiles)
#include "tst_files.moc"
