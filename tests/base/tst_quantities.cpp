#include "base/quantities.h"

#include <QTest>

#include <limits>

using namespace cleave;

class TestQuantities : public QObject {
  Q_OBJECT
 private slots:
  void countsOfOneAreSingular() {
    QCOMPARE(counted(1, "rank"), std::string("1 rank"));
    QCOMPARE(counted(2, "rank"), std::string("2 ranks"));
    QCOMPARE(counted(0, "try", "tries"), std::string("0 tries"));
    QCOMPARE(counted(1, "try", "tries"), std::string("1 try"));
  }

  void bytesHaveThreeDigitsAndAUnit_data() {
    QTest::addColumn<qint64>("bytes");
    QTest::addColumn<QString>("text");
    const auto row = [](qint64 bytes, const char* text) { QTest::newRow(text) << bytes << QString::fromLatin1(text); };
    row(0, "0 B");
    row(1023, "1023 B");
    row(1024, "1 KiB");
    row(-3584, "-3.50 KiB");
    row(10230, "9.99 KiB");
    row(10240, "10 KiB");
    row(112'500'000, "107 MiB");
    row((1ll << 20) - 1, "1.00 MiB");  // not "1024 KiB"
    row(64ll << 20, "64 MiB");
    row((5ll << 30) / 4, "1.25 GiB");
    row(80ll << 30, "80 GiB");
    row(3ll << 50, "3 PiB");
    row(std::numeric_limits<qint64>::max(), "8 EiB");
    row(std::numeric_limits<qint64>::min(), "-8 EiB");
  }
  void bytesHaveThreeDigitsAndAUnit() {
    QFETCH(qint64, bytes);
    QFETCH(QString, text);
    QCOMPARE(QString::fromStdString(bytesText(bytes)), text);
  }
};

QTEST_GUILESS_MAIN(TestQuantities)
#include "tst_quantities.moc"
