#include "rules/layer_outputs.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/operators.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_set>

namespace cleave::rules {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Values between a projection and the view that makes its heads: bias, cast, norm over the head, clamp.
constexpr std::size_t kLongestWay = 16;

std::int64_t lastSize(const Graph& graph, ValueId value) {
  const Shape& shape = graph.shapeOf(value);
  return shape.empty() ? 1 : shape.back();
}

/// Heads that a view makes of the last dimension of `value`: [.., h*e] → [.., h, e]; 0 when none follows. Looks through
/// operators that keep the shape, nearest first, but not through another layer: what lies behind that is its own
/// affair.
std::int64_t headsBehind(const Graph& graph, ValueId value) {
  const Shape& shape = graph.shapeOf(value);
  std::vector<ValueId> way{value};
  for (std::size_t at = 0; at < way.size(); ++at) {
    for (const NodeId user : graph.value(way[at]).users) {
      const Node& node = graph.node(user);
      if (node.kind != graph::NodeKind::Call || node.results.empty() || graph::layerShape(graph, user)) continue;
      const Shape& next = graph.shapeOf(node.results.front());
      if (next.size() == shape.size() + 1 && next.size() >= 2 && next[next.size() - 2] * next.back() == shape.back()) {
        return next[next.size() - 2];
      }
      if (next != shape || way.size() >= kLongestWay) continue;
      if (std::find(way.begin(), way.end(), node.results.front()) == way.end()) way.push_back(node.results.front());
    }
  }
  return 0;
}

/// Neighbouring ranks that hold one part, so that no part is less than a head; 1 when the heads divide or are unknown.
int replicasFor(std::int64_t heads, int worldSize) {
  if (heads <= 0) return 1;
  return worldSize / static_cast<int>(std::gcd(heads, static_cast<std::int64_t>(worldSize)));
}

/// Steps from logits to the loss: cast, soft cap, shift, flattening.
constexpr int kLongestWayToLoss = 12;

/// Breadth first: each value once, however many ways lead to it.
bool reachesLoss(const Graph& graph, ValueId value) {
  const auto isOutput = [&](ValueId at) {
    return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                       [&](const graph::Output& output) { return output.value == at; });
  };
  std::unordered_set<std::uint32_t> seen{value.raw()};
  std::vector<ValueId> here{value}, behind;
  for (int steps = 0; !here.empty(); ++steps, here.swap(behind)) {
    behind.clear();
    for (const ValueId at : here) {
      if (isOutput(at)) return true;
      if (steps == kLongestWayToLoss) continue;
      for (const NodeId user : graph.value(at).users) {
        if (const auto layer = graph::layerShape(graph, user)) {
          if (layer->kind == graph::LayerKind::CrossEntropy && layer->input == at) return true;
          continue;
        }
        for (const ValueId next : graph.node(user).results) {
          const bool keepsLast = !graph.shapeOf(next).empty() && lastSize(graph, next) == lastSize(graph, at);
          if (keepsLast && seen.insert(next.raw()).second) behind.push_back(next);
        }
      }
    }
  }
  return false;
}

struct OutputPart {
  std::int64_t size = 0;
  ValueId value;
  std::int64_t heads = 0;  ///< that it is already; 0: ask headsBehind
};

/// Pieces of a dimension of `value` by their start, when slices or one split cover all of it; else empty.
std::map<std::int64_t, OutputPart> piecesOf(const Graph& graph, ValueId value, int dim) {
  std::map<std::int64_t, OutputPart> pieces;
  const int rank = static_cast<int>(graph.shapeOf(value).size());
  const std::int64_t size = sizeAt(graph.shapeOf(value), dim);
  const auto isThat = [&](std::int64_t asked) { return graph::wrapDim(asked, rank) == dim; };
  const auto sizeOf = [&](ValueId piece) { return sizeAt(graph.shapeOf(piece), dim); };
  for (const NodeId user : graph.value(value).users) {
    const Node& node = graph.node(user);
    const std::string& op = graph.opName(node);
    const bool isSplit = op == "aten::split.Tensor" || op == "aten::split_with_sizes" || op == "aten::chunk" ||
                         op == "aten::split.sizes";
    if (isSplit && isThat(graph::integerAt(node, 2).value_or(0))) {
      std::int64_t start = 0;
      for (const ValueId piece : node.results) {
        pieces[start] = {sizeOf(piece), piece};
        start += sizeOf(piece);
      }
    } else if (op == "aten::slice.Tensor" && isThat(graph::integerAt(node, 1).value_or(0)) &&
               graph::integerAt(node, 4).value_or(1) == 1) {
      std::int64_t start = graph::integerAt(node, 2).value_or(0);
      if (start < 0) start += size;
      pieces[start] = {sizeOf(node.results.front()), node.results.front()};
    } else {
      return {};
    }
  }
  std::int64_t end = 0;
  for (const auto& [start, piece] : pieces) {
    if (start != end || piece.size <= 0) return {};
    end += piece.size;
  }
  return end == size ? pieces : std::map<std::int64_t, OutputPart>();
}

