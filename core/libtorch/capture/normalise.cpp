#include "libtorch/capture/normalise.h"

#include "graph/operators.h"
#include "libtorch/bridge/operators.h"

#include <algorithm>
#include <numeric>

namespace cleave::torch_capture {
namespace {

using graph::Argument;
using graph::DType;
using graph::ValueId;
using Values = std::vector<ValueId>;

ValueId operand(const RecordedCall& call, std::size_t index) { return std::get<ValueId>(call.args[index]); }

Values asItIs(const RecordedCall& call) { return call.append(call.op, std::move(call.args)); }

/// Functionalization has its own names for views.
Values asViewOf(const RecordedCall& call) { return call.append(*viewOf(call.op), std::move(call.args)); }

/// `view(self, size)` and similar, with all sizes given: −1 would have to be computed again for every shard.
Values asView(const RecordedCall& call) { return call.append("aten::view", {call.args[0], call.results[0].shape}); }

/// `expand(self, size, implicit)`, with all sizes given.
Values asExpand(const RecordedCall& call) {
  return call.append("aten::expand", {call.args[0], call.results[0].shape, call.args[2]});
}

Values permuted(const RecordedCall& call, std::int64_t first, std::int64_t second) {
  std::vector<std::int64_t> order(call.results[0].shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[static_cast<std::size_t>(first)], order[static_cast<std::size_t>(second)]);
  return call.append("aten::permute", {call.args[0], std::move(order)});
}

/// `transpose.int(self, dim0, dim1)`
Values transpose(const RecordedCall& call) {
  const auto rank = static_cast<std::int64_t>(call.results[0].shape.size());
  const auto wrapped = [&](std::size_t index) {
    const auto dim = std::get<std::int64_t>(call.args[index]);
    return dim < 0 ? dim + rank : dim;
  };
  return permuted(call, wrapped(1), wrapped(2));
}

/// `t(self)`: at most two dimensions.
Values matrixTranspose(const RecordedCall& call) {
  return call.results[0].shape.size() == 2 ? permuted(call, 0, 1) : call.append("aten::alias", {call.args[0]});
}

/// `silu(x)` = x · sigmoid(x)
Values silu(const RecordedCall& call) {
  const Values gate = call.append("aten::sigmoid", {call.args[0]});
  return call.append("aten::mul.Tensor", {call.args[0], gate[0]});
}

/// `arange(end, dtype, layout, device, pin_memory)`
Values arangeFromZero(const RecordedCall& call) {
  return call.append("aten::arange.start_step", {std::int64_t{0}, call.args[0], std::int64_t{1}, call.args[1],
                                                 call.args[2], call.args[3], call.args[4]});
}

/// `arange.start(start, end, dtype, layout, device, pin_memory)`
Values arangeFromStart(const RecordedCall& call) {
  return call.append("aten::arange.start_step", {call.args[0], call.args[1], std::int64_t{1}, call.args[2],
                                                 call.args[3], call.args[4], call.args[5]});
}

/// `zeros/ones(size, dtype, layout, device, pin_memory)`. The default type is real, but `full` of an integer would be
/// an integer.
Values filled(const RecordedCall& call, std::int64_t value) {
  return call.append("aten::full",
                     {call.args[0], value, call.results[0].dtype, call.args[2], call.args[3], call.args[4]});
}
Values zeros(const RecordedCall& call) { return filled(call, 0); }
Values ones(const RecordedCall& call) { return filled(call, 1); }

/// `zeros_like/ones_like(self, dtype, layout, device, pin_memory, memory_format)`
Values filledLike(const RecordedCall& call, std::int64_t value) {
  return call.append("aten::full_like",
                     {call.args[0], value, call.args[1], call.args[2], call.args[3], call.args[4], call.args[5]});
}
Values zerosLike(const RecordedCall& call) { return filledLike(call, 0); }
Values onesLike(const RecordedCall& call) { return filledLike(call, 1); }

/// `masked_fill.Scalar(self, mask, value)` = where(mask, value, self)
Values maskedFill(const RecordedCall& call) {
  const DType dtype = call.results[0].dtype;
  const ValueId value = call.builder.addCall(
      "aten::full", {std::vector<std::int64_t>{}, call.args[2], dtype, Argument{}, graph::DeviceArgument{}, Argument{}},
      {{dtype, {}}}, call.scope, call.origin)[0];
  return call.append("aten::where.self", {call.args[1], value, call.args[0]});
}

/// `rsub.Scalar(self, other, alpha)` = other − alpha · self; here with alpha = 1 only.
Values reversedSubtraction(const RecordedCall& call) {
  if (call.args[2] != Argument(std::int64_t{1})) return asItIs(call);
  const Values negated = call.append("aten::neg", {call.args[0]});
  return call.append("aten::add.Scalar", {negated[0], call.args[1], std::int64_t{1}});
}

/// `unbind.int(self, dim)` → one select per result
Values unbind(const RecordedCall& call) {
  Values values;
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    values.push_back(call.builder.addCall("aten::select.int",
                                          {operand(call, 0), call.args[1], static_cast<std::int64_t>(i)},
                                          {call.results[i]}, call.scope, call.origin)[0]);
  }
  return values;
}

/// `split.Tensor(self, size, dim)` → split_with_sizes
Values split(const RecordedCall& call) {
  auto dim = std::get<std::int64_t>(call.args[2]);
  std::vector<std::int64_t> sizes;
  for (const graph::TensorType& result : call.results) {
    sizes.push_back(
        result.shape[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(result.shape.size()) : dim)]);
  }
  return call.append("aten::split_with_sizes", {call.args[0], std::move(sizes), dim});
}

