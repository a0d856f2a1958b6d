/// Digests of the parts of a value add up to the digest of the full value, for every placement. A difference in the
/// value changes them by its own size.
#include "formats/safetensors.h"
#include "libtorch/rank/execute/value_watcher.h"
#include "tests/support/cases.h"
#include "tests/support/need.h"
#include "tests/support/parts.h"
#include "tests/support/seeds.h"

#include <ATen/ATen.h>

#include <QTemporaryDir>
#include <QTest>

#include <array>
#include <cmath>

using namespace cleave;
using namespace cleave::torch_rank;
using rules::Placement;

namespace {

using Digest = std::array<double, program::kDigestNumbers>;

graph::Graph graphOf(const graph::Shape& shape) {
  return test::need(graph::parseGraph(
      fmt::format("x: {} = input\nreturn y=x\n", graph::toText(graph::TensorType{graph::DType::Float32, shape}))));
}

Digest digestOf(const at::Tensor& whole, const Placement& placement, int ranks, int rank) {
  const graph::Shape shape = whole.sizes().vec();
  const graph::Graph graph = graphOf(*placement.localShape(shape, ranks));
  auto watcher = test::need(ValueWatcher::make(graph, {{"x", shape, placement, false}}, rank, ranks));
  watcher.see(graph.findValue("x"), test::partOf(whole, placement, ranks, rank));
  const QTemporaryDir folder;
  const fs::path path = (folder.path() + "/seen").toStdString();
  if (const auto written = watcher.write(path); !written) qFatal("%s", written.error().message.c_str());
  const auto file = test::need(formats::SafetensorsFile::open(path));
  Digest digest{};
  if (!file.read(*file.find("digests"), 0, std::as_writable_bytes(std::span(digest)))) qFatal("no digest");
  return digest;
}

Digest sumOf(const at::Tensor& whole, const Placement& placement, int ranks) {
  Digest sum{};
  for (int rank = 0; rank < ranks; ++rank) {
    const Digest part = digestOf(whole, placement, ranks, rank);
    for (std::size_t i = 0; i < program::kLargest; ++i) sum[i] += part[i];
    sum[program::kLargest] = std::max(sum[program::kLargest], part[program::kLargest]);
  }
  return sum;
}

}  // namespace

class TestValueWatcher : public QObject {
  Q_OBJECT
 private slots:
  void partsAddUpToTheWhole_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<QList<qint64>>("sizes");
    const auto add = [](const char* placement, const QList<qint64>& sizes) {
      QTest::newRow(placement) << QString(placement) << sizes;
    };
    add("S(0)", {8, 3});
    add("S(1)", {2, 12, 5});
    add("S(2)", {2, 3, 4});
    add("S(1,x2)", {3, 8, 2});
    add("S(0,x4)", {8});
    add("S(1,b[8,4/x2,4/x4])", {3, 16, 2});
    add("S(1,b3)", {2, 24});
    add("S(0:1)", {2, 6, 3});
    add("S(1:2)", {5, 2, 6});
    add("S(0,pad 3)", {13, 4});
    add("S(1,pad 1)", {2, 7});
  }
  void partsAddUpToTheWhole() {
    QFETCH(QString, placement);
    QFETCH(QList<qint64>, sizes);
    const auto parsed = Placement::parse(placement.toStdString());
    QVERIFY(parsed);
    for (const std::uint64_t seed : test::Seeds(5)) {
      at::manual_seed(seed);
      at::Tensor whole = at::randn(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
      if (seed % 2 == 0) whole.view(-1)[static_cast<std::int64_t>(seed) % whole.numel()] = std::nan("");
      const Digest expected = digestOf(whole, Placement(), 4, 0);
      const Digest sum = sumOf(whole, *parsed, 4);
      for (std::size_t i = 0; i < sum.size(); ++i)
        QVERIFY2(std::abs(sum[i] - expected[i]) < 1e-9 * (1 + std::abs(expected[i])),
                 qPrintable(QString("number %1: %2, not %3").arg(i).arg(sum[i]).arg(expected[i])));
      QCOMPARE(expected[program::kNotFinite], seed % 2 == 0 ? 1.0 : 0.0);
    }
  }

  /// The projections differ by about the norm of the difference, for any difference, and never by zero.
  void aDifferenceShows() {
    for (const std::uint64_t seed : test::Seeds(40)) {
      at::manual_seed(seed);
      const at::Tensor whole = at::randn({4, 32, 24});
      at::Tensor other = whole.clone();
      const bool isOne = seed % 2 == 0;
      if (isOne) {
        other.view(-1)[at::randint(other.numel(), {1}).item<std::int64_t>()] += 1;
      } else {
        other.narrow(2, 0, 12).copy_(whole.narrow(2, 12, 12));  // halves taken for each other
      }
      const double norm = (whole - other).norm().item<double>();
      const Digest a = digestOf(whole, Placement(), 1, 0), b = digestOf(other, Placement(), 1, 0);
      double most = 0;
      for (std::size_t i = 0; i < program::kProjections; ++i) most = std::max(most, std::abs(a[i] - b[i]));
      QVERIFY2(most > 0.1 * norm && most < 20 * norm, qPrintable(QString("%1 of %2").arg(most).arg(norm)));
    }
  }

  void refusesWhatTheProgramDoesNotHave() {
    const graph::Graph graph = graphOf({4, 3});
    const auto unknown = ValueWatcher::make(graph, {{"y", {8, 3}, *Placement::parse("S(0)"), false}}, 0, 2);
    QVERIFY(!unknown && unknown.error().message == "The program has no value y.");
    const auto other = ValueWatcher::make(graph, {{"x", {6, 3}, *Placement::parse("S(0)"), false}}, 0, 2);
    QVERIFY(!other && other.error().code == ErrorCode::BadInput);
  }
};

QTEST_APPLESS_MAIN(TestValueWatcher)
#include "tst_value_watcher.moc"
