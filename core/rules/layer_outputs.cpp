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

/// Limit on the values between a projection and the view that makes its heads: bias, cast, norm over the head, clamp.
constexpr std::size_t kMaxOutputPath = 16;

std::int64_t lastSize(const Graph& graph, ValueId value) {
  const Shape& shape = graph.shapeOf(value);
  return shape.empty() ? 1 : shape.back();
}

/// Number of heads that a call makes from features: [.., h·e] → [.., h, e], or merged with the batch before them, [s,
/// b, h·e] → [s, b·h, e]. 0 if it does not make heads.
std::int64_t headsIn(const Shape& from, const Shape& to, bool isView) {
  if (from.empty() || to.size() < 2) return 0;
  const std::int64_t count = to[to.size() - 2], each = to.back();
  if (to.size() == from.size() + 1 && count * each == from.back()) return count;
  if (!isView || to.size() != from.size() || each <= 0 || each >= from.back() || from.back() % each != 0) return 0;
  const std::int64_t heads = from.back() / each;
  return count == from[from.size() - 2] * heads ? heads : 0;
}

/// Number of heads made from the last dimension of `value`; 0 without heads. Follows operators that keep the shape,
/// nearest first, but stops at the next layer, which decides for itself.
std::int64_t headsAfter(const Graph& graph, ValueId value) {
  const Shape& shape = graph.shapeOf(value);
  std::vector<ValueId> way{value};
  for (std::size_t at = 0; at < way.size(); ++at) {
    for (const NodeId user : graph.value(way[at]).users) {
      const Node& node = graph.node(user);
      if (node.kind != graph::NodeKind::Call || node.results.empty() || graph::layerShape(graph, user)) continue;
      const Shape& next = graph.shapeOf(node.results.front());
      if (const auto heads = headsIn(shape, next, graph.opName(node) == "aten::view"); heads > 0) return heads;
      if (next != shape || way.size() >= kMaxOutputPath) continue;
      if (std::find(way.begin(), way.end(), node.results.front()) == way.end()) way.push_back(node.results.front());
    }
  }
  return 0;
}

}  // namespace

int replicasFor(std::int64_t heads, int worldSize) {
  if (heads <= 0) return 1;
  return worldSize / static_cast<int>(std::gcd(heads, static_cast<std::int64_t>(worldSize)));
}

namespace {

/// Limit on the steps from logits to the loss: cast, soft cap, shift, flattening.
constexpr int kMaxPathToLoss = 12;

/// Breadth first, so that each value is visited once.
bool reachesLoss(const Graph& graph, ValueId value) {
  const auto isOutput = [&](ValueId at) {
    return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                       [&](const graph::Output& output) { return output.value == at; });
  };
  std::unordered_set<std::uint32_t> seen{value.raw()};
  std::vector<ValueId> here{value}, later;
  for (int steps = 0; !here.empty(); ++steps, here.swap(later)) {
    later.clear();
    for (const ValueId at : here) {
      if (isOutput(at)) return true;
      if (steps == kMaxPathToLoss) continue;
      for (const NodeId user : graph.value(at).users) {
        if (const auto layer = graph::layerShape(graph, user)) {
          if (layer->kind == graph::LayerKind::CrossEntropy && layer->input == at) return true;
          continue;
        }
        for (const ValueId next : graph.node(user).results) {
          const bool keepsLast = !graph.shapeOf(next).empty() && lastSize(graph, next) == lastSize(graph, at);
          if (keepsLast && seen.insert(next.raw()).second) later.push_back(next);
        }
      }
    }
  }
  return false;
}

struct OutputPart {
  std::int64_t size = 0;
  ValueId value;
  std::optional<std::int64_t> heads = {};  ///< heads in this part, 0 if no heads are visible; nullopt: ask headsAfter
};

/// Parts of a dimension of `value` by their start. Empty unless slices or one split cover the whole dimension.
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

/// A dimension of a value, followed through operators that only move it.
struct Moved {
  ValueId value;
  int dim = 0;
  std::int64_t heads = 0;  ///< heads that a view on the way made from the features after the dimension
};

/// A view that regroups the dimensions after and before this one, [3, b, s, h·e] → [3, b, s, h, e].
std::optional<Moved> regroupedBy(const Graph& graph, const Moved& from, ValueId to) {
  const Shape &before = graph.shapeOf(from.value), &after = graph.shapeOf(to);
  const std::int64_t outer = sizeBefore(before, from.dim), size = sizeAt(before, from.dim);
  for (int dim = 0; dim < static_cast<int>(after.size()); ++dim) {
    if (sizeAt(after, dim) != size || sizeBefore(after, dim) != outer) continue;
    const std::int64_t heads = from.dim + 1 < static_cast<int>(before.size()) ? headsIn(before, after, true) : 0;
    return Moved{to, dim, heads > 0 ? heads : from.heads};
  }
  return std::nullopt;
}

