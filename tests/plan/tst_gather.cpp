#include "graph/graph_builder.h"
#include "plan/build/gather.h"

#include "graph/operators.h"
#include "plan/plan.h"

#include <QTest>

#include <numeric>

using namespace cleave;
using graph::Argument;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;
using rules::Placement;

namespace {

/// A tensor of integers, row-major.
struct Tensor {
  Shape shape;
  std::vector<std::int64_t> data;
};

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), std::int64_t{1}, std::multiplies<>());
}

Tensor concatenated(const std::vector<Tensor>& parts, std::size_t dim) {
  Tensor result{parts[0].shape, {}};
  result.shape[dim] = 0;
  for (const Tensor& part : parts) result.shape[dim] += part.shape[dim];
  const std::int64_t outer = product(result.shape, 0, dim);
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const Tensor& part : parts) {
      const std::int64_t chunk = product(part.shape, dim, part.shape.size());
      result.data.insert(result.data.end(), part.data.begin() + i * chunk, part.data.begin() + (i + 1) * chunk);
    }
  }
  return result;
}

Tensor sliced(const Tensor& x, std::size_t dim, std::int64_t start, std::int64_t end) {
  Tensor result{x.shape, {}};
  result.shape[dim] = end - start;
  const std::int64_t inner = product(x.shape, dim + 1, x.shape.size());
  for (std::int64_t i = 0; i < product(x.shape, 0, dim); ++i) {
    const auto row = x.data.begin() + i * x.shape[dim] * inner;
    result.data.insert(result.data.end(), row + start * inner, row + end * inner);
  }
  return result;
}

/// The part of one rank, from the ranges of the placement. Padding is -1.
Tensor partOf(const Tensor& whole, const Placement& placement, int ranks, int rank) {
  const auto first = static_cast<std::size_t>(placement.firstDim()),
             last = static_cast<std::size_t>(placement.lastDim());
  Tensor flat = whole;
  flat.shape.assign(whole.shape.begin(), whole.shape.begin() + placement.firstDim());
  flat.shape.push_back(product(whole.shape, first, last + 1));
  flat.shape.insert(flat.shape.end(), whole.shape.begin() + placement.lastDim() + 1, whole.shape.end());
  const Shape local = *placement.localShape(whole.shape, ranks);
  std::vector<Tensor> pieces;
  std::int64_t length = 0;
  for (const rules::Range& range : placement.ranges(whole.shape, ranks, rank)) {
    pieces.push_back(sliced(flat, first, range.start, range.start + range.length));
    length += range.length;
  }
  if (const std::int64_t padding = product(local, first, last + 1) - length; padding > 0) {
    Tensor filler{flat.shape, {}};
    filler.shape[first] = padding;
    filler.data.assign(static_cast<std::size_t>(product(filler.shape, 0, filler.shape.size())), -1);
    pieces.push_back(filler);
  }
  return {local, concatenated(pieces, first).data};
}

/// Runs the calls that addGather adds on all ranks, and returns the result of rank 0.
Tensor gathered(const Tensor& whole, const Placement& placement, int ranks) {
  graph::GraphBuilder builder;
  const ValueId input = builder.addInput("part", {graph::DType::Int64, *placement.localShape(whole.shape, ranks)});
  const auto append = [&](std::string_view op, std::vector<Argument> args, TensorType type) {
    return builder.addCall(op, std::move(args), {std::move(type)})[0];
  };
  const ValueId output =
      plan::addGather(builder.current(), append, input, placement, {graph::DType::Int64, whole.shape}, ranks);
  builder.addOutput("whole", output);
  const graph::Graph program = *std::move(builder).finish();

  std::vector<std::vector<Tensor>> held(program.values.size(), std::vector<Tensor>(static_cast<std::size_t>(ranks)));
  for (int rank = 0; rank < ranks; ++rank)
    held[input.index()][static_cast<std::size_t>(rank)] = partOf(whole, placement, ranks, rank);
  for (const graph::Node& node : program.nodes) {
    if (node.kind != graph::NodeKind::Call) continue;
    const std::string& op = program.opName(node);
    const auto integer = [&](std::size_t i) { return std::get<std::int64_t>(node.args[i]); };
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
      Tensor& result = held[node.results[0].index()][rank];
      if (op == "aten::cat") {
        std::vector<Tensor> parts;
        for (ValueId part : std::get<graph::ValueList>(node.args[0])) parts.push_back(held[part.index()][rank]);
        result = concatenated(parts, static_cast<std::size_t>(integer(1)));
        continue;
      }
      const auto& operands = held[std::get<ValueId>(node.args[0]).index()];
      if (op == graph::kAllGather) result = concatenated(operands, static_cast<std::size_t>(integer(1)));
      if (op == "aten::slice.Tensor")
        result = sliced(operands[rank], static_cast<std::size_t>(integer(1)), integer(2), integer(3));
      if (op == "aten::reshape") result = {std::get<Shape>(node.args[1]), operands[rank].data};
    }
    for (const Tensor& tensor : held[node.results[0].index()]) {
      if (tensor.shape != program.shapeOf(node.results[0])) qFatal("%s: wrong shape of the result", op.c_str());
    }
  }
  return held[output.index()][0];
}

}  // namespace

class TestGather : public QObject {
  Q_OBJECT
 private slots:
  void restoresTheFullTensor_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<QList<int>>("shape");
    QTest::addColumn<int>("ranks");
    QTest::newRow("first dimension") << "S(0)" << QList<int>{8, 3} << 4;
    QTest::newRow("inner dimension") << "S(1)" << QList<int>{2, 8, 3} << 4;
    QTest::newRow("replicas") << "S(1,x2)" << QList<int>{2, 4, 3} << 4;
    QTest::newRow("all replicas") << "S(1,x4)" << QList<int>{2, 5} << 4;
    QTest::newRow("three blocks") << "S(1,b3)" << QList<int>{2, 24} << 4;
    QTest::newRow("blocks of a fused projection") << "S(1,b[8,4,4])" << QList<int>{2, 16, 3} << 4;
    QTest::newRow("a block with replicas") << "S(0,b[8,2/x2])" << QList<int>{10, 2} << 4;
    QTest::newRow("padding") << "S(0,pad 3)" << QList<int>{5, 2} << 4;
    QTest::newRow("padding that fills a rank") << "S(1,pad 2)" << QList<int>{2, 6} << 4;
    QTest::newRow("joint, outer divides") << "S(1:2)" << QList<int>{2, 4, 3, 2} << 2;
    QTest::newRow("joint, inner divides") << "S(1:2)" << QList<int>{2, 2, 6, 2} << 4;
    QTest::newRow("joint with replicas") << "S(0:1,x2)" << QList<int>{2, 3} << 4;
  }
  void restoresTheFullTensor() {
    QFETCH(QString, placement);
    QFETCH(QList<int>, shape);
    QFETCH(int, ranks);
    Tensor whole{Shape(shape.begin(), shape.end()), {}};
    whole.data.resize(static_cast<std::size_t>(product(whole.shape, 0, whole.shape.size())));
    std::iota(whole.data.begin(), whole.data.end(), 0);
    const auto parsed = Placement::parse(placement.toStdString());
    QVERIFY(parsed && parsed->localShape(whole.shape, ranks));
    const Tensor result = gathered(whole, *parsed, ranks);
    QCOMPARE(result.shape, whole.shape);
    QCOMPARE(result.data, whole.data);
  }
};

QTEST_APPLESS_MAIN(TestGather)
#include "tst_gather.moc"
