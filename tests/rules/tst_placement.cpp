#include "rules/placement.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <map>
#include <random>
#include <unordered_set>

using namespace cleave;
using graph::Shape;
using rules::Block;
using rules::Placement;

namespace {

std::string shapeText(const std::optional<Shape>& shape) { return shape ? graph::toText(*shape) : "none"; }

/// Elements of the split dimensions' joint index range, by hand: how many ranks hold each, and in which order.
std::map<std::int64_t, int> countHolders(const Placement& p, const Shape& shape, int worldSize) {
  std::map<std::int64_t, int> holders;
  for (int rank = 0; rank < worldSize; ++rank) {
    for (const rules::Range& range : p.ranges(shape, worldSize, rank)) {
      for (std::int64_t i = 0; i < range.length; ++i) ++holders[range.start + i];
    }
  }
  return holders;
}

}  // namespace

class TstPlacement : public QObject {
  Q_OBJECT

 private slots:
  void readsAndWritesEveryForm_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("canonical");
    const std::vector<std::pair<const char*, const char*>> rows = {
        {"R", "R"},
        {"S(0)", "S(0)"},
        {"S(12)", "S(12)"},
        {" S( 1 ) ", "S(1)"},
        {"S(1,x2)", "S(1,x2)"},
        {"S(1,x1)", "S(1)"},
        {"S(1:2)", "S(1:2)"},
        {"S(1:1)", "S(1)"},
        {"S(1:3,x4)", "S(1:3,x4)"},
        {"S(2,pad 3)", "S(2,pad 3)"},
        {"S(2,pad 0)", "S(2)"},
        {"S(2,b3)", "S(2,b3)"},
        {"S(2,b3/x2)", "S(2,b3/x2)"},
        {"S(2,b[4,4,4])", "S(2,b3)"},
        {"S(2,b[4,1/x2,1/x2])", "S(2,b[4,1/x2,1/x2])"},
        {"S(2,b[4])", "S(2)"},
        {"S(2,b[4/x2])", "S(2,x2)"},
    };
    for (const auto& [text, canonical] : rows) QTest::newRow(text) << text << canonical;
  }
  void readsAndWritesEveryForm() {
    QFETCH(QString, text);
    QFETCH(QString, canonical);
    const auto p = Placement::parse(text.toStdString());
    QVERIFY(p.has_value());
    QCOMPARE(QString::fromStdString(p->text()), canonical);
    const auto again = Placement::parse(p->text());
    QVERIFY(again.has_value());
    QVERIFY(*again == *p);
    QCOMPARE(again->hash(), p->hash());
  }

  void refusesWhatIsNoPlacement_data() {
    QTest::addColumn<QString>("text");
    for (const char* text : {"",
                             "r",
                             "RR",
                             "S",
                             "S()",
                             "S(-1)",
                             "S(1",
                             "S(1))",
                             "S(2:1)",
                             "S(1,x0)",
                             "S(1,x)",
                             "S(1,b1)",
                             "S(1,b[])",
                             "S(1,b[0])",
                             "S(1,b[4,])",
                             "S(1:2,b2)",
                             "S(1:2,pad 1)",
                             "S(1,b2,x2)",
                             "S(1,y)",
                             "S(99999999999999999999)",
                             "S(1,b999999999)",
                             "S(1,pad -1)",
                             "S(1)x",
                             "P"}) {
      QTest::newRow(text) << text;
    }
  }
  void refusesWhatIsNoPlacement() {
    QFETCH(QString, text);
    QVERIFY(!Placement::parse(text.toStdString()).has_value());
  }

  void dividesShapes_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<QList<qint64>>("shape");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* p, QList<qint64> shape, int ranks, const char* expected) {
      QTest::addRow("%s of %lld dims at %d", p, static_cast<long long>(shape.size()), ranks)
          << p << shape << ranks << expected;
    };
    row("R", {3, 5}, 4, "[3, 5]");
    row("S(1)", {2, 8}, 4, "[2, 2]");
    row("S(0)", {12}, 8, "none");
    row("S(2)", {2, 8}, 2, "none");
    row("S(1,x2)", {4, 2, 8}, 4, "[4, 1, 8]");
    row("S(1,x3)", {4, 2, 8}, 4, "none");
    row("S(0,x4)", {1, 8}, 4, "[1, 8]");
    row("S(0:1)", {2, 4, 8}, 4, "[1, 2, 8]");
    row("S(0:1)", {4, 4, 8}, 4, "[1, 4, 8]");
    row("S(0:1)", {3, 4, 8}, 6, "[1, 2, 8]");
    row("S(0:1)", {6, 2, 8}, 4, "none");
    row("S(0:1)", {1, 4}, 2, "[1, 2]");
    row("S(0:2,x2)", {2, 2, 2}, 8, "[1, 1, 2]");
    row("S(0,pad 1)", {257}, 2, "[129]");
    row("S(0,pad 1)", {257}, 4, "none");
    row("S(0,b3)", {12}, 2, "[6]");
    row("S(0,b3)", {12}, 4, "[3]");
    row("S(0,b3)", {10}, 2, "none");
    row("S(0,b[4,1/x2,1/x2])", {6}, 2, "[4]");
    row("S(0,b[4,2])", {7}, 2, "none");
    row("S(0,b[5,2])", {7}, 2, "none");
  }
  void dividesShapes() {
    QFETCH(QString, placement);
    QFETCH(QList<qint64>, shape);
    QFETCH(int, ranks);
    QFETCH(QString, expected);
    const auto p = *Placement::parse(placement.toStdString());
    const Shape sizes(shape.begin(), shape.end());
    const auto local = p.localShape(sizes, ranks);
    QCOMPARE(QString::fromStdString(shapeText(local)), expected);
    QCOMPARE(p.whyNotDivisible(sizes, ranks).empty(), local.has_value());
  }

  void namesTheNumbersThatDoNotDivide() {
    QCOMPARE(QString::fromStdString(Placement::split(0).whyNotDivisible({12}, 8)), "12 does not divide by 8 ranks");
    QCOMPARE(QString::fromStdString(Placement::parse("S(0,b[4,3])")->whyNotDivisible({7}, 2)),
             "a block of 3 does not divide by 2 ranks");
    QCOMPARE(QString::fromStdString(Placement::split(3).whyNotDivisible({12}, 2)),
             "S(3) names dimension 3 of a tensor with 1 dimensions");
  }

  /// Every element is held by as many ranks as its placement says, and every rank holds as much as the others.
  void coversEachElementEvenly() {
    std::mt19937_64 random(test::seed(7));
    const auto pick = [&](std::initializer_list<int> from) { return from.begin()[random() % from.size()]; };
    const std::uint64_t rounds = test::rounds(20'000);
    std::uint64_t checked = 0;
    for (std::uint64_t left = rounds; left > 0; --left) {
      const int ranks = pick({1, 2, 3, 4, 6, 8});
      Shape shape;
      for (int d = 0; d < 3; ++d) shape.push_back(pick({1, 2, 3, 4, 6, 8, 12}));
      const int first = pick({0, 1, 2});
      const int last = std::min(2, first + pick({0, 0, 1, 2}));
      Placement p = Placement::joint(first, last);
      const std::int64_t size = shape[static_cast<std::size_t>(first)];
      if (random() % 3 == 0) p = p.withReplicas(pick({1, 2, 3, 4}));
      if (first == last && random() % 4 == 0) p = Placement::split(first).withPadding(pick({1, 2, 3, 5}));
      if (first == last && random() % 4 == 0) {
        const std::int64_t head = pick({1, 2, 3, 4});
        if (head < size) p = Placement::split(first).withBlocks({{head, pick({1, 2})}, {size - head, pick({1, 2})}});
      }
      QVERIFY(*Placement::parse(p.text()) == p);
      const auto local = p.localShape(shape, ranks);
      if (!local) continue;
      ++checked;
      std::int64_t total = 1, localTotal = 1;
      for (int d = p.firstDim(); d <= p.lastDim(); ++d) {
        total *= shape[static_cast<std::size_t>(d)];
        localTotal *= (*local)[static_cast<std::size_t>(d)];
      }
      const auto holders = countHolders(p, shape, ranks);
      QCOMPARE(static_cast<std::int64_t>(holders.size()), total);
      std::int64_t offset = 0;
      for (const Block& block : p.blocksOf(total)) {
        for (std::int64_t e = offset; e < offset + block.size; ++e) QCOMPARE(holders.at(e), block.replicas);
        offset += block.size;
      }
      for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t held = 0;
        for (const rules::Range& range : p.ranges(shape, ranks, rank)) held += range.length;
        QVERIFY2(p.padding() > 0 ? held <= localTotal : held == localTotal, p.text().c_str());
      }
    }
    QVERIFY(rounds < 100 || 10 * checked > rounds);
  }

  void knowsWhatEveryRankHoldsInFull() {
    QVERIFY(Placement().isWholeOn(4));
    QVERIFY(Placement::parse("S(1,x4)")->isWholeOn(4));
    QVERIFY(!Placement::parse("S(1,x2)")->isWholeOn(4));
    QVERIFY(Placement::parse("S(1,b2/x4)")->isWholeOn(4));
    QVERIFY(!Placement::parse("S(1,b[2/x4,4])")->isWholeOn(4));
  }

  void shiftsItsDimensions() {
    QCOMPARE(QString::fromStdString(Placement::parse("S(1:2,x2)")->shifted(1).text()), "S(2:3,x2)");
    QCOMPARE(QString::fromStdString(Placement().shifted(3).text()), "R");
  }
};

QTEST_APPLESS_MAIN(TstPlacement)
#include "tst_placement.moc"
