#include "libtorch/capture/folding.h"

#include "graph/operators.h"
#include "graph/rewrite.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

namespace cleave::torch_capture {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ValueId;

constexpr std::int64_t kMostElements = 1024;

class Folding {
 public:
  explicit Folding(Graph& graph) : m_graph(graph), m_isKnown(graph.nodes.size()) {
    for (const NodeId id : idRange<NodeId>(graph.nodes.size())) m_isKnown[id.index()] = isKnown(graph.node(id));
  }

  bool shouldFold(NodeId id) const {
    const Node& node = m_graph.node(id);
    if (node.kind != NodeKind::Call || !m_isKnown[id.index()] || !isComputed(node)) return false;
    const graph::Value& value = m_graph.value(node.results[0]);
    const auto isNeeded = [&](NodeId user) { return !m_isKnown[user.index()] || !isComputed(m_graph.node(user)); };
    return value.type.shape.size() == 1 && value.type.shape[0] > 0 && graph::isFloatingPoint(value.type.dtype) &&
           std::any_of(value.users.begin(), value.users.end(), isNeeded);
  }

  /// nullopt if it cannot be computed. A rank reports the error then.
  std::optional<std::vector<std::byte>> bytesOf(ValueId value) {
    const auto tensor = bridge::translated([&]() -> Result<at::Tensor> { return compute(value); }, ErrorCode::BadInput);
    if (!tensor) return std::nullopt;
    const graph::TensorType& type = m_graph.value(value).type;
    const at::Tensor dense = tensor->contiguous();
    if (dense.sizes() != at::IntArrayRef(type.shape) || bridge::toDType(dense.scalar_type()) != type.dtype)
      return std::nullopt;
    std::vector<std::byte> bytes(dense.nbytes());
    std::memcpy(bytes.data(), dense.const_data_ptr(), bytes.size());
    return bytes;
  }

 private:
  bool isKnown(const Node& node) const {
    if (node.kind == NodeKind::Constant) return true;
    if (node.kind != NodeKind::Call || node.results.size() != 1) return false;
    const graph::Shape& shape = m_graph.shapeOf(node.results[0]);
    if (graph::elementCount(shape) > kMostElements || shape.size() > 1) return false;
    const std::string& op = m_graph.opName(node);
    const auto found = graph::parallelOp(op) ? std::nullopt : bridge::findOperator(op);
    if (!found || found->hasTag(at::Tag::nondeterministic_seeded) || op.find("empty") != std::string::npos)
      return false;
    const auto operands = graph::operandsOf(node);
    return std::all_of(operands.begin(), operands.end(),
                       [&](ValueId operand) { return m_isKnown[m_graph.value(operand).producer.index()]; });
  }

  /// Operators that only create, move or cast do not count.
  bool isComputed(const Node& node) const {
    const std::string& op = m_graph.opName(node);
    return node.kind == NodeKind::Call && !graph::operandsOf(node).empty() && !graph::isView(op) &&
           graph::operatorOf(op).cost == graph::CostClass::Elementwise && op != "aten::_to_copy" &&
           op != "aten::clone" && !op.ends_with("_like");
  }

  Result<at::Tensor> compute(ValueId value) {
    if (const auto known = m_tensors.find(value.raw()); known != m_tensors.end()) return known->second;
    const NodeId id = m_graph.value(value).producer;
    const Node& node = m_graph.node(id);
    if (node.kind == NodeKind::Constant) {
      const graph::TensorType& type = m_graph.value(value).type;
      // The tensor is only read, and only until the graph changes.
      auto* data = const_cast<std::byte*>(m_graph.constants.at(id.raw()).data());
      return m_tensors[value.raw()] = at::from_blob(data, type.shape, bridge::toScalarType(type.dtype));
    }
    for (const ValueId operand : graph::operandsOf(node)) CLEAVE_TRY_VOID(compute(operand));
    CLEAVE_TRY(const auto op, bridge::findForProgram(m_graph.opName(node)));
    CLEAVE_TRY(const auto bound, bridge::bindArguments(node.args, op.schema(), at::kCPU));
    auto stack = bound.with([&](ValueId operand) { return m_tensors.at(operand.raw()); });
    CLEAVE_TRY(const auto results, bridge::call(op, stack));
    return m_tensors[value.raw()] = results.at(0);
  }

  Graph& m_graph;
  std::vector<bool> m_isKnown;  ///< by NodeId: computed only from numbers
  std::unordered_map<std::uint32_t, at::Tensor> m_tensors;
};

}  // namespace

void foldConstants(Graph& graph) {
  const c10::NoGradGuard noGradient;
  Folding folding(graph);
  std::vector<std::pair<NodeId, std::vector<std::byte>>> found;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    if (!folding.shouldFold(id)) continue;
    if (auto bytes = folding.bytesOf(graph.node(id).results[0])) found.emplace_back(id, *std::move(bytes));
  }
  graph::Rewrite rewrite(graph);
  for (auto& [id, bytes] : found) rewrite.replaceByConstant(id, std::move(bytes));
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
