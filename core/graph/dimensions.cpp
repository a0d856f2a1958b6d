#include "graph/dimensions.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/operators.h"

#include <algorithm>
#include <array>
#include <set>

namespace cleave::graph {
namespace {

using Meanings = std::vector<Meaning>;

class Finder {
 public:
  explicit Finder(const Graph& graph) : m_graph(graph), m_of(graph.values.size()) {}

  std::vector<Meanings> find() {
    findEnds();
    for (const NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      for (const ValueId result : m_graph.node(id).results)
        m_of[result.index()].assign(shape(result).size(), Meaning::Unknown);
      const Node& node = m_graph.node(id);
      if (node.kind == NodeKind::Input)
        input(node);
      else if (node.kind == NodeKind::Call && !node.results.empty())
        call(id, node);
    }
    return std::move(m_of);
  }

 private:
  const Shape& shape(ValueId value) const { return m_graph.shapeOf(value); }
  Meanings& of(ValueId value) { return m_of[value.index()]; }

  /// Finds the values that reach an output or the loss without another layer.
  void findEnds() {
    m_reachesEnd.assign(m_graph.values.size(), false);
    for (const Output& output : m_graph.outputs) m_reachesEnd[output.value.index()] = true;
    for (std::size_t i = m_graph.nodes.size(); i-- > 0;) {
      const Node& node = m_graph.node(NodeId(i));
      if (node.kind != NodeKind::Call) continue;
      const auto made = mayBeLayer(m_graph.opName(node)) ? layerShape(m_graph, NodeId(i)) : std::nullopt;
      if (made && made->kind == LayerKind::CrossEntropy) m_reachesEnd[made->input.index()] = true;
      const bool isOnTheWay =
          std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return m_reachesEnd[v.index()]; });
      if (made || !isOnTheWay) continue;
      for (const ValueId operand : operandsOf(node)) m_reachesEnd[operand.index()] = true;
    }
  }

  /// Token ids, labels, positions, masks: [batch, sequence].
  void input(const Node& node) {
    Meanings& meanings = of(node.results[0]);
    if (!isReal(m_graph, node.results[0]) && meanings.size() == 2) meanings = {Meaning::Batch, Meaning::Sequence};
  }

  void call(NodeId id, const Node& node) {
    if (mayBeLayer(m_graph.opName(node)))
      if (const auto made = layerShape(m_graph, id)) return layer(*made, node.results[0]);
    const std::vector<ValueId> operands = operandsOf(node);
    if (operands.empty()) return;
    const DimsFrom dims = operatorOf(m_graph.opName(node)).dims;
    for (const ValueId result : node.results) {
      switch (dims) {
        case DimsFrom::Regrouped: reshape(operands[0], result); break;
        case DimsFrom::Permuted: permute(node, operands[0], result); break;
        case DimsFrom::First: copy(operands[0], result); break;
        case DimsFrom::Product: product(operands, result); break;
        case DimsFrom::Dropped: dropOrAdd(operands[0], result); break;
        case DimsFrom::Aligned:
          if (isReduction(operands, result)) {
            dropOrAdd(operands[0], result);
          } else {
            for (const ValueId operand : operands) align(operand, result);
          }
      }
    }
  }

  void layer(const LayerShape& made, ValueId result) {
    Meanings& out = of(result);
    if (out.empty()) return;
    if (made.kind == LayerKind::CrossEntropy) return;
    const Meanings& in = of(made.input);
    for (std::size_t i = 0; i + 1 < out.size() && i < in.size(); ++i) out[i] = in[i];
    if (made.kind == LayerKind::Embedding)
      m_vocabularies.insert(shape(made.weight)[static_cast<std::size_t>(made.outAxis)]);
    const bool makesClasses =
        made.kind == LayerKind::Linear && m_vocabularies.contains(shape(result).back()) && m_reachesEnd[result.index()];
    out.back() = makesClasses ? Meaning::Vocabulary : Meaning::Features;
  }

  /// Matches runs of dimensions with equal products on both sides.
  void reshape(ValueId from, ValueId to) {
    const Shape &a = shape(from), &b = shape(to);
    const Meanings& in = of(from);
    Meanings& out = of(to);
    std::size_t i = 0, k = 0;
    while (i < a.size() && k < b.size()) {
      const std::size_t i0 = i, k0 = k;
      std::int64_t left = a[i++], right = b[k++];
      while (left != right) {
        if (left < right ? i == a.size() : k == b.size()) return;
        left < right ? left *= a[i++] : right *= b[k++];
      }
      regroup(in, i0, i, out, k0, k);
    }
  }