/// `dropout(input, p, train)`
Values dropout(const RecordedCall& call) {
  const auto* chance = std::get_if<double>(&call.args[1]);
  const auto* isTraining = std::get_if<bool>(&call.args[2]);
  const bool dropsNothing = (chance && *chance == 0) || (isTraining && !*isTraining);
  return dropsNothing ? call.append("aten::alias", {call.args[0]}) : asItIs(call);
}

/// `_grouped_mm(self, mat2, offs, bias, out_dtype)` of rows and a matrix per group. The CPU kernel requires sizes that
/// are multiples of 16 bytes.
Values groupedProduct(const RecordedCall& call) {
  const auto isGiven = [&](std::size_t index) {
    return call.args.size() > index && !std::holds_alternative<std::monostate>(call.args[index]);
  };
  if (!isGiven(2) || isGiven(3) || isGiven(4)) return asItIs(call);
  return call.append(std::string(graph::kGroupedProduct), {call.args[0], call.args[1], call.args[2]});
}

struct Row {
  std::string_view op;
  Normaliser normaliser;
};

constexpr Row kRows[] = {
    {"aten::view", asView},
    {"aten::_unsafe_view", asView},
    {"aten::_reshape_alias", asView},
    {"aten::expand", asExpand},
    {"aten::t", matrixTranspose},
    {"aten::transpose.int", transpose},
    {"aten::silu", silu},
    {"aten::arange", arangeFromZero},
    {"aten::arange.start", arangeFromStart},
    {"aten::zeros", zeros},
    {"aten::ones", ones},
    {"aten::zeros_like", zerosLike},
    {"aten::ones_like", onesLike},
    {"aten::masked_fill.Scalar", maskedFill},
    {"aten::rsub.Scalar", reversedSubtraction},
    {"aten::dropout", dropout},
    {"aten::unbind.int", unbind},
    {"aten::split.Tensor", split},
    {"aten::_grouped_mm", groupedProduct},
    {"aten::lift_fresh_copy", asItIs},  // a constant that enters the graph; not a view of a value
};

}  // namespace

std::optional<std::string> viewOf(std::string_view op) {
  constexpr std::string_view kCopy = "_copy";
  const std::string_view base = op.substr(0, op.find('.'));
  if (!base.ends_with(kCopy)) return std::nullopt;
  std::string name(op);
  name.erase(base.size() - kCopy.size(), kCopy.size());
  const auto copy = bridge::findOperator(op);
  const auto view = bridge::findOperator(name);
  if (!copy || !view || !copy->hasTag(at::Tag::view_copy)) return std::nullopt;
  if (copy->schema().arguments().size() != view->schema().arguments().size()) return std::nullopt;
  return name;
}

Normaliser normaliserFor(std::string_view op) {
  if (const auto* row = std::ranges::find(kRows, op, &Row::op); row != std::end(kRows)) return row->normaliser;
  const auto view = viewOf(op);
  if (!view) return &asItIs;
  const auto* row = std::ranges::find(kRows, std::string_view(*view), &Row::op);
  return row == std::end(kRows) ? &asViewOf : row->normaliser;
}

}  // namespace cleave::torch_capture
