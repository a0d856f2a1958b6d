#include "graph/operators.h"

#include "graph/arguments.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

namespace cleave::graph {
namespace {

using Index = std::unordered_map<std::string_view, const Operator*>;

const Index& rows() {
  static const Index index = [] {
    Index map;
    for (const Operator& row : operators()) {
      const bool isNew = map.emplace(row.name, &row).second;
      CLEAVE_CHECK(isNew, "{} has two rows", row.name);
    }
    return map;
  }();
  return index;
}

const Operator& rowOf(ParallelOp op) {
  static const std::vector<const Operator*> byOp = [] {
    std::vector<const Operator*> own;
    for (const Operator& row : operators()) {
      if (!row.own) continue;
      const auto at = static_cast<std::size_t>(*row.own);
      if (own.size() <= at) own.resize(at + 1);
      own[at] = &row;
    }
    return own;
  }();
  const Operator* row = byOp.at(static_cast<std::size_t>(op));
  CLEAVE_CHECK(row != nullptr, "own operator {} has no row", static_cast<int>(op));
  return *row;
}

bool fits(const Argument& argument, ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Tensor: return std::holds_alternative<ValueId>(argument);
    case ArgumentKind::TensorOrNone:
      return std::holds_alternative<ValueId>(argument) || std::holds_alternative<std::monostate>(argument);
    case ArgumentKind::Integer: return std::holds_alternative<std::int64_t>(argument);
    case ArgumentKind::Number:
      return std::holds_alternative<double>(argument) || std::holds_alternative<std::int64_t>(argument);
    case ArgumentKind::Absent: return std::holds_alternative<std::monostate>(argument);
    case ArgumentKind::Text: return std::holds_alternative<std::string>(argument);
    case ArgumentKind::Sizes: return std::holds_alternative<std::vector<std::int64_t>>(argument);
  }
  return false;
}

constexpr std::array<std::string_view, 7> kKindNames{"a tensor", "a tensor or None", "an integer",     "a number",
                                                     "absent",   "a string",         "a list of sizes"};

}  // namespace

const Operator* findOperator(std::string_view op) {
  auto row = rows().find(op);
  if (row == rows().end()) row = rows().find(op.substr(0, op.find('.')));
  return row == rows().end() ? nullptr : row->second;
}

const Operator& operatorOf(std::string_view op) {
  static constexpr Operator kUnknown{.name = {}, .saves = Saves::Everything};
  const Operator* row = findOperator(op);
  return row ? *row : kUnknown;
}

bool drawsNumbers(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::Call) return false;
  const auto isPossible = [&](std::size_t chance) { return numberAt(node, chance).value_or(1) > 0; };
  switch (operatorOf(graph.opName(node)).draws) {
    case Draws::Never: return false;
    case Draws::Always: return true;
    case Draws::ForDropout: return isPossible(1) && flagAt(node, 2).value_or(true);
    case Draws::ForAttention: return numberAt(node, 4).value_or(0) > 0;
  }
  return false;
}

bool isDropout(const Graph& graph, const Node& node) {
  if (!drawsNumbers(graph, node) || operatorOf(graph.opName(node)).draws != Draws::ForDropout) return false;
  return std::all_of(node.results.begin() + 1, node.results.end(), [&](ValueId mask) {
    const bool isOutput = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                      [&](const Output& output) { return output.value == mask; });
    return graph.value(mask).users.empty() && !isOutput;
  });
}

std::optional<ParallelOp> parallelOp(std::string_view op) {
  const Operator* row = findOperator(op);
  return row && row->name == op ? row->own : std::nullopt;
}

Result<void> checkArguments(ParallelOp op, const Node& node) {
  const Operator& row = rowOf(op);
  if (node.args.size() != row.arguments.size()) {
    return fail(ErrorCode::BadInput, "{} needs {} arguments, but the node has {}.", row.name, row.arguments.size(),
                node.args.size());
  }
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (fits(node.args[i], row.arguments[i].kind)) continue;
    return fail(ErrorCode::BadInput, "{}: argument {} must be {}.", row.name, row.arguments[i].name,
                kKindNames[static_cast<std::size_t>(row.arguments[i].kind)]);
  }
  return {};
}

}  // namespace cleave::graph
