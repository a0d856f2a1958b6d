#include "libtorch/capture/mixtures.h"

#include "graph/operators.h"
#include "graph/rewrite.h"
#include "libtorch/capture/spelling.h"

#include <algorithm>

namespace cleave::torch_capture {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;

/// The order of the rows: by token, or sorted by expert.
struct Rows {
  ValueId ids;    ///< [tokens, k]
  ValueId flat;   ///< expert of each row, [S]
  ValueId order;  ///< original position of each row; invalid if the rows are in token order
};

struct Product {
  ValueId input, weight, bias;
  bool isTransposed = false;  ///< the weight is [experts, in, out]; else [experts, out, in]
};

struct Mixture {
  ValueId tokens, shares;
  Rows rows;
  Product up, down;
  GatedActivation activation;
};

class Reading {
 public:
  explicit Reading(const Graph& graph) : m_graph(graph), m_spelling(graph) {}

  /// Matches a sum over each token's experts.
  std::optional<Mixture> mixtureOf(const Node& sum) const {
    const auto* dims = graph::integersAt(sum, 1);
    const ValueId summed = graph::operandAt(sum, 0);
    if (m_graph.opName(sum) != "aten::sum.dim_IntList" || !dims || graph::flagAt(sum, 2).value_or(false)) return {};
    const Shape& shape = m_graph.shapeOf(summed);
    if (shape.size() != 3 || dims->size() != 1 || graph::wrapDim(dims->front(), 3) != 1) return {};
    const ValueId weighted = m_spelling.viewed(summed);
    if (!weighted.isValid() || m_graph.shapeOf(weighted) != Shape{shape[0] * shape[1], shape[2]}) return {};
    Mixture found;
    const ValueId inOrder = putBack(weighted, found.rows);
    for (const auto& [out, share] : m_spelling.factors(inOrder)) {
      if (m_graph.shapeOf(share) != Shape{shape[0] * shape[1], 1}) continue;
      if (readExperts(out, share, shape, found)) return found;
    }
    return {};
  }

 private:
  /// The rows before `rows[inverse]` restored their order. `inverse` inverts a sort.
  ValueId putBack(ValueId weighted, Rows& rows) const {
    const auto [sorted, inverse] = m_spelling.picked(weighted);
    const ValueId order = sorted.isValid() ? m_spelling.inverseOf(inverse) : ValueId();
    const Node* sort = order.isValid() ? m_spelling.call(order, "aten::sort") : nullptr;
    if (!sort || m_spelling.resultIndex(order) != 1 || graph::flagAt(*sort, 2).value_or(false)) return weighted;
    rows.order = order;
    rows.flat = sort->results[0];
    rows.ids = m_spelling.viewed(graph::operandAt(*sort, 0));
    return sorted;
  }

  bool readExperts(ValueId out, ValueId share, const Shape& shape, Mixture& found) const {
    const auto down = productOf(out, found.rows);
    if (!down) return false;
    const auto activation = m_spelling.gatedActivation(down->input);
    const auto up = activation ? productOf(activation->input, found.rows) : std::nullopt;
    if (!up) return false;
    found.up = *up;
    found.down = *down;
    found.activation = *activation;
    found.tokens = tokensOf(up->input, shape, found.rows);
    found.shares = sharesOf(share, shape, found.rows);
    return found.tokens.isValid() && found.shares.isValid() && fits(found, shape);
  }

  /// A row's product with its expert's matrix, and the bias. Also fills in unknown fields of `rows`.
  std::optional<Product> productOf(ValueId value, Rows& rows) const {
    const Node* sum = m_spelling.call(value, "aten::add.Tensor");
    if (!sum || graph::numberAt(*sum, 2).value_or(1) != 1)
      return rows.order.isValid() ? grouped(value, rows) : batched(value, rows);
    for (const int first : {0, 1}) {
      const auto [table, ids] = m_spelling.picked(graph::operandAt(*sum, first == 0 ? 1 : 0));
      if (!m_spelling.isParameter(table) || m_graph.shapeOf(table).size() != 2) continue;
      const ValueId plain = graph::operandAt(*sum, static_cast<std::size_t>(first));
      auto product = rows.order.isValid() ? grouped(plain, rows) : batched(plain, rows);
      if (!product || !m_spelling.areAlike(ids, rows.flat)) continue;
      product->bias = table;
      return product;
    }
    return {};
  }

