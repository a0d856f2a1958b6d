#include "libtorch/capture/spelling.h"

#include "graph/operators.h"

#include <fmt/format.h>

namespace cleave::torch_capture {

using graph::Argument;
using graph::Node;
using graph::ValueId;

namespace {

/// Nesting limit for the comparison of views.
constexpr int kDeepest = 8;

bool areAlikeWithin(const Spelling& spelling, const graph::Graph& graph, ValueId a, ValueId b, int depth) {
  a = spelling.withoutAliases(a);
  b = spelling.withoutAliases(b);
  if (!a.isValid() || !b.isValid() || a == b) return a == b;
  const Node& x = graph.node(graph.value(a).producer);
  const Node& y = graph.node(graph.value(b).producer);
  if (depth == 0 || x.kind != graph::NodeKind::Call || y.kind != graph::NodeKind::Call || x.op != y.op) return false;
  if (!graph::isView(graph.opName(x)) || x.args.size() != y.args.size()) return false;
  if (graph.value(a).resultIndex != graph.value(b).resultIndex) return false;
  for (std::size_t i = 0; i < x.args.size(); ++i) {
    const auto* left = std::get_if<ValueId>(&x.args[i]);
    const auto* right = std::get_if<ValueId>(&y.args[i]);
    if (left && right ? !areAlikeWithin(spelling, graph, *left, *right, depth - 1) : x.args[i] != y.args[i])
      return false;
  }
  return true;
}

}  // namespace

ValueId Spelling::withoutAliases(ValueId value) const {
  while (value.isValid()) {
    const Node& made = m_graph.node(m_graph.value(value).producer);
    if (made.kind != graph::NodeKind::Call) break;
    if (m_graph.opName(made) == "aten::alias") {
      value = graph::operandAt(made, 0);
      continue;
    }
    // A dimension of size 1 that is added and removed again.
    const ValueId wider = m_graph.opName(made) == "aten::squeeze.dim" ? graph::operandAt(made, 0) : ValueId();
    const Node* put = wider.isValid() ? &m_graph.node(m_graph.value(wider).producer) : nullptr;
    if (!put || put->kind != graph::NodeKind::Call || m_graph.opName(*put) != "aten::unsqueeze") break;
    const int rank = static_cast<int>(m_graph.shapeOf(wider).size());
    const auto dimOf = [&](const Node& node) { return graph::wrapDim(graph::integerAt(node, 1).value_or(rank), rank); };
    if (!dimOf(made) || dimOf(made) != dimOf(*put)) break;
    value = graph::operandAt(*put, 0);
  }
  return value;
}

const Node* Spelling::call(ValueId value, std::string_view op) const {
  value = withoutAliases(value);
  if (!value.isValid()) return nullptr;
  const Node& made = m_graph.node(m_graph.value(value).producer);
  return made.kind == graph::NodeKind::Call && m_graph.opName(made) == op ? &made : nullptr;
}

std::uint32_t Spelling::resultIndex(ValueId value) const { return m_graph.value(withoutAliases(value)).resultIndex; }

bool Spelling::isParameter(ValueId value) const {
  return value.isValid() && m_graph.node(m_graph.value(value).producer).kind == graph::NodeKind::Parameter;
}

bool Spelling::areAlike(ValueId a, ValueId b) const { return areAlikeWithin(*this, m_graph, a, b, kDeepest); }

ValueId Spelling::viewed(ValueId value) const {
  const Node* view = call(value, "aten::view");
  return view ? withoutAliases(graph::operandAt(*view, 0)) : ValueId();
}

std::pair<ValueId, ValueId> Spelling::picked(ValueId value) const {
  if (const Node* pick = call(value, "aten::index.Tensor")) {
    const auto* ids = std::get_if<graph::ValueList>(&pick->args[1]);
    if (!ids || ids->size() != 1 || !ids->front().isValid()) return {};
    if (m_graph.value(ids->front()).type.dtype == graph::DType::Bool) return {};
    return {withoutAliases(graph::operandAt(*pick, 0)), ids->front()};
  }
  const Node* pick = call(value, "aten::index_select");
  if (!pick || graph::integerAt(*pick, 1) != 0) return {};
  return {withoutAliases(graph::operandAt(*pick, 0)), graph::operandAt(*pick, 2)};
}

ValueId Spelling::quotient(ValueId value, std::int64_t divisor) const {
  const Node* division = call(value, "aten::floor_divide");
  if (!division) {
    division = call(value, "aten::div.Tensor_mode");
    const auto* mode = division && division->args.size() > 2 ? std::get_if<std::string>(&division->args[2]) : nullptr;
    if (!mode) return {};
  }
  return graph::numberAt(*division, 1) == static_cast<double>(divisor) ? graph::operandAt(*division, 0) : ValueId();
}

ValueId Spelling::inverseOf(ValueId permutation) const {
  if (const Node* sort = call(permutation, "aten::sort"); sort && resultIndex(permutation) == 1) {
    return graph::flagAt(*sort, 2).value_or(false) ? ValueId() : withoutAliases(graph::operandAt(*sort, 0));
  }
  // inverse[permutation] = 0, 1, 2, ...
  const Node* put = call(permutation, "aten::index_put");
  const auto* at = put ? std::get_if<graph::ValueList>(&put->args[1]) : nullptr;
  if (!at || at->size() != 1 || !at->front().isValid() || graph::flagAt(*put, 3).value_or(false)) return {};
  const Node* count = call(graph::operandAt(*put, 2), "aten::arange.start_step");
  const graph::Shape& shape = m_graph.shapeOf(permutation);
  const bool isCount = count && shape.size() == 1 && graph::numberAt(*count, 0) == 0.0 &&
                       graph::numberAt(*count, 1) == static_cast<double>(shape[0]) &&
                       graph::numberAt(*count, 2).value_or(1) == 1.0;
  return isCount && m_graph.shapeOf(at->front()) == shape ? withoutAliases(at->front()) : ValueId();
}

/// `repeat_interleave` decomposes to a dimension that is expanded and merged.
ValueId Spelling::repeated(ValueId value, std::int64_t times) const {
  ValueId merged = viewed(value);
  if (const Node* copy = call(merged, "aten::clone")) merged = graph::operandAt(*copy, 0);
  const Node* expanded = call(merged, "aten::expand");
  const Node* row = expanded ? call(graph::operandAt(*expanded, 0), "aten::unsqueeze") : nullptr;
  if (!row) return {};
  const ValueId rows = withoutAliases(graph::operandAt(*row, 0));
  const graph::Shape& shape = m_graph.shapeOf(rows);
  if (shape.size() != 2 || m_graph.shapeOf(row->results[0]) != graph::Shape{shape[0], 1, shape[1]}) return {};
  const bool isThat = m_graph.shapeOf(expanded->results[0]) == graph::Shape{shape[0], times, shape[1]} &&
                      m_graph.shapeOf(value) == graph::Shape{shape[0] * times, shape[1]};
  return isThat ? rows : ValueId();
}

std::vector<std::pair<ValueId, ValueId>> Spelling::factors(ValueId value) const {
  const Node* product = call(value, "aten::mul.Tensor");
  const ValueId a = product ? graph::operandAt(*product, 0) : ValueId();
  const ValueId b = product ? graph::operandAt(*product, 1) : ValueId();
  if (!a.isValid() || !b.isValid()) return {};
  return {{withoutAliases(a), withoutAliases(b)}, {withoutAliases(b), withoutAliases(a)}};
}

/// Matches one of two equal halves of the last dimension.
bool Spelling::isHalf(ValueId value, int half, ValueId& whole) const {
  const std::int64_t size = m_graph.shapeOf(value).empty() ? 0 : m_graph.shapeOf(value).back();
  const auto isOf = [&](ValueId candidate) {
    const graph::Shape& shape = m_graph.shapeOf(candidate);
    if (shape.size() != m_graph.shapeOf(value).size() || shape.back() != 2 * size) return false;
    if (whole.isValid() && whole != candidate) return false;
    whole = candidate;
    return true;
  };
  const int rank = static_cast<int>(m_graph.shapeOf(value).size());
  if (const Node* split = call(value, "aten::split_with_sizes")) {
    return graph::wrapDim(graph::integerAt(*split, 2).value_or(0), rank) == rank - 1 && split->results.size() == 2 &&
           resultIndex(value) == static_cast<std::uint32_t>(half) && isOf(withoutAliases(graph::operandAt(*split, 0)));
  }
  const Node* slice = call(value, "aten::slice.Tensor");
  return slice && graph::wrapDim(graph::integerAt(*slice, 1).value_or(0), rank) == rank - 1 &&
         graph::integerAt(*slice, 2).value_or(0) == half * size && graph::integerAt(*slice, 4).value_or(1) == 1 &&
         isOf(withoutAliases(graph::operandAt(*slice, 0)));
}

std::optional<double> Spelling::multipleOf(ValueId value, ValueId of) const {
  for (const std::string_view op : {"aten::mul.Tensor", "aten::mul.Scalar"}) {
    const Node* product = call(value, op);
    if (product && areAlike(graph::operandAt(*product, 0), of)) return graph::numberAt(*product, 1);
  }
  return {};
}

/// The activation that computes `value`, and its argument. The name is empty if experts do not support the activation.
std::pair<std::string_view, ValueId> Spelling::activation(ValueId value) const {
  const auto argumentOf = [&](ValueId of, std::string_view op) {
    const Node* made = call(of, op);
    return made ? withoutAliases(graph::operandAt(*made, 0)) : ValueId();
  };
  if (const Node* gelu = call(value, "aten::gelu")) {
    const auto* kind = gelu->args.size() > 1 ? std::get_if<std::string>(&gelu->args[1]) : nullptr;
    return {kind && *kind == "tanh" ? "gelu_tanh" : "gelu", withoutAliases(graph::operandAt(*gelu, 0))};
  }
  for (const std::string_view name : {"relu", "tanh", "sigmoid"}) {
    const ValueId argument = argumentOf(value, fmt::format("aten::{}", name));
    if (argument.isValid()) return {name, argument};
  }
  const Node* square = call(value, "aten::pow.Tensor_Scalar");
  if (square && graph::numberAt(*square, 1) == 2.0) {
    const ValueId argument = argumentOf(graph::operandAt(*square, 0), "aten::relu");
    if (argument.isValid()) return {"relu2", argument};
  }
  for (const auto& [x, gate] : factors(value)) {
    const ValueId argument = argumentOf(gate, "aten::sigmoid");
    if (argument.isValid() && areAlike(x, argument)) return {"silu", x};
    if (argument.isValid() && multipleOf(argument, x) == 1.702) return {"quick_gelu", x};
    if (x == gate && call(x, "aten::relu")) return {"relu2", argumentOf(x, "aten::relu")};
  }
  return {};
}

std::optional<GatedActivation> Spelling::gatedActivation(ValueId value) const {
  for (const auto& [activated, other] : factors(value)) {
    if (auto clamped = clampedSwiglu(other, activated)) return clamped;
    const auto [name, gate] = activation(activated);
    ValueId whole;
    if (!name.empty() && isHalf(gate, 0, whole) && isHalf(other, 1, whole))
      return GatedActivation{.name = name, .input = whole};
  }
  return {};
}

std::optional<Spelling::Clamped> Spelling::clampedEverySecond(ValueId value, std::int64_t first) const {
  const Node* clamp = call(value, "aten::clamp");
  const Node* slice = clamp ? call(graph::operandAt(*clamp, 0), "aten::slice.Tensor") : nullptr;
  if (!slice) return {};
  const int rank = static_cast<int>(m_graph.shapeOf(value).size());
  const ValueId whole = withoutAliases(graph::operandAt(*slice, 0));
  const bool isSecond = graph::wrapDim(graph::integerAt(*slice, 1).value_or(0), rank) == rank - 1 &&
                        graph::integerAt(*slice, 2).value_or(0) == first && graph::integerAt(*slice, 4) == 2 &&
                        m_graph.shapeOf(whole).back() == 2 * m_graph.shapeOf(value).back();
  if (!isSecond) return {};
  return Clamped{whole, graph::numberAt(*clamp, 1), graph::numberAt(*clamp, 2)};
}

/// (up + 1) · (gate · sigmoid(alpha · gate)), gate at most the limit, up within ±limit.
std::optional<GatedActivation> Spelling::clampedSwiglu(ValueId raised, ValueId swish) const {
  const Node* sum = call(raised, "aten::add.Tensor");
  if (!sum) sum = call(raised, "aten::add.Scalar");
  if (!sum || graph::numberAt(*sum, 1) != 1.0 || graph::numberAt(*sum, 2).value_or(1) != 1.0) return {};
  const auto up = clampedEverySecond(graph::operandAt(*sum, 0), 1);
  if (!up || !up->most || up->least != -*up->most) return {};
  for (const auto& [gate, gated] : factors(swish)) {
    const auto held = clampedEverySecond(gate, 0);
    const Node* sigmoid = held ? call(gated, "aten::sigmoid") : nullptr;
    const auto alpha = sigmoid ? multipleOf(graph::operandAt(*sigmoid, 0), gate) : std::nullopt;
    if (alpha && held->whole == up->whole && !held->least && held->most == up->most)
      return GatedActivation{graph::kClampedSwiglu, up->whole, *alpha, *up->most};
  }
  return {};
}

}  // namespace cleave::torch_capture
