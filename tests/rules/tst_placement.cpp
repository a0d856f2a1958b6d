#include "rules/placement.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <map>
#include <random>

using namespace cleave;
using graph::Shape;
using rules::Block;
using rules::Placement;

namespace {

/// By hand, for each element of the split dimensions' joint index range: the number and order of ranks that have it.
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
  /// Each element is on as many ranks as its placement requires, and all ranks have equally many elements.
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
    QVERIFY(Placement().isReplicatedOn(4));
    QVERIFY(Placement::parse("S(1,x4)")->isReplicatedOn(4));
    QVERIFY(!Placement::parse("S(1,x2)")->isReplicatedOn(4));
    QVERIFY(Placement::parse("S(1,b2/x4)")->isReplicatedOn(4));
    QVERIFY(!Placement::parse("S(1,b[2/x4,4])")->isReplicatedOn(4));
  }

  void shiftsItsDimensions() {
    QCOMPARE(QString::fromStdString(Placement::parse("S(1:2,x2)")->shifted(1).text()), "S(2:3,x2)");
    QCOMPARE(QString::fromStdString(Placement().shifted(3).text()), "R");
  }
};

QTEST_APPLESS_MAIN(TstPlacement)
#include "tst_placement.moc"
