// Shapes without values: every registered meta kernel and every leaf, compared with LibTorch's CPU kernels, and
// inferResults.
#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/shape_functions.h"
#include "rules/examples.h"
#include "rules/rule_text.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <QTest>

#include <map>
#include <set>

using namespace cleave;
using graph::Argument;
using graph::DType;
using graph::TensorType;
using graph::ValueId;
using graph::ValueList;

namespace {

using Ints = std::vector<std::int64_t>;
constexpr DType kF = DType::Float32;
constexpr DType kL = DType::Int64;

struct Case {
  const char* op;
  std::vector<Argument> args;
  std::vector<TensorType> operands;
};

Argument value(std::size_t index) { return ValueId(index); }
Argument integer(std::int64_t number) { return number; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"aten::linear", {value(0), value(1), value(2)}, {{kF, {2, 3, 4}}, {kF, {5, 4}}, {kF, {5}}}},
      {"aten::linear", {value(0), value(1)}, {{kF, {4}}, {kF, {5, 4}}}},
      {"aten::embedding", {value(0), value(1)}, {{kF, {9, 4}}, {kL, {2, 3}}}},
      {"aten::scaled_dot_product_attention",
       {value(0), value(1), value(2)},
       {{kF, {2, 4, 3, 8}}, {kF, {2, 4, 5, 8}}, {kF, {2, 4, 5, 6}}}},
      {"aten::scaled_dot_product_attention",
       {value(0), value(1), value(2), value(3)},
       {{kF, {2, 4, 3, 8}}, {kF, {2, 4, 5, 8}}, {kF, {2, 4, 5, 8}}, {kF, {2, 1, 3, 5}}}},
      {"aten::cross_entropy_loss", {value(0), value(1)}, {{kF, {6, 9}}, {kL, {6}}}},
      {"aten::cross_entropy_loss", {value(0), value(1), {}, integer(0)}, {{kF, {6, 9, 2}}, {kL, {6, 2}}}},
      {"aten::cross_entropy_loss", {value(0), value(1), {}, integer(0)}, {{kF, {6, 9}}, {kF, {6, 9}}}},
      {"aten::relu", {value(0)}, {{kF, {2, 3}}}},
      {"aten::abs", {value(0)}, {{kL, {2, 3}}}},
      {"aten::roll", {value(0), Ints{1}, Ints{0}}, {{kF, {2, 3}}}},
      {"aten::isinf", {value(0)}, {{kF, {2, 3}}}},
      {"aten::isnan", {value(0)}, {{kF, {2, 3}}}},
      {"aten::hardtanh", {value(0)}, {{kF, {2, 3}}}},
      {"aten::hardswish", {value(0)}, {{kF, {2, 3}}}},
      {"aten::nan_to_num", {value(0)}, {{kF, {2, 3}}}},
      {"aten::log_sigmoid_forward", {value(0)}, {{kF, {2, 3}}}},
      {"aten::floor_divide", {value(0), value(1)}, {{kL, {2, 1}}, {kL, {3}}}},
      {"aten::rsub.Tensor", {value(0), value(1)}, {{kF, {2, 3}}, {kL, {3}}}},
      {"aten::logit", {value(0)}, {{kF, {2, 3}}}},
      {"aten::logit", {value(0), 0.25}, {{kL, {2, 3}}}},
      {"aten::logsumexp", {value(0), Ints{1}, true}, {{kF, {2, 3}}}},
      {"aten::max", {value(0)}, {{kL, {2, 3}}}},
      {"aten::min", {value(0)}, {{kF, {2, 3}}}},
      {"aten::convolution",
       {value(0), value(1), {}, Ints{2}, Ints{1}, Ints{1}, false, Ints{0}, integer(2)},
       {{kF, {1, 4, 9}}, {kF, {6, 2, 3}}}},
      {"aten::convolution",
       {value(0), value(1), value(2), Ints{2, 1}, Ints{1, 0}, Ints{1, 2}, true, Ints{1, 0}, integer(1)},
       {{kF, {2, 4, 5, 6}}, {kF, {4, 3, 3, 2}}, {kF, {3}}}},
      {"aten::std.correction", {value(0), Ints{-1}, {}, true}, {{kF, {2, 3}}}},
      {"aten::var.correction", {value(0), Ints{0}}, {{kF, {2, 3}}}},
      {"aten::var.correction", {value(0)}, {{kF, {2, 3}}}},
      {"aten::logical_and", {value(0), value(1)}, {{kF, {2, 3}}, {kF, {3}}}},
      {"aten::logical_or", {value(0), value(1)}, {{kF, {2, 1}}, {kL, {3}}}},
      {"aten::logical_xor", {value(0), value(1)}, {{kF, {2, 3}}, {kF, {}}}},
      {"aten::logical_not", {value(0)}, {{kL, {2, 3}}}},
      {"aten::where.self", {value(0), value(1), value(2)}, {{DType::Bool, {2, 1}}, {kF, {3}}, {kL, {}}}},
      {"aten::index_select", {value(0), integer(-1), value(1)}, {{kF, {2, 3}}, {kL, {2}}}},
      {"aten::index_select", {value(0), integer(0), value(1)}, {{kF, {2, 3}}, {kL, {}}}},
      {"aten::flip", {value(0), Ints{0, -1}}, {{kF, {2, 3}}}},
      {"aten::prod", {value(0)}, {{DType::Int32, {2, 3}}}},
      {"aten::prod", {value(0), DType::Float64}, {{kF, {2, 3}}}},
      {"aten::native_dropout", {value(0), 0.5, true}, {{kF, {2, 3}}}},
      {"aten::randperm", {integer(5)}, {}},
      {"aten::randperm", {integer(5), DType::Int32}, {}},
      {"aten::native_layer_norm", {value(0), Ints{3, 4}, {}, {}, 1e-5}, {{kF, {2, 3, 4}}}},
      {"aten::native_group_norm",
       {value(0), {}, {}, integer(2), integer(4), integer(9), integer(2), 1e-5},
       {{kF, {2, 4, 3, 3}}}},
      {"aten::_adaptive_avg_pool2d", {value(0), Ints{2, 3}}, {{kF, {1, 2, 6, 6}}}},
      {"aten::_adaptive_avg_pool3d", {value(0), Ints{2, 3, 1}}, {{kF, {1, 2, 6, 6, 4}}}},
      {"aten::reflection_pad2d", {value(0), Ints{1, 2, 0, 1}}, {{kF, {1, 2, 4, 5}}}},
      {"aten::_cdist_forward", {value(0), value(1), 2.0, {}}, {{kF, {2, 3, 4}}, {kF, {2, 5, 4}}}},
      {"aten::embedding_dense_backward",
       {value(0), value(1), integer(9), integer(-1), false},
       {{kF, {2, 3, 4}}, {kL, {2, 3}}}},
  };
  return all;
}