  static void regroup(const Meanings& in, std::size_t i0, std::size_t i1, Meanings& out, std::size_t k0,
                      std::size_t k1) {
    const bool isSplit = i1 - i0 == 1 && k1 - k0 == 2, isMerge = i1 - i0 == 2 && k1 - k0 == 1;
    if (i1 - i0 == 1 && k1 - k0 == 1) {
      out[k0] = in[i0];
    } else if (isSplit && in[i0] == Meaning::Features) {
      out[k0] = Meaning::Heads, out[k0 + 1] = Meaning::HeadSize;
    } else if (isSplit && in[i0] == Meaning::Tokens) {
      out[k0] = Meaning::Batch, out[k0 + 1] = Meaning::Sequence;
    } else if (isMerge && in[i0] == Meaning::Heads && in[i0 + 1] == Meaning::HeadSize) {
      out[k0] = Meaning::Features;
    } else if (isMerge && in[i0] == Meaning::Batch && in[i0 + 1] == Meaning::Sequence) {
      out[k0] = Meaning::Tokens;
    } else if (isMerge && in[i0] == Meaning::Heads) {
      out[k0] = Meaning::Heads;  // copies of KV heads, one for each query head
    }
  }

  void permute(const Node& node, ValueId from, ValueId to) {
    const Meanings& in = of(from);
    Meanings& out = of(to);
    const auto rank = static_cast<int>(in.size());
    const auto* order = integersAt(node, 1);
    if (order && order->size() == out.size()) {
      for (std::size_t i = 0; i < out.size(); ++i)
        if (const auto dim = wrapDim((*order)[i], rank); dim && *dim < rank)
          out[i] = in[static_cast<std::size_t>(*dim)];
      return;
    }
    out = in;
    const auto first = integerAt(node, 1), second = integerAt(node, 2);
    if (first && second) {
      const auto a = wrapDim(*first, rank), b = wrapDim(*second, rank);
      if (a && b && rank > 0) std::swap(out[static_cast<std::size_t>(*a)], out[static_cast<std::size_t>(*b)]);
    } else if (out.size() == 2) {
      std::swap(out[0], out[1]);
    }
  }

  /// Rows from the left, columns from the right, leading dimensions from either.
  void product(const std::vector<ValueId>& operands, ValueId result) {
    if (operands.size() < 2) return;
    const ValueId left = operands[operands.size() - 2], right = operands.back();
    Meanings& out = of(result);
    const Meanings &a = of(left), &b = of(right);
    if (a.size() != out.size() || out.size() < 2) return;
    std::copy(a.begin(), a.end() - 1, out.begin());
    if (!b.empty()) out.back() = b.back();
  }

  bool isReduction(const std::vector<ValueId>& operands, ValueId result) const {
    return shape(operands[0]).size() != shape(result).size() && operands.size() == 1;
  }

  /// Equal sizes match in order. A removed or new dimension is skipped if that is unambiguous.
  void dropOrAdd(ValueId from, ValueId to) {
    const Shape &a = shape(from), &b = shape(to);
    if (a.size() == b.size()) return align(from, to);
    const bool isLess = a.size() > b.size();
    const Shape &more = isLess ? a : b, &less = isLess ? b : a;
    std::size_t front = 0;
    while (front < less.size() && more[front] == less[front]) ++front;
    std::size_t back = 0;
    while (back + front < less.size() && more[more.size() - 1 - back] == less[less.size() - 1 - back]) ++back;
    if (front + back != less.size()) return;
    // Neighbours with the size of the removed dimension are ambiguous. Only dimensions before or after all of them are
    // certain.
    while (front > 0 && more[front - 1] == more[front]) --front;
    while (back > 0 && more[more.size() - back] == more[more.size() - 1 - back]) --back;
    const Meanings& in = of(from);
    Meanings& out = of(to);
    std::copy(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(front), out.begin());
    std::copy(in.end() - static_cast<std::ptrdiff_t>(back), in.end(), out.end() - static_cast<std::ptrdiff_t>(back));
  }

  void copy(ValueId from, ValueId to) {
    if (of(from).size() == of(to).size()) of(to) = of(from);
  }

  /// Aligns as broadcasting does: from the right, if sizes agree or a part of the dimension is left.
  void align(ValueId from, ValueId to) {
    const Shape &a = shape(from), &b = shape(to);
    for (std::size_t back = 1; back <= a.size() && back <= b.size(); ++back) {
      Meaning& out = of(to)[b.size() - back];
      const std::int64_t from1 = a[a.size() - back], to1 = b[b.size() - back];
      if (out == Meaning::Unknown && (from1 == to1 || (a.size() == b.size() && from1 != 1)))
        out = of(from)[a.size() - back];
    }
  }

  const Graph& m_graph;
  std::vector<Meanings> m_of;
  std::set<std::int64_t> m_vocabularies;  ///< vocabulary sizes of the embeddings so far
  std::vector<bool> m_reachesEnd;
};

}  // namespace

std::string_view toText(Meaning meaning) {
  static constexpr std::array<std::string_view, kMeanings> kNames{
      "", "batch", "sequence", "tokens", "heads", "head size", "features", "vocabulary", "experts"};
  return kNames[static_cast<std::size_t>(meaning)];
}

std::vector<std::vector<Meaning>> dimensionMeanings(const Graph& graph) { return Finder(graph).find(); }

}  // namespace cleave::graph
