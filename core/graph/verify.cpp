#include "graph/verify.h"

#include "base/checked.h"
#include "base/quantities.h"
#include "graph/type_text.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace cleave::graph {
namespace {

Result<void> verifyType(const Value& value) {
  if (value.type.shape.size() > kMaxDimensions) {
    return fail(ErrorCode::BadInput, "Value {} has {} dimensions; the limit is {}.", value.name,
                value.type.shape.size(), kMaxDimensions);
  }
  const auto count = checkedProduct(value.type.shape);
  if (!count || !checkedMul(*count, itemSize(value.type.dtype))) {
    return fail(ErrorCode::BadInput, "Value {} has shape {}: a size is negative or the tensor exceeds 2^63 bytes.",
                value.name, toText(value.type.shape));
  }
  return {};
}

Result<void> verifyScopes(const Graph& graph) {
  if (graph.scopes.empty()) return fail(ErrorCode::BadInput, "The graph has no root scope.");
  for (ScopeId id : idRange<ScopeId>(graph.scopes.size())) {
    const ScopeId parent = graph.scope(id).parent;
    const bool isRoot = id.index() == 0;
    if (isRoot == parent.isValid() || (!isRoot && parent >= id)) {
      return fail(ErrorCode::BadInput, "Scope {} \"{}\" has parent {}: parents must come before their children.",
                  id.index(), graph.scope(id).path, parent.raw());
    }
  }
  return {};
}

std::string nodeLabel(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string op =
      node.kind == NodeKind::Call && node.op.index() < graph.ops.size() ? graph.ops[node.op.index()] : "source";
  return fmt::format("Node {} ({})", id.index(), op);
}

Result<void> verifyPacked(const Graph& graph) {
  std::size_t found = 0;
  for (const Node& node : graph.nodes) {
    if (graph.packedBytes.empty()) return {};
    if (node.kind != NodeKind::Parameter) continue;
    const Value& value = graph.value(node.results[0]);
    const auto packed = graph.packedBytes.find(value.name);
    if (packed == graph.packedBytes.end()) continue;
    ++found;
    if (packed->second >= 0 && packed->second <= mostPackedBytes(value.type)) continue;
    return fail(ErrorCode::BadInput, "{} is {}, but its packed size is {} bytes, above the limit for this type.",
                value.name, toText(value.type), packed->second);
  }
  if (found == graph.packedBytes.size()) return {};
  return fail(ErrorCode::BadInput, "The graph has packed sizes for {} parameters, but only {} of them exist.",
              graph.packedBytes.size(), found);
}

Result<void> verifyFrozen(const Graph& graph) {
  std::size_t found = 0;
  for (const Node& node : graph.nodes) {
    if (graph.frozen.empty()) return {};
    found += node.kind == NodeKind::Parameter && graph.frozen.contains(graph.value(node.results[0]).name);
  }
  if (found == graph.frozen.size()) return {};
  return fail(ErrorCode::BadInput, "The graph freezes {} parameters, but only {} of them exist.", graph.frozen.size(),
              found);
}

Result<void> verifyNode(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind == NodeKind::Call) {
    if (node.op.index() >= graph.ops.size()) return fail(ErrorCode::BadInput, "Node {} has no operator.", id.index());
  } else if (node.results.size() != 1 || !node.args.empty()) {
    return fail(ErrorCode::BadInput, "{} must have one result and no arguments.", nodeLabel(graph, id));
  }
  if (node.scope.index() >= graph.scopes.size()) {
    return fail(ErrorCode::BadInput, "{} has scope {}, but the graph has {} scopes.", nodeLabel(graph, id),
                node.scope.raw(), graph.scopes.size());
  }
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const ValueId result = node.results[i];
    if (result.index() >= graph.values.size() || graph.value(result).producer != id ||
        graph.value(result).resultIndex != i) {
      return fail(ErrorCode::BadInput, "{}: result {} has another producer.", nodeLabel(graph, id), i);
    }
  }
  std::optional<ValueId> wrong;
  forEachOperand(node, [&](ValueId operand) {
    const bool known = operand.index() < graph.values.size();
    if (!known || graph.value(operand).producer >= id) wrong = operand;
  });
  if (wrong) {
    return fail(ErrorCode::BadInput, "{} reads value {} before it is produced: the graph has a cycle or a wrong id.",
                nodeLabel(graph, id), wrong->raw());
  }
  if (node.kind == NodeKind::Constant) {
    const Value& value = graph.value(node.results[0]);
    const auto data = graph.constants.find(id.raw());
    if (data != graph.constants.end() && static_cast<std::int64_t>(data->second.size()) != sizeInBytes(value.type)) {
      return fail(ErrorCode::BadInput, "Constant {} has {} of data, but its type {} needs {}.", value.name,
                  counted(std::ssize(data->second), "byte"), toText(value.type), sizeInBytes(value.type));
    }
  }
  return {};
}

}  // namespace

std::int64_t mostPackedBytes(const TensorType& type) {
  constexpr std::int64_t kOverhead = 64 << 10;
  return saturatingAdd(saturatingMul(sizeInBytes(type), 2), kOverhead);
}

Result<void> verify(const Graph& graph) {
  if (graph.nodes.size() > kMaxNodes) {
    return fail(ErrorCode::BadInput, "The graph has {} nodes; the limit is {}.", graph.nodes.size(), kMaxNodes);
  }
  CLEAVE_TRY_VOID(verifyScopes(graph));
  std::unordered_set<std::string_view> names;
  names.reserve(graph.values.size());
  for (const Value& value : graph.values) {
    CLEAVE_TRY_VOID(verifyType(value));
    if (value.name.empty()) return fail(ErrorCode::BadInput, "A value of the graph has no name.");
    if (!names.insert(value.name).second) return fail(ErrorCode::BadInput, "Two values have the name {}.", value.name);
    if (value.producer.index() >= graph.nodes.size())
      return fail(ErrorCode::BadInput, "Value {} has no producer.", value.name);
  }
  std::size_t resultCount = 0;
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) {
    CLEAVE_TRY_VOID(verifyNode(graph, id));
    resultCount += graph.node(id).results.size();
  }
  if (resultCount != graph.values.size()) {
    return fail(ErrorCode::BadInput, "The graph has {}, but its nodes produce {}.",
                counted(std::ssize(graph.values), "value"), resultCount);
  }
  for (const Output& output : graph.outputs) {
    if (output.value.index() >= graph.values.size())
      return fail(ErrorCode::BadInput, "Output {} does not refer to a value.", output.name);
  }
  CLEAVE_TRY_VOID(verifyFrozen(graph));
  return verifyPacked(graph);
}

}  // namespace cleave::graph