/// A dimension of a value on its way through operators that move it and nothing else.
struct Moved {
  ValueId value;
  int dim = 0;
};

/// Where the dimension is behind this call; nullopt: it does more than move it.
std::optional<Moved> movedBy(const Graph& graph, const Node& node, const Moved& from) {
  const std::string& op = graph.opName(node);
  const ValueId to = node.results.front();
  const int rank = static_cast<int>(graph.shapeOf(from.value).size());
  if (op == "aten::clone" || op == "aten::alias") return Moved{to, from.dim};
  if (op == "aten::permute") {
    const auto* order = graph::integersAt(node, 1);
    for (std::size_t i = 0; order && i < order->size(); ++i) {
      if (graph::wrapDim((*order)[i], rank) == from.dim) return Moved{to, static_cast<int>(i)};
    }
    return std::nullopt;
  }
  const bool isPut = op == "aten::unsqueeze";
  if (!isPut && op != "aten::squeeze.dim") return std::nullopt;
  const auto dim = graph::wrapDim(graph::integerAt(node, 1).value_or(0), isPut ? rank + 1 : rank);
  if (!dim || (!isPut && (*dim == from.dim || sizeAt(graph.shapeOf(from.value), *dim) != 1))) return std::nullopt;
  return Moved{to, from.dim + (isPut ? (*dim <= from.dim ? 1 : 0) : (*dim < from.dim ? -1 : 0))};
}

/// The pieces of a dimension that selections and nothing else read, by their index; empty: it is read otherwise.
std::map<std::int64_t, ValueId> selectedOf(const Graph& graph, Moved at) {
  for (std::size_t steps = 0; steps < kLongestWay; ++steps) {
    std::map<std::int64_t, ValueId> selected;
    const auto& users = graph.value(at.value).users;
    for (const NodeId user : users) {
      const Node& node = graph.node(user);
      const int rank = static_cast<int>(graph.shapeOf(at.value).size());
      const std::int64_t size = sizeAt(graph.shapeOf(at.value), at.dim);
      if (graph.opName(node) != "aten::select.int" ||
          graph::wrapDim(graph::integerAt(node, 1).value_or(0), rank) != at.dim)
        break;
      const std::int64_t index = graph::integerAt(node, 2).value_or(0);
      selected[index < 0 ? index + size : index] = node.results.front();
    }
    if (!selected.empty()) return selected;
    const auto moved = users.size() == 1 ? movedBy(graph, graph.node(users.front()), at) : std::nullopt;
    if (!moved) return {};
    at = *moved;
  }
  return {};
}

/// Equal pieces of the last dimension that a view makes a dimension of, [.., k · n] → [.., k, n], out of which each is
/// selected (torch.nn.MultiheadAttention).
std::map<std::int64_t, OutputPart> unflattenedOf(const Graph& graph, ValueId value) {
  const auto& users = graph.value(value).users;
  const Shape& shape = graph.shapeOf(value);
  if (users.size() != 1 || shape.empty() || graph.opName(graph.node(users.front())) != "aten::view") return {};
  const ValueId view = graph.node(users.front()).results.front();
  const Shape& to = graph.shapeOf(view);
  if (to.size() != shape.size() + 1 || !std::equal(shape.begin(), shape.end() - 1, to.begin())) return {};
  const std::int64_t count = to[to.size() - 2], each = to.back();
  const auto selected = selectedOf(graph, {view, static_cast<int>(to.size()) - 2});
  if (static_cast<std::int64_t>(selected.size()) != count) return {};
  std::map<std::int64_t, OutputPart> pieces;
  for (const auto& [index, piece] : selected) pieces[index * each] = {each, piece};
  return pieces;
}

