#include <QTest>

#include "base/throttle.h"

using namespace cleave;
using namespace std::chrono_literals;

class TestThrottle : public QObject {
  Q_OBJECT
 private slots:
  void isDueAtOnceAndThenOnceAPeriod() {
    Throttle throttle(50ms);
    const Throttle::Time start{};
    QVERIFY(throttle.isDue(start));
    QVERIFY(!throttle.isDue(start));
    QVERIFY(!throttle.isDue(start + 49ms));
    QVERIFY(throttle.isDue(start + 50ms));
    // The period counts from the last true answer.
    QVERIFY(throttle.isDue(start + 180ms));
    QVERIFY(!throttle.isDue(start + 229ms));
    QVERIFY(throttle.isDue(start + 230ms));
  }

  void mayBeginInTheMiddleOfAPeriod() {
    const Throttle::Time start{};
    Throttle throttle(50ms, start);
    QVERIFY(!throttle.isDue(start + 49ms));
    QVERIFY(throttle.isDue(start + 50ms));
  }
};

QTEST_APPLESS_MAIN(TestThrottle)
#include "tst_throttle.moc"