/// The dimension in the result of this call; nullopt if the call does more than move it.
std::optional<Moved> movedBy(const Graph& graph, const Node& node, const Moved& from) {
  const std::string& op = graph.opName(node);
  const ValueId to = node.results.front();
  const int rank = static_cast<int>(graph.shapeOf(from.value).size());
  const auto movedTo = [&](int dim) { return Moved{to, dim, from.heads}; };
  if (op == "aten::clone" || op == "aten::alias") return movedTo(from.dim);
  if (op == "aten::view") return regroupedBy(graph, from, to);
  if (op == "aten::permute") {
    const auto place = graph::placeAfterPermute(node, from.dim);
    return place ? std::optional(movedTo(*place)) : std::nullopt;
  }
  const bool isPut = op == "aten::unsqueeze";
  if (!isPut && op != "aten::squeeze.dim") return std::nullopt;
  const auto dim = graph::wrapDim(graph::integerAt(node, 1).value_or(0), isPut ? rank + 1 : rank);
  if (!dim || (!isPut && (*dim == from.dim || sizeAt(graph.shapeOf(from.value), *dim) != 1))) return std::nullopt;
  return movedTo(from.dim + (isPut ? (*dim <= from.dim ? 1 : 0) : (*dim < from.dim ? -1 : 0)));
}

/// The values selected from a dimension, by index. Empty if something else reads the dimension.
std::map<std::int64_t, ValueId> selectedOf(const Graph& graph, const Moved& at) {
  const int rank = static_cast<int>(graph.shapeOf(at.value).size());
  const std::int64_t size = sizeAt(graph.shapeOf(at.value), at.dim);
  std::map<std::int64_t, ValueId> selected;
  for (const NodeId user : graph.value(at.value).users) {
    const Node& node = graph.node(user);
    if (graph.opName(node) != "aten::select.int" ||
        graph::wrapDim(graph::integerAt(node, 1).value_or(0), rank) != at.dim)
      return {};
    const std::int64_t index = graph::integerAt(node, 2).value_or(0);
    selected[index < 0 ? index + size : index] = node.results.front();
  }
  return selected;
}

std::vector<std::int64_t> takenApart(const Graph& graph, Moved at);

/// Number of heads in each piece that this value is sliced into along the dimension. Empty if it is not sliced. If a
/// view made heads before, a piece with several heads may be sliced again later.
std::vector<std::int64_t> cutApart(const Graph& graph, const Moved& at) {
  std::vector<std::int64_t> heads;
  for (const auto& [index, piece] : selectedOf(graph, at))
    heads.push_back(at.heads > 0 ? at.heads : headsAfter(graph, piece));
  if (!heads.empty() || at.heads == 0) return heads;
  const auto sliced = piecesOf(graph, at.value, at.dim);
  if (sliced.size() < 2) return {};
  for (const auto& [start, piece] : sliced) {
    const auto further = piece.size == 1 ? std::vector{at.heads} : takenApart(graph, {piece.value, at.dim, at.heads});
    heads.insert(heads.end(), further.begin(), further.end());
  }
  return heads;
}

/// Number of heads in each index of a dimension that is fully taken apart; 0 for an index without visible heads. Empty
/// if nothing takes the dimension apart, or not all of it.
std::vector<std::int64_t> takenApart(const Graph& graph, Moved at) {
  const auto count = static_cast<std::size_t>(sizeAt(graph.shapeOf(at.value), at.dim));
  for (std::size_t steps = 0; steps < kMaxOutputPath; ++steps) {
    if (auto heads = cutApart(graph, at); !heads.empty())
      return heads.size() == count ? std::move(heads) : std::vector<std::int64_t>();
    const auto& users = graph.value(at.value).users;
    const auto moved = users.size() == 1 ? movedBy(graph, graph.node(users.front()), at) : std::nullopt;
    if (!moved) return {};
    at = *moved;
  }
  return {};
}

/// The view that splits the last dimension of `value` and is its only reader; invalid if there is no such view.
ValueId viewOfFeatures(const Graph& graph, ValueId value) {
  const auto& users = graph.value(value).users;
  const Shape& shape = graph.shapeOf(value);
  if (users.size() != 1 || shape.empty() || graph.opName(graph.node(users.front())) != "aten::view") return {};
  const ValueId view = graph.node(users.front()).results.front();
  const Shape& to = graph.shapeOf(view);
  return to.size() > shape.size() && std::equal(shape.begin(), shape.end() - 1, to.begin()) ? view : ValueId();
}

/// Equal parts of the last dimension that a view makes a dimension and later operators take apart: [.., k · n] → [..,
/// k, n] (torch.nn.MultiheadAttention), or with their heads, [.., k, h, e] (image transformers).
std::vector<OutputPart> unflattenedOf(const Graph& graph, ValueId value) {
  const ValueId view = viewOfFeatures(graph, value);
  if (!view.isValid()) return {};
  const Shape &shape = graph.shapeOf(value), &to = graph.shapeOf(view);
  const std::size_t dim = shape.size() - 1;
  const std::int64_t heads = to.size() > dim + 2 ? to[dim + 1] : 0;
  std::vector<OutputPart> pieces;
  for (const std::int64_t shown : takenApart(graph, {view, static_cast<int>(dim), heads}))
    pieces.push_back({shape.back() / to[dim], {}, shown});
  return pieces;
}

