// Reuse of loaded weights by another program of the same model.
#include "libtorch/rank/weights/hand_over.h"

#include "tests/support/need.h"

#include <ATen/ops/arange.h>
#include <QTest>

using namespace cleave;
using test::need;
using torch_rank::Program;

namespace {

std::shared_ptr<const graph::Graph> parsed(const char* text) {
  return std::make_shared<const graph::Graph>(need(graph::parseGraph(text)));
}

/// The same weights in a program with two rows and one with one row.
constexpr const char* kTwoRows = R"(
x: f32[2,4] = input
b.weight: f32[3,4] = parameter
a.weight: f32[4,4] = parameter
linear_0: f32[2,4] = aten::linear(x, a.weight, None)
linear_1: f32[2,3] = aten::linear(linear_0, b.weight, None)
return y=linear_1
)";
constexpr const char* kOneRow = R"(
x: f32[1,4] = input
a.weight: f32[4,4] = parameter
b.weight: f32[3,4] = parameter
linear_0: f32[1,4] = aten::linear(x, a.weight, None)
linear_1: f32[1,3] = aten::linear(linear_0, b.weight, None)
return y=linear_1
)";

program::ParameterShards shards(const std::string& name, std::int64_t rows, rules::Placement placement) {
  program::ParameterShards made;
  made.name = name;
  made.type = {graph::DType::Float32, {rows, 4}};
  made.localShape = made.type.shape;
  made.placement = std::move(placement);
  return made;
}

program::ShardMap parameters(const rules::Placement& ofB = {}) {
  return {shards("a.weight", 4, {}), shards("b.weight", 3, ofB)};
}

Program loaded() {
  Program program = need(Program::bind(parsed(kTwoRows), at::kCPU));
  for (const auto& [name, rows] : {std::pair{"a.weight", 4}, {"b.weight", 3}}) {
    const at::Tensor weight = at::arange(rows * 4, at::kFloat).view({rows, 4});
    if (auto set = program.setTensor(program.graph().findValue(name), weight); !set)
      qFatal("%s", set.error().message.c_str());
  }
  return program;
}

}  // namespace

class TestHandOver : public QObject {
  Q_OBJECT
 private slots:
  void bothRunOnTheSameStorages() {
    const Program first = loaded();
    Program second = need(Program::bind(parsed(kOneRow), at::kCPU));
    QVERIFY(torch_rank::handOver(first, parameters(), second, parameters()));
    for (const char* name : {"a.weight", "b.weight"}) {
      QCOMPARE(second.given(second.graph().findValue(name)).const_data_ptr(),
               first.given(first.graph().findValue(name)).const_data_ptr());
    }
    const auto digest = torch_rank::digestOfStorages(first, parameters());
    QCOMPARE(torch_rank::digestOfStorages(second, parameters()), digest);
    QVERIFY(torch_rank::digestOfStorages(loaded(), parameters()) != digest);
  }

  void anotherSplitIsRefused() {
    const Program first = loaded();
    Program second = need(Program::bind(parsed(kOneRow), at::kCPU));
    const auto refused = torch_rank::handOver(first, parameters(), second, parameters(rules::Placement::split(1)));
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY(refused.error().message.starts_with("b.weight is R in the first plan and S(1) in the second"));
  }

  void parametersThatAreNotLoadedAreRefused() {
    const Program first = loaded();
    Program second = need(Program::bind(parsed(kOneRow), at::kCPU));
    const auto refused = torch_rank::handOver(first, {shards("a.weight", 4, {})}, second, parameters());
    QVERIFY(!refused);
    QVERIFY(refused.error().message.starts_with("Only the second plan has a parameter b.weight"));
  }
};

QTEST_APPLESS_MAIN(TestHandOver)
#include "tst_hand_over.moc"