  /// `bmm(W[ids], x[:, :, None])`, or `bmm(x[:, None], W[ids])`, without the dimension of one.
  std::optional<Product> batched(ValueId value, Rows& rows) const {
    const Node* squeezed = m_spelling.call(value, "aten::squeeze.dim");
    const Node* product = squeezed ? m_spelling.call(graph::operandAt(*squeezed, 0), "aten::bmm") : nullptr;
    if (!product) return {};
    for (const bool isTransposed : {false, true}) {
      const auto [weight, ids] = m_spelling.picked(graph::operandAt(*product, isTransposed ? 1 : 0));
      const Node* row = m_spelling.call(graph::operandAt(*product, isTransposed ? 0 : 1), "aten::unsqueeze");
      if (!m_spelling.isParameter(weight) || !row || m_graph.shapeOf(weight).size() != 3) continue;
      const ValueId input = graph::operandAt(*row, 0);
      if (m_graph.shapeOf(row->results[0])[isTransposed ? 1 : 2] != 1 || m_graph.shapeOf(input).size() != 2) continue;
      if (!rows.flat.isValid()) rows = {m_spelling.viewed(ids), ids, {}};
      if (m_spelling.areAlike(ids, rows.flat)) return Product{input, weight, {}, isTransposed};
    }
    return {};
  }

  std::optional<Product> grouped(ValueId value, const Rows& rows) const {
    const Node* product = m_spelling.call(value, graph::kGroupedProduct);
    if (!product) return {};
    ValueId weight = m_spelling.withoutAliases(graph::operandAt(*product, 1));
    const Node* turned = m_spelling.call(weight, "aten::permute");
    const bool isTurned = turned && *graph::integersAt(*turned, 1) == std::vector<std::int64_t>{0, 2, 1};
    if (isTurned) weight = m_spelling.withoutAliases(graph::operandAt(*turned, 0));
    if (!m_spelling.isParameter(weight)) return {};
    if (!areEnds(graph::operandAt(*product, 2), m_graph.shapeOf(weight)[0], rows)) return {};
    return Product{m_spelling.withoutAliases(graph::operandAt(*product, 0)), weight, {}, !isTurned};
  }

  /// `cumsum(histc(ids, experts, 0, experts - 1))`: the end of each expert's rows.
  bool areEnds(ValueId value, std::int64_t experts, const Rows& rows) const {
    const Node* sum = m_spelling.call(value, "aten::cumsum");
    const Node* counts = sum ? m_spelling.call(graph::operandAt(*sum, 0), "aten::histc") : nullptr;
    if (!counts || graph::integerAt(*counts, 1) != experts || graph::numberAt(*counts, 2) != 0.0) return false;
    if (graph::numberAt(*counts, 3) != static_cast<double>(experts - 1)) return false;
    ValueId counted = graph::operandAt(*counts, 0);
    if (const Node* cast = m_spelling.call(counted, "aten::_to_copy")) counted = graph::operandAt(*cast, 0);
    return m_spelling.areAlike(counted, rows.flat);
  }

  /// The tokens of the rows: each one k times, in token order or sorted.
  ValueId tokensOf(ValueId rowsOfTokens, const Shape& shape, const Rows& rows) const {
    ValueId tokens;
    if (rows.order.isValid()) {
      const auto [all, at] = m_spelling.picked(rowsOfTokens);
      const ValueId order = all.isValid() ? m_spelling.quotient(at, shape[1]) : ValueId();
      if (order.isValid() && m_spelling.areAlike(order, rows.order)) tokens = all;
    } else {
      tokens = m_spelling.repeated(rowsOfTokens, shape[1]);
    }
    return tokens.isValid() && m_graph.shapeOf(tokens).size() == 2 ? m_spelling.withoutAliases(tokens) : ValueId();
  }