/// Parts of the heads that a view makes from the last dimension, [.., h · e] → [.., h, e]: queries, keys and values.
std::vector<OutputPart> headsApart(const Graph& graph, ValueId value) {
  const ValueId view = viewOfFeatures(graph, value);
  if (!view.isValid() || graph.shapeOf(view).size() != graph.shapeOf(value).size() + 1) return {};
  const Shape& to = graph.shapeOf(view);
  std::vector<OutputPart> pieces;
  for (const auto& [start, piece] : piecesOf(graph, view, static_cast<int>(to.size()) - 2))
    pieces.push_back({piece.size * to.back(), piece.value, piece.size});
  return pieces;
}

/// The parts that the last dimension of a value is divided into, in order. Fewer than two if it is not divided.
std::vector<OutputPart> fusedOf(const Graph& graph, ValueId value) {
  const int last = static_cast<int>(graph.shapeOf(value).size()) - 1;
  std::vector<OutputPart> pieces;
  for (const auto& [start, piece] : last < 0 ? std::map<std::int64_t, OutputPart>() : piecesOf(graph, value, last))
    pieces.push_back(piece);
  if (pieces.size() < 2) pieces = unflattenedOf(graph, value);
  return pieces.size() < 2 ? headsApart(graph, value) : pieces;
}

/// True if the result's last dimension has the same features as the last dimension of `value`. The leading sizes may
/// change or be reordered, and a source may be added (a separate bias) or multiplied (a scale).
bool keepsFeatures(const Graph& graph, const Node& node, ValueId value) {
  if (node.kind != graph::NodeKind::Call || lastSize(graph, node.results.front()) != lastSize(graph, value))
    return false;
  const std::string& op = graph.opName(node);
  if (op == "aten::view" || op == "aten::clone" || op == "aten::alias") return true;
  if (op == "aten::permute") {
    const int last = static_cast<int>(graph.shapeOf(value).size()) - 1;
    const auto moved = movedBy(graph, node, {value, last});
    return moved && moved->dim == last;
  }
  const bool isElementwise = graph::operatorOf(op).cost == graph::CostClass::Elementwise;
  if (!isElementwise || graph.shapeOf(node.results.front()) != graph.shapeOf(value)) return false;
  const auto operands = graph::operandsOf(node);
  return std::all_of(operands.begin(), operands.end(), [&](ValueId operand) {
    return operand == value || graph.shapeOf(operand).empty() || isOfSource(graph, operand);
  });
}

/// Follows the features to the last value that is divided into parts or heads. On the way the leading sizes may change,
/// [batch · sequence, f] → [batch, sequence, f], as in a matrix product (Conv1D), and a separate bias may be added. A
/// view that makes one head from all features is not such a change, although it looks like one. Returns `made` if it
/// has other readers too.
ValueId featuresAfter(const Graph& graph, ValueId made) {
  ValueId found = made, value = made;
  for (std::size_t steps = 0; steps < kMaxOutputPath; ++steps) {
    const auto& users = graph.value(value).users;
    if (users.size() != 1) break;
    const Node& node = graph.node(users.front());
    if (!keepsFeatures(graph, node, value)) break;
    value = node.results.front();
    if (fusedOf(graph, value).size() >= 2 || headsAfter(graph, value) > 0) found = value;
  }
  return found;
}

}  // namespace

std::optional<Placement> columnsForReaders(const Graph& graph, ValueId made, int worldSize) {
  const Placement last = Placement::split(static_cast<int>(graph.shapeOf(made).size()) - 1);
  const ValueId result = featuresAfter(graph, made);
  const auto pieces = fusedOf(graph, result);
  if (pieces.size() < 2) {
    const int replicas = replicasFor(headsAfter(graph, result), worldSize);
    return replicas > 1 ? std::optional(last.withReplicas(replicas)) : std::nullopt;
  }
  std::vector<Block> blocks;
  for (const OutputPart& piece : pieces) {
    const std::int64_t heads = piece.heads ? *piece.heads : headsAfter(graph, piece.value);
    blocks.push_back({piece.size, replicasFor(heads, worldSize)});
  }
  return last.withBlocks(std::move(blocks));
}

std::vector<ValueId> piecesAlong(const Graph& graph, ValueId value, int dim) {
  std::vector<ValueId> found;
  for (const auto& [start, piece] : piecesOf(graph, value, dim)) found.push_back(piece.value);
  return found;
}

bool isOfSource(const Graph& graph, ValueId value) {
  for (std::size_t steps = 0; steps < kMaxOutputPath; ++steps) {
    const Node& node = graph.node(graph.value(value).producer);
    if (node.kind != graph::NodeKind::Call) return node.kind != graph::NodeKind::Input;
    if (!graph::isView(graph.opName(node)) || graph::operandsOf(node).size() != 1) return false;
    value = graph::operandsOf(node).front();
  }
  return false;
}

bool makesClasses(const Graph& graph, ValueId result) { return reachesLoss(graph, result); }

}  // namespace cleave::rules
