/// A rank drops the same elements of its part as an unsplit dropout.
#include "libtorch/rank/execute/dropout.h"
#include "tests/support/need.h"
#include "tests/support/parts.h"
#include "tests/support/rows.h"

#include <QTest>

#include <cmath>

using namespace cleave;
using namespace cleave::torch_rank;
using rules::Placement;

namespace {

Dropout dropoutOf(const graph::Shape& shape, double chance, std::int64_t stream = 3) {
  return {.chance = chance, .stream = stream, .shape = shape};
}

bool isSame(const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); }

/// Correlation of the masks.
double correlation(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.ne(0).to(at::kDouble).flatten(), y = b.ne(0).to(at::kDouble).flatten();
  const at::Tensor dx = x - x.mean(), dy = y - y.mean();
  return ((dx * dy).mean() / (dx.square().mean() * dy.square().mean()).sqrt()).item<double>();
}

}  // namespace

class TestDropout : public QObject {
  Q_OBJECT
 private slots:
  void partsDropTheSameAsTheWhole_data() {
    const test::Rows<QString, QList<int>, int> row("placement", "sizes", "ranks");
    row("whole", "R", QList<int>{3, 5}, 4);
    row("first dimension", "S(0)", QList<int>{8, 5}, 4);
    row("middle dimension", "S(1)", QList<int>{3, 8, 5}, 2);
    row("last dimension", "S(2)", QList<int>{3, 2, 12}, 4);
    row("replicas", "S(1,x2)", QList<int>{3, 8}, 4);
    row("blocks", "S(1,b[8,4/x2])", QList<int>{3, 12}, 4);
    row("equal blocks", "S(0,b3)", QList<int>{24, 2}, 4);
    row("joint dimensions", "S(0:1)", QList<int>{2, 4, 5}, 4);
    row("padding", "S(1,pad 2)", QList<int>{3, 10}, 4);
    row("a vector", "S(0)", QList<int>{8}, 2);
    row("more than is decided at once", "S(2)", QList<int>{2, 3, 70000}, 2);
    row("many rows", "S(1)", QList<int>{400, 20, 30}, 2);
  }
  void partsDropTheSameAsTheWhole() {
    QFETCH(QString, placement);
    QFETCH(QList<int>, sizes);
    QFETCH(int, ranks);
    const graph::Shape shape(sizes.begin(), sizes.end());
    const at::Tensor whole = at::rand(shape, at::kDouble) + 1;
    const std::uint64_t key = drawKey(7, 0);
    const at::Tensor expected = drop(whole, dropoutOf(shape, 0.4), {key});
    QVERIFY(expected.eq(0).any().item<bool>());
    const Placement split = *Placement::parse(placement.toStdString());
    for (int rank = 0; rank < ranks; ++rank) {
      Dropout own = dropoutOf(shape, 0.4);
      own.placement = split;
      own.rank = rank;
      own.ranks = ranks;
      const at::Tensor part = test::partOf(whole, split, ranks, rank);
      const at::Tensor isPadding = part.eq(test::kPadding);
      const at::Tensor wanted = test::partOf(expected, split, ranks, rank);
      QVERIFY(isSame(drop(part, own, {key}).masked_fill(isPadding, test::kPadding), wanted));
    }
  }

  void keepsTheMeanAndDropsTheRequestedFraction_data() {
    QTest::addColumn<double>("chance");
    for (double chance : {0.1, 0.5, 0.9}) QTest::addRow("%g", chance) << chance;
  }
  void keepsTheMeanAndDropsTheRequestedFraction() {
    QFETCH(double, chance);
    constexpr std::int64_t kCount = 1'000'000;
    const at::Tensor dropped = drop(at::ones({1000, 1000}), dropoutOf({1000, 1000}, chance), {drawKey(1, 0)});
    const double share = dropped.eq(0).to(at::kDouble).mean().item<double>();
    const double deviation = std::sqrt(chance * (1 - chance) / kCount);
    QVERIFY2(std::abs(share - chance) < 5 * deviation, qPrintable(QString::number(share)));
    const at::Tensor kept = dropped.masked_select(dropped.ne(0));
    QVERIFY(at::allclose(kept, at::full_like(kept, 1 / (1 - chance))));
    // Rows and columns have different masks.
    for (int dim : {0, 1}) {
      const at::Tensor shares = dropped.eq(0).to(at::kDouble).mean(dim);
      const double spread = shares.std().item<double>(), wanted = std::sqrt(chance * (1 - chance) / 1000);
      QVERIFY2(spread > 0.85 * wanted && spread < 1.15 * wanted, qPrintable(QString::number(spread / wanted)));
    }
  }

  void eachSeedPassAndDropoutDropsItsOwn() {
    const at::Tensor x = at::ones({500, 400});
    const auto dropped = [&](std::uint64_t seed, std::int64_t pass, std::int64_t stream) {
      return drop(x, dropoutOf({500, 400}, 0.5, stream), {drawKey(seed, pass)});
    };
    const at::Tensor one = dropped(0, 0, 0);
    QVERIFY(isSame(one, dropped(0, 0, 0)));
    for (const auto& [seed, pass, stream] : {std::tuple{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}}) {
      const double alike = correlation(one, dropped(seed, pass, stream));
      QVERIFY2(std::abs(alike) < 0.015, qPrintable(QString::number(alike)));
    }
  }

  void chancesAtTheEnds() {
    const at::Tensor x = at::rand({4, 6}) + 1;
    QVERIFY(isSame(drop(x, dropoutOf({4, 6}, 0), {1}), x));
    QVERIFY(isSame(drop(x, dropoutOf({4, 6}, 1), {1}), at::zeros_like(x)));
    QVERIFY(isSame(drop(at::scalar_tensor(2.0), dropoutOf({}, 1), {1}), at::scalar_tensor(0.0)));
    QCOMPARE(drop(at::ones({0, 3}), dropoutOf({0, 3}, 0.5), {1}).numel(), 0);
  }

  void gradientsExistForElementsThatWereKept() {
    const at::Tensor x = at::ones({50, 40}).requires_grad_();
    const at::Tensor dropped = drop(x, dropoutOf({50, 40}, 0.3), {drawKey(2, 5)});
    dropped.sum().backward();
    QVERIFY(isSame(x.grad(), dropped.detach()));
  }
};

QTEST_GUILESS_MAIN(TestDropout)
#include "tst_dropout.moc"
