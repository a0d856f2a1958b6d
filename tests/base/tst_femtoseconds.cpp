#include "base/femtoseconds.h"

#include <nlohmann/json.hpp>

#include <QTest>

using namespace cleave;

class TestFemtoseconds : public QObject {
  Q_OBJECT
 private slots:
  void holdsWhatSixtyFourBitsDoNot() {
    const Femtoseconds century(Wide(3'155'760) * 1'000'000'000'000'000'000);
    QVERIFY(!century.isShort());
    QVERIFY(century + century > century);
    QVERIFY(century + century - century == century);
    QCOMPARE(static_cast<double>(century), 3.15576e24);
    QCOMPARE(toText(century), std::string("3155760000000000000000000"));
    QCOMPARE(toText(-century), std::string("-3155760000000000000000000"));
    QCOMPARE(fmt::format("{} fs", Femtoseconds(12)), std::string("12 fs"));
    QCOMPARE(toText(Femtoseconds()), std::string("0"));
  }

  void roundsToTheNearest() {
    QCOMPARE(static_cast<double>(Femtoseconds::ofSeconds(3.15576e9)), 3.15576e24);
    QVERIFY(Femtoseconds::ofSeconds(1.4e-15) == 1);
    QVERIFY(Femtoseconds::ofSeconds(1.6e-15) == 2);
    QVERIFY(Femtoseconds::ofSeconds(std::numeric_limits<double>::infinity()) > Femtoseconds::ofSeconds(1e12));
  }

  void jsonKeepsIntegersWhereReadersExpectThem() {
    using Json = nlohmann::ordered_json;
    QCOMPARE(jsonOf<Json>(Femtoseconds(1'250'000'000'000)).dump(), std::string("1250000000000"));
    QVERIFY(jsonOf<Json>(Femtoseconds::ofSeconds(1e6)).is_number_float());
  }
};

QTEST_APPLESS_MAIN(TestFemtoseconds)
#include "tst_femtoseconds.moc"