/// Pieces of the heads that a view makes of the last dimension, [.., h · e] → [.., h, e]: of queries, keys and values.
std::map<std::int64_t, OutputPart> headsApart(const Graph& graph, ValueId value) {
  const auto& users = graph.value(value).users;
  const Shape& shape = graph.shapeOf(value);
  if (users.size() != 1 || shape.empty() || graph.opName(graph.node(users.front())) != "aten::view") return {};
  const ValueId view = graph.node(users.front()).results.front();
  const Shape& to = graph.shapeOf(view);
  if (to.size() != shape.size() + 1 || !std::equal(shape.begin(), shape.end() - 1, to.begin())) return {};
  std::map<std::int64_t, OutputPart> pieces;
  for (const auto& [start, piece] : piecesOf(graph, view, static_cast<int>(to.size()) - 2))
    pieces[start * to.back()] = {piece.size * to.back(), piece.value, piece.size};
  return pieces;
}

std::map<std::int64_t, OutputPart> fusedOf(const Graph& graph, ValueId value) {
  const int last = static_cast<int>(graph.shapeOf(value).size()) - 1;
  auto pieces = last < 0 ? std::map<std::int64_t, OutputPart>() : piecesOf(graph, value, last);
  if (pieces.size() < 2) pieces = unflattenedOf(graph, value);
  return pieces.size() < 2 ? headsApart(graph, value) : pieces;
}

/// Whether the last dimension of `value` is that of the call's result too, and means the same: under other leading
/// sizes, or with something of a source's added to it (a bias apart), multiplied by it (a scale).
bool keepsFeatures(const Graph& graph, const Node& node, ValueId value) {
  if (node.kind != graph::NodeKind::Call || lastSize(graph, node.results.front()) != lastSize(graph, value))
    return false;
  if (graph.opName(node) == "aten::view") return true;
  const bool isElementwise = graph::operatorOf(graph.opName(node)).cost == graph::CostClass::Elementwise;
  if (!isElementwise || graph.shapeOf(node.results.front()) != graph.shapeOf(value)) return false;
  const auto operands = graph::operandsOf(node);
  return std::all_of(operands.begin(), operands.end(), [&](ValueId operand) {
    return operand == value || graph.shapeOf(operand).empty() || isOfSource(graph, operand);
  });
}

/// The same features further on: under other leading sizes, [batch · sequence, f] → [batch, sequence, f], as a product
/// of matrices has them (Conv1D), or with a bias that is added apart: the last value that is cut into pieces or heads.
/// A view that makes one head of all features is no such regrouping, though it looks like one. The value itself where
/// something else reads it too.
ValueId featuresBehind(const Graph& graph, ValueId made) {
  ValueId found = made, value = made;
  for (std::size_t steps = 0; steps < kLongestWay; ++steps) {
    const auto& users = graph.value(value).users;
    if (users.size() != 1) break;
    const Node& node = graph.node(users.front());
    if (!keepsFeatures(graph, node, value)) break;
    value = node.results.front();
    if (fusedOf(graph, value).size() >= 2 || headsBehind(graph, value) > 0) found = value;
  }
  return found;
}

}  // namespace

std::optional<Placement> columnsBehind(const Graph& graph, ValueId made, int worldSize) {
  const Placement last = Placement::split(static_cast<int>(graph.shapeOf(made).size()) - 1);
  const ValueId result = featuresBehind(graph, made);
  const auto pieces = fusedOf(graph, result);
  if (pieces.size() < 2) {
    const int replicas = replicasFor(headsBehind(graph, result), worldSize);
    return replicas > 1 ? std::optional(last.withReplicas(replicas)) : std::nullopt;
  }
  std::vector<Block> blocks;
  for (const auto& [start, piece] : pieces) {
    const std::int64_t heads = piece.heads > 0 ? piece.heads : headsBehind(graph, piece.value);
    blocks.push_back({piece.size, replicasFor(heads, worldSize)});
  }
  return last.withBlocks(std::move(blocks));
}

bool isOfSource(const Graph& graph, ValueId value) {
  for (std::size_t steps = 0; steps < kLongestWay; ++steps) {
    const Node& node = graph.node(graph.value(value).producer);
    if (node.kind != graph::NodeKind::Call) return node.kind != graph::NodeKind::Input;
    if (!graph::isView(graph.opName(node)) || graph::operandsOf(node).size() != 1) return false;
    value = graph::operandsOf(node).front();
  }
  return false;
}

bool makesClasses(const Graph& graph, ValueId result) { return reachesLoss(graph, result); }

}  // namespace cleave::rules
