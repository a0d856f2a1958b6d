// Names that may have been meant.
#include "base/edit_distance.h"

#include <QTest>

using namespace cleave;

class TestEditDistance : public QObject {
  Q_OBJECT
 private slots:
  void countsLetters() {
    QCOMPARE(editDistance("solve", "solve"), std::size_t(0));
    QCOMPARE(editDistance("slove", "solve"), std::size_t(2));
    QCOMPARE(editDistance("", "run"), std::size_t(3));
    QCOMPARE(editDistance("run", ""), std::size_t(3));
    QCOMPARE(editDistance("kitten", "sitting"), std::size_t(3));
    QCOMPARE(editDistance("kitten", "sitting", 2), std::size_t(2));
  }

  void findsTheNearestName() {
    const std::vector<std::string> names{"solve", "step", "stop", "shot", "why-not"};
    QCOMPARE(nearestName("slove", names), std::string("solve"));  // two of five letters
    QCOMPARE(nearestName("slowe", names), std::string());         // three
    QCOMPARE(nearestName("solv", names), std::string("solve"));
    QCOMPARE(nearestName("stap", names), std::string("step"));  // the first of two
    QCOMPARE(nearestName("whynot", names), std::string("why-not"));
    QCOMPARE(nearestName("frobnicate", names), std::string());
    QCOMPARE(nearestName("", names), std::string());
    QCOMPARE(nearestName("solve", {}), std::string());
  }
};

QTEST_GUILESS_MAIN(TestEditDistance)
#include "tst_edit_distance.moc"