  /// Reshapes [S, 1] → [tokens, k].
  ValueId sharesOf(ValueId share, const Shape& shape, const Rows& rows) const {
    const Node* column = m_spelling.call(share, "aten::unsqueeze");
    ValueId flat = column ? graph::operandAt(*column, 0) : ValueId();
    if (!flat.isValid()) return {};
    if (rows.order.isValid()) {
      const auto [all, at] = m_spelling.picked(flat);
      if (!all.isValid() || !m_spelling.areAlike(at, rows.order)) return {};
      flat = all;
    }
    const ValueId shares = m_spelling.viewed(flat);
    return shares.isValid() && m_graph.shapeOf(shares) == Shape{shape[0], shape[1]} ? shares : ValueId();
  }

  /// True for indices of the best of `experts` scores. Other indices could be out of range.
  bool arePlaces(ValueId ids, std::int64_t experts) const {
    const auto isOf = [&](const Node* choice, std::size_t dim) {
      if (!choice || m_spelling.resultIndex(ids) + 1 != choice->results.size()) return false;
      const Shape& scores = m_graph.shapeOf(graph::operandAt(*choice, 0));
      const auto along = graph::wrapDim(graph::integerAt(*choice, dim).value_or(-1), static_cast<int>(scores.size()));
      return along && scores[static_cast<std::size_t>(*along)] <= experts;
    };
    if (const ValueId view = m_spelling.viewed(ids); view.isValid()) return arePlaces(view, experts);
    if (const Node* put = m_spelling.call(ids, "aten::unsqueeze")) return arePlaces(graph::operandAt(*put, 0), experts);
    if (const Node* part = m_spelling.call(ids, "aten::slice.Tensor"))
      return arePlaces(graph::operandAt(*part, 0), experts);
    return isOf(m_spelling.call(ids, "aten::topk"), 2) || isOf(m_spelling.call(ids, "aten::sort"), 1) ||
           isOf(m_spelling.call(ids, "aten::argmax"), 1);
  }

  /// Checks the sizes and the layout of the layer.
  bool fits(const Mixture& found, const Shape& shape) const {
    const bool inTurn = found.activation.name == graph::kClampedSwiglu;
    if (found.up.isTransposed != inTurn || found.down.isTransposed != inTurn) return false;
    const Shape &up = m_graph.shapeOf(found.up.weight), &down = m_graph.shapeOf(found.down.weight);
    const std::int64_t both = inTurn ? up[2] : up[1], hidden = shape[2];
    const Shape wantedUp = inTurn ? Shape{up[0], hidden, both} : Shape{up[0], both, hidden};
    const Shape wantedDown = inTurn ? Shape{up[0], both / 2, hidden} : Shape{up[0], hidden, both / 2};
    const auto isBias = [&](ValueId bias, std::int64_t features) {
      return !bias.isValid() || m_graph.shapeOf(bias) == Shape{up[0], features};
    };
    if (!isBias(found.up.bias, both) || !isBias(found.down.bias, hidden)) return false;
    if (!found.rows.ids.isValid() || !arePlaces(found.rows.ids, up[0])) return false;
    return both % 2 == 0 && up == wantedUp && down == wantedDown && found.up.weight != found.down.weight &&
           m_graph.shapeOf(found.rows.ids) == Shape{shape[0], shape[1]} &&
           m_graph.shapeOf(found.tokens) == Shape{shape[0], hidden};
  }