/// Operators whose result depends on values. They are refused, so they have no case.
const std::set<std::string> kRefused = {"aten::nonzero", "aten::_local_scalar_dense"};

at::Tensor tensorOf(const TensorType& type) {
  const at::ScalarType dtype = bridge::toScalarType(type.dtype);
  return at::isFloatingType(dtype) ? at::rand(type.shape).softmax(type.shape.empty() ? 0 : -1).to(dtype)
                                   : at::ones(type.shape, dtype);
}

std::vector<TensorType> runOnCpu(const Case& test, const std::vector<Argument>& args) {
  const auto op = bridge::findOperator(test.op);
  CLEAVE_CHECK(op.has_value(), "{}", test.op);
  std::vector<at::Tensor> tensors;
  for (const TensorType& type : test.operands) tensors.push_back(tensorOf(type));
  const auto bound = bridge::bindArguments(args, op->schema(), at::kCPU);
  CLEAVE_CHECK(bound.has_value(), "{}: {}", test.op, bound ? "" : bound.error().message);
  torch::jit::Stack stack = bound->with([&](ValueId value) { return tensors[value.index()]; });
  op->callBoxed(&stack);
  std::vector<TensorType> types;
  for (const c10::IValue& result : stack)
    types.push_back({*bridge::toDType(result.toTensor().scalar_type()), result.toTensor().sizes().vec()});
  return types;
}

