// Small programs through the recorder: functionalization, leaves, origins of operators without effect, core ATen.
#include "libtorch/capture/capture.h"
#include "libtorch/capture/recorder.h"

#include <ATen/ATen.h>
#include <ATen/core/enum_tag.h>
#include <QTest>

#include <functional>

using namespace cleave;
using torch_capture::RecordedGraphs;
using torch_capture::Recorder;

namespace {

using Program = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight)>;

/// Records a program of x: f32[2,4] and weight: f32[4,4].
RecordedGraphs record(const Program& program) {
  Recorder recorder("program");
  const at::Tensor x = recorder.addInput("x", {graph::DType::Float32, {2, 4}});
  const at::Tensor weight = recorder.addParameter("weight", {graph::DType::Float32, {4, 4}});
  {
    const Recorder::Recording recording(recorder);
    recorder.addOutput("y", program(x, weight));
  }
  auto graphs = std::move(recorder).finish();
  if (!graphs) qFatal("%s", graphs.error().message.c_str());
  return std::move(*graphs);
}

std::string textOf(const graph::Graph& graph) {
  const std::string text = graph::toText(graph);
  return text.substr(text.find("x: f32"));
}

bool isLeaf(const std::string& op) { return torch_capture::leafShapeFunction(op) != nullptr; }

bool isCore(const std::string& op) {
  const auto dot = op.find('.');
  const auto handle =
      c10::Dispatcher::singleton().findSchema({op.substr(0, dot), dot == std::string::npos ? "" : op.substr(dot + 1)});
  return handle && handle->hasTag(at::Tag::core);
}

}  // namespace