  const Graph& m_graph;
  const Spelling m_spelling;
};

/// The call that gives the mixture's result in the tokens' type: the sum, or the cast after it. Invalid if neither
/// does.
NodeId resultOf(const Graph& graph, NodeId sum, const Mixture& mixture) {
  const ValueId summed = graph.node(sum).results[0];
  const graph::DType wanted = graph.value(mixture.tokens).type.dtype;
  if (graph.value(summed).type.dtype == wanted) return sum;
  const auto& users = graph.value(summed).users;
  if (users.size() != 1 || graph.opName(graph.node(users[0])) != "aten::_to_copy") return {};
  return graph.value(graph.node(users[0]).results[0]).type.dtype == wanted ? users[0] : NodeId();
}

/// The biases of a token's experts, weighted by their shares: [tokens, hidden].
ValueId sharedOut(const Graph& graph, graph::Rewrite& rewrite, NodeId at, const Mixture& mixture) {
  const Shape& ids = graph.shapeOf(mixture.rows.ids);
  const std::int64_t hidden = graph.shapeOf(mixture.tokens)[1], rows = ids[0] * ids[1];
  const graph::DType dtype = graph.value(mixture.down.bias).type.dtype;
  const graph::TensorType shares = graph.value(mixture.shares).type;
  const Shape each{ids[0], ids[1], hidden};
  const ValueId flat = rewrite.insert(at, "aten::view", {mixture.rows.ids, Shape{rows}},
                                      {graph.value(mixture.rows.ids).type.dtype, {rows}});
  const ValueId picked =
      rewrite.insert(at, "aten::index_select", {mixture.down.bias, std::int64_t{0}, flat}, {dtype, {rows, hidden}});
  const ValueId taken = rewrite.insert(at, "aten::view", {picked, each}, {dtype, each});
  const ValueId columns =
      rewrite.insert(at, "aten::unsqueeze", {mixture.shares, std::int64_t{-1}}, {shares.dtype, {ids[0], ids[1], 1}});
  const ValueId weighted = rewrite.insert(at, "aten::mul.Tensor", {taken, columns}, {dtype, each});
  return rewrite.insert(at, "aten::sum.dim_IntList", {weighted, std::vector<std::int64_t>{1}, false, Argument()},
                        {dtype, {ids[0], hidden}});
}

}  // namespace

void makeExperts(Graph& graph) {
  const auto isMixing = [](const std::string& op) { return op == "aten::bmm" || op == graph::kGroupedProduct; };
  if (std::none_of(graph.ops.begin(), graph.ops.end(), isMixing)) return;
  std::vector<std::pair<NodeId, Mixture>> found;
  const Reading reading(graph);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const auto mixture = reading.mixtureOf(graph.node(id));
    const NodeId result = mixture ? resultOf(graph, id, *mixture) : NodeId();
    if (result.isValid()) found.emplace_back(result, *mixture);
  }
  graph::Rewrite rewrite(graph);
  for (const auto& [result, mixture] : found) {
    // The biases are added in the type of the sum, because half precision would round them.
    const bool isHalf = graph.value(mixture.tokens).type.dtype != graph.value(mixture.shares).type.dtype;
    if (mixture.down.bias.isValid() && isHalf) continue;
    const graph::TensorType type = graph.value(mixture.tokens).type;
    rewrite.moveTo(result, graph.node(graph.value(mixture.up.weight).producer).scope);
    std::vector<Argument> args{mixture.tokens,
                               mixture.rows.ids,
                               mixture.shares,
                               mixture.up.weight,
                               mixture.down.weight,
                               std::string(mixture.activation.name),
                               mixture.up.bias.isValid() ? Argument(mixture.up.bias) : Argument(),
                               mixture.activation.alpha,
                               mixture.activation.limit};
    if (!mixture.down.bias.isValid()) {
      rewrite.replace(result, graph::kMoeExperts, std::move(args));
      continue;
    }
    const ValueId sum = rewrite.insert(result, graph::kMoeExperts, std::move(args), type);
    const ValueId biases = sharedOut(graph, rewrite, result, mixture);
    rewrite.replace(result, "aten::add.Tensor", {sum, biases, std::int64_t{1}});
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