std::string textOf(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += graph::toText(type) + ' ';
  return text;
}

}  // namespace

class TestMeta : public QObject {
  Q_OBJECT
 private slots:
  void hasTheShapesOfTheCpuKernel_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < cases().size(); ++i) QTest::addRow("%s %zu", cases()[i].op, i) << int(i);
  }
  void hasTheShapesOfTheCpuKernel() {
    QFETCH(int, index);
    const Case& test = cases()[static_cast<std::size_t>(index)];
    std::vector<Argument> args = test.args;
    const auto inferred = torch_capture::inferResults(test.op, args, test.operands);
    QVERIFY2(inferred, inferred ? "" : inferred.error().message.c_str());
    QCOMPARE(textOf(*inferred), textOf(runOnCpu(test, args)));
  }

  void coversEveryRegisteredKernel() {
    std::set<std::string> covered = kRefused;
    for (const Case& test : cases()) covered.insert(test.op);
    for (const std::string& op : torch_capture::registeredMetaKernels()) QVERIFY2(covered.contains(op), op.c_str());
  }

  /// The command line infers shapes of every operator with a rule from its operands' types. These are the operators
  /// whose shape neither LibTorch nor Cleave can infer.
  void infersTheShapeOfOperatorsWithARule() {
    const std::set<std::string> dependOnValues{"aten::index.Tensor", "aten::masked_select", "aten::nonzero",
                                               "aten::one_hot"};
    const std::set<std::string> without{
        "aten::_weight_norm",
        "aten::_weight_norm_interface",
        "aten::_native_batch_norm_legit_no_training",
        "aten::_safe_softmax",
        "aten::batch_norm",
        "aten::binary_cross_entropy",
        "aten::count_nonzero.dim_IntList",
        "aten::cummax",
        "aten::cummin",
        "aten::dot",
        "aten::huber_loss",
        "aten::kthvalue",
        "aten::logcumsumexp",
        "aten::matmul",  // of two vectors
        "aten::median.dim",
        "aten::nansum",
        "aten::native_batch_norm",
        "aten::nll_loss2d_forward",
        "aten::nll_loss_nd",
        "aten::remainder.Scalar_Tensor",
        "aten::tril_indices",
        "aten::triu_indices",
        "aten::var_mean.correction",
        "aten::var_mean.dim",
        "aten::vdot",
    };
    std::map<char, std::int64_t> sizes;
    for (char letter = 'a'; letter <= 'z'; ++letter) sizes[letter] = 4;
    std::set<std::string> refused;
    for (const rules::Example& example : rules::examples()) {
      auto call = rules::parseCall(example.call, sizes);
      QVERIFY2(call, example.call.c_str());
      std::vector<TensorType> types;
      for (const rules::OperandText& operand : call->operands) types.push_back(operand.type);
      const auto results = torch_capture::inferResults(call->op, call->args, types);
      if (results || dependOnValues.contains(call->op)) continue;
      refused.insert(call->op);
      QVERIFY2(without.contains(call->op), (example.call + ": " + results.error().message).c_str());
    }
    for (const std::string& op : without) QVERIFY2(refused.contains(op), (op + " has a shape now").c_str());
  }

  void fillsDefaultsInSchemaOrder() {
    std::vector<Argument> args = {value(0), Ints{1}};
    const auto result = torch_capture::inferResults("aten::sum.dim_IntList", args, {{kF, {2, 8, 4}}});
    QVERIFY(result && result->front().shape == graph::Shape({2, 4}));
    QVERIFY(args.size() == 4 && args[2] == Argument(false) && args[3] == Argument());
  }

  void takesEveryKindOfArgument_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<int>("kind");
    QTest::addColumn<QString>("expected");
    QTest::newRow("list of tensors") << "aten::cat" << 0 << "f32[2,7]";
    QTest::newRow("list with absent tensors") << "aten::index.Tensor" << 1 << "f32[5,3]";
    QTest::newRow("number for a tensor") << "aten::add.Tensor" << 2 << "bf16[2,3]";
    QTest::newRow("no tensor at all") << "aten::full" << 3 << "f32[2,3]";
    QTest::newRow("element type") << "aten::to.dtype" << 4 << "bf16[2]";
    QTest::newRow("text") << "aten::gelu" << 5 << "f32[2]";
    QTest::newRow("one number for a list") << "aten::sum.dim_IntList" << 6 << "f32[2]";
    QTest::newRow("empty list") << "aten::view" << 7 << "f32[]";
    QTest::newRow("several results") << "aten::split.Tensor" << 8 << "f32[3,2] f32[3,2] f32[2,2]";
  }
  void takesEveryKindOfArgument() {
    QFETCH(QString, op);
    QFETCH(int, kind);
    QFETCH(QString, expected);
    const Case all[] = {
        {"", {ValueList{ValueId(0), ValueId(1)}, integer(1)}, {{kF, {2, 3}}, {kF, {2, 4}}}},
        {"", {value(0), ValueList{ValueId(), ValueId(1)}}, {{kF, {5, 6}}, {kL, {3}}}},
        {"", {value(0), 2.5}, {{DType::BFloat16, {2, 3}}}},
        {"", {Ints{2, 3}, 1.0}, {}},
        {"", {value(0), DType::BFloat16}, {{kF, {2}}}},
        {"", {value(0), std::string("tanh")}, {{kF, {2}}}},
        {"", {value(0), integer(-1)}, {{kF, {2, 3}}}},
        {"", {value(0), Ints{}}, {{kF, {1}}}},
        {"", {value(0), integer(3)}, {{kF, {8, 2}}}},
    };
    std::vector<Argument> args = all[kind].args;
    const auto result = torch_capture::inferResults(op.toStdString(), args, all[kind].operands);
    QVERIFY2(result, result ? "" : result.error().message.c_str());
    QCOMPARE(QString::fromStdString(textOf(*result)).trimmed(), expected);
  }

  void refusesInOneSentence_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<int>("operands");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("unknown overload") << "aten::sum.dim" << 1 << "did you mean aten::sum, aten::sum.dim_IntList";
    QTest::newRow("typing error") << "aten::sofmax.int" << 1 << "aten::softmax.int";
    QTest::newRow("no operator") << "" << 1 << "unknown operator";
    QTest::newRow("missing argument") << "aten::mean.dim" << 1 << "needs argument dim";
    QTest::newRow("too many") << "aten::neg" << 2 << "accepts 1 arguments, but the call has 2";
    QTest::newRow("shapes") << "aten::add.Tensor" << 2 << "must match";
    QTest::newRow("wrong kind") << "aten::mean.dim" << 2 << "argument dim must be of type";
    QTest::newRow("depends on values") << "aten::nonzero" << 1 << "depends on the tensor's values";
    QTest::newRow("no shape rule") << "aten::bincount" << 1 << "cannot compute the result shape of aten::bincount";
    QTest::newRow("leaf") << "aten::linear" << 2 << "their last dimensions differ";
  }
  void refusesInOneSentence() {
    QFETCH(QString, op);
    QFETCH(int, operands);
    QFETCH(QString, phrase);
    std::vector<Argument> args;
    std::vector<TensorType> types = {{kF, {2, 3}}, {kF, {4, 5}}};
    for (int i = 0; i < operands; ++i) args.push_back(value(static_cast<std::size_t>(i)));
    const auto result = torch_capture::inferResults(op.toStdString(), args, types);
    QVERIFY(!result);
    const QString message = QString::fromStdString(result.error().message);
    QVERIFY2(message.contains(phrase) && !message.contains('\n'), qPrintable(message));
    QCOMPARE(exitCode(result.error().code), 3);
  }
};

QTEST_APPLESS_MAIN(TestMeta)
#include "tst_meta.moc"