class TestDecompose : public QObject {
  Q_OBJECT
 private slots:
  /// After a mutation functionalization recreates the mutated view, even if it is unused. It belongs to the mutating
  /// operator.
  void functionalizes_data() {
    QTest::addColumn<int>("program");
    QTest::addColumn<QString>("expected");
    const char* sources = "x: f32[2,4] = input #0\nweight: f32[4,4] = parameter #1\n";
    const auto row = [&](const char* name, int program, const char* text) {
      QTest::newRow(name) << program << QString("%1%2").arg(sources, text);
    };
    row("linear().add_()", 0,
        "linear_0: f32[2,4] = aten::linear(x, weight, None) #2\n"
        "add_0: f32[2,4] = aten::add.Tensor(linear_0, x, 1) #3\n"
        "return y=add_0\n");
    row("view().add_()", 1,
        "mul_0: f32[2,4] = aten::mul.Scalar(x, 2) #2\n"
        "view_0: f32[8] = aten::view(mul_0, [8]) #3\n"
        "add_0: f32[8] = aten::add.Scalar(view_0, 1, 1) #4\n"
        "view_1: f32[2,4] = aten::view(add_0, [2, 4]) #4\n"
        "view_2: f32[8] = aten::view(view_1, [8]) #4\n"
        "neg_0: f32[2,4] = aten::neg(view_1) #5\n"
        "return y=neg_0\n");
    row("slice().mul_()", 2,
        "linear_0: f32[2,4] = aten::linear(x, weight, None) #2\n"
        "slice_0: f32[2,2] = aten::slice.Tensor(linear_0, 1, 0, 2, 1) #3\n"
        "mul_0: f32[2,2] = aten::mul.Scalar(slice_0, 3) #4\n"
        "slice_scatter_0: f32[2,4] = aten::slice_scatter(linear_0, mul_0, 1, 0, 2, 1) #4\n"
        "slice_1: f32[2,2] = aten::slice.Tensor(slice_scatter_0, 1, 0, 2, 1) #4\n"
        "neg_0: f32[2,4] = aten::neg(slice_scatter_0) #5\n"
        "return y=neg_0\n");
    row("no-ops stay", 3,
        "alias_0: f32[2,4] = aten::alias(x) #2\n"
        "alias_1: f32[2,4] = aten::alias(alias_0) #3\n"
        "relu_0: f32[2,4] = aten::relu(alias_1) #4\n"
        "add_0: f32[2,4] = aten::add.Tensor(relu_0, x, 1) #5\n"
        "return y=add_0\n");
  }
  void functionalizes() {
    QFETCH(int, program);
    QFETCH(QString, expected);
    const Program programs[] = {
        [](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w).add_(x); },
        [](const at::Tensor& x, const at::Tensor&) {
          const at::Tensor whole = x.mul(2);
          whole.view({8}).add_(1);
          return whole.neg();
        },
        [](const at::Tensor& x, const at::Tensor& w) {
          const at::Tensor whole = at::linear(x, w);
          whole.slice(1, 0, 2).mul_(3);
          return whole.neg();
        },
        [](const at::Tensor& x, const at::Tensor&) {
          return at::dropout(x.to(at::kFloat), 0.5, /*train=*/false).relu().add(x);
        },
    };
    const std::string text = textOf(record(programs[program]).aten);
    QVERIFY2(QString::fromStdString(text) == expected, text.c_str());
  }

  void recordsListsAndSeveralResults() {
    const std::string text = textOf(record([](const at::Tensor& x, const at::Tensor&) {
                                      const auto parts = at::split(x, 3, 1);
                                      return at::cat({parts[1], parts[0]}, 1);
                                    }).aten);
    QVERIFY2(text.find("aten::split_with_sizes(x, [3, 1], 1)") != std::string::npos, text.c_str());
    QVERIFY2(text.find("aten::cat([split_with_sizes_1, split_with_sizes_0], 1)") != std::string::npos, text.c_str());
  }

  void normalisesToCore_data() {
    QTest::addColumn<int>("program");
    for (int i = 0; i < 8; ++i) QTest::addRow("program %d", i) << i;
  }
  void normalisesToCore() {
    QFETCH(int, program);
    const Program programs[] = {
        [](const at::Tensor& x, const at::Tensor& w) { return at::matmul(at::silu(x), w.t()); },
        [](const at::Tensor& x, const at::Tensor&) { return at::layer_norm(x, {4}).transpose(0, 1).reshape({8}); },
        [](const at::Tensor& x, const at::Tensor&) { return at::softmax(x.masked_fill(x.gt(0), -1.0), -1); },
        [](const at::Tensor& x, const at::Tensor&) {
          return x.unbind(0)[1].add(at::zeros({4}, x.options())).add(at::arange(4, x.options()));
        },
        [](const at::Tensor& x, const at::Tensor&) { return at::rsub(x, 1).mul(at::ones_like(x)); },
        [](const at::Tensor& x, const at::Tensor&) {
          return at::rms_norm(x, {4}).expand({3, 2, 4}).permute({2, 0, 1}).contiguous();
        },
        [](const at::Tensor& x, const at::Tensor& w) {
          return at::embedding(w, x.slice(1, 0, 2).to(at::kLong)).mean(1);
        },
        [](const at::Tensor& x, const at::Tensor& w) { return at::gelu(at::addmm(x.select(0, 0), x, w), "tanh"); },
    };
    const RecordedGraphs graphs = record(programs[program]);
    for (const std::string& op : graphs.aten.ops) QVERIFY2(isCore(op) || isLeaf(op), op.c_str());
  }

  void everyFixtureIsCoreOrLeaf_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("dtype");
    for (const char* model :
         {"models/llama", "models/llama-tied", "models/qwen2", "decoders/mistral-window", "decoders/linear-rope-gelu",
          "decoders/dynamic-rope-long", "decoders/yarn-rope", "decoders/llama3-rope-biases"}) {
      QTest::addRow("%s f32", model) << model << int(graph::DType::Float32);
      QTest::addRow("%s bf16", model) << model << int(graph::DType::BFloat16);
    }
  }
  void everyFixtureIsCoreOrLeaf() {
    QFETCH(QString, model);
    QFETCH(int, dtype);
    const auto folder = formats::openModelFolder(fs::path(CLEAVE_TEST_DATA) / model.toStdString());
    const auto captured = torch_capture::captureModel(
        *folder, {.batch = 2, .sequence = 16, .dtype = static_cast<graph::DType>(dtype), .mask = true});
    QVERIFY2(captured, captured ? "" : captured.error().message.c_str());
    for (const std::string& op : captured->aten->ops) QVERIFY2(isCore(op) || isLeaf(op), op.c_str());
  }

  void refusesTensorsFromElsewhere() {
    QVERIFY_THROWS_EXCEPTION(c10::Error, record([](const at::Tensor& x, const at::Tensor&) {
                               at::Tensor stranger;
                               {
                                 const Recorder::Suspension unrecorded;
                                 stranger = at::ones({2, 4});
                               }
                               return x.add(stranger);
                             }));
  }

  void leavesTheThreadAsItWas() {
    record([](const at::Tensor& x, const at::Tensor&) { return x.neg(); });
    const at::Tensor weight = at::ones({2, 3}).set_requires_grad(true);
    at::linear(at::ones({4, 3}), weight).sum().backward();
    QCOMPARE(weight.grad().sum().item<double>(), 24.0);
  }
};

QTEST_APPLESS_MAIN(TestDecompose)
#include "tst_decompose.moc"
