#include "graph/rewrite.h"

#include "base/characters.h"
#include "graph/arguments.h"
#include "graph/op_names.h"
#include "graph/operators.h"

#include <algorithm>

namespace cleave::graph {
namespace {

/// New indices of kept items, by old index.
template <class Id>
class Numbers {
 public:
  explicit Numbers(std::size_t count) : m_new(count) {}
  void keep(Id old) { m_new[old.index()] = Id(m_count++); }
  Id operator()(Id old) const { return old.isValid() ? m_new[old.index()] : old; }

 private:
  std::vector<Id> m_new;
  std::uint32_t m_count = 0;
};

void renumber(Node& node, const Numbers<ValueId>& values) {
  changeOperands(node.args, values);
  std::ranges::transform(node.results, node.results.begin(), values);
}

}  // namespace

Rewrite::Rewrite(Graph& graph) : m_graph(graph), m_mayGo(graph.values.size()), m_isIdle(graph.nodes.size()) {
  for (const Output& output : graph.outputs) m_mayGo[output.value.index()] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const auto wasRead = [&](ValueId value) { return m_mayGo[value.index()]; };
    m_isIdle[i] = node.kind == NodeKind::Call && isView(graph.opName(node)) &&
                  std::none_of(node.results.begin(), node.results.end(), wasRead);
    if (!m_isIdle[i]) forEachOperand(node, [&](ValueId value) { m_mayGo[value.index()] = true; });
  }
}

OpId Rewrite::opNamed(std::string_view op) {
  auto at = std::find(m_graph.ops.begin(), m_graph.ops.end(), op);
  if (at == m_graph.ops.end()) at = m_graph.ops.insert(m_graph.ops.end(), std::string(op));
  return OpId(static_cast<std::uint32_t>(at - m_graph.ops.begin()));
}

std::string Rewrite::freshName(std::string_view op) {
  const std::string stem = std::string(shortName(op)) + '_';
  const auto [next, isNew] = m_names.try_emplace(stem, 0);
  if (isNew) {
    for (const Value& value : m_graph.values) {
      if (!value.name.starts_with(stem)) continue;
      const std::string number = value.name.substr(stem.size());
      const bool isNumber =
          !number.empty() && number.size() < 9 && std::all_of(number.begin(), number.end(), isAsciiDigit);
      if (isNumber) next->second = std::max(next->second, static_cast<std::uint32_t>(std::stoul(number)) + 1);
    }
  }
  return stem + std::to_string(next->second++);
}

void Rewrite::replace(NodeId call, std::string_view op, std::vector<Argument> args) {
  complete(call, op, std::move(args));
  m_graph.values[m_graph.node(call).results.front().index()].name = freshName(op);
}

void Rewrite::complete(NodeId call, std::string_view op, std::vector<Argument> args) {
  Node& node = m_graph.nodes[call.index()];
  node.op = opNamed(op);
  node.args = std::move(args);
  m_isChanged = true;
}

void Rewrite::replaceByConstant(NodeId call, std::vector<std::byte> data) {
  Node& node = m_graph.nodes[call.index()];
  node.kind = NodeKind::Constant;
  node.op = {};
  node.args.clear();
  m_graph.constants[call.raw()] = std::move(data);
  m_isChanged = true;
}

void Rewrite::moveTo(NodeId call, ScopeId scope) {
  m_graph.nodes[call.index()].scope = scope;
  m_isChanged = true;
}

ValueId Rewrite::insert(NodeId before, std::string_view op, std::vector<Argument> args, TensorType result) {
  const Node& at = m_graph.node(before);
  const ValueId id(static_cast<std::uint32_t>(m_graph.values.size() + m_inserted.size()));
  Node node{.op = opNamed(op),
            .args = std::move(args),
            .results = {id},
            .scope = at.scope,
            .origin = at.origin,
            .source = at.source};
  m_inserted.push_back({before, std::move(node), {.name = freshName(op), .type = std::move(result)}});
  m_isChanged = true;
  return id;
}

void Rewrite::dropUnread(const std::function<bool(const Node&)>& mustStay) {
  m_isIdle.assign(m_graph.nodes.size(), false);
  for (const Node& node : m_graph.nodes) {
    const bool mayGo = !mustStay(node);
    for (const ValueId result : node.results) m_mayGo[result.index()] = mayGo;
  }
  m_isChanged = true;
}

/// Calls that had readers and lost all of them, readers first so that chains go completely. Then the idle views of
/// removed values.
std::vector<bool> Rewrite::gone() const {
  std::vector<std::uint32_t> readers(m_graph.values.size() + m_inserted.size(), 0);
  const auto count = [&](const Node& node) { forEachOperand(node, [&](ValueId value) { ++readers[value.index()]; }); };
  for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
    if (!m_isIdle[i]) count(m_graph.nodes[i]);
  }
  for (const Inserted& one : m_inserted) count(one.node);
  for (const Output& output : m_graph.outputs) ++readers[output.value.index()];
  std::vector<bool> isGone(m_graph.nodes.size(), false);
  for (std::size_t i = m_graph.nodes.size(); i-- > 0;) {
    const Node& node = m_graph.nodes[i];
    if (m_isIdle[i] || (node.kind != NodeKind::Call && node.kind != NodeKind::Constant)) continue;
    const auto isRead = [&](ValueId value) { return readers[value.index()] > 0; };
    const auto mayGo = [&](ValueId value) { return m_mayGo[value.index()]; };
    if (std::any_of(node.results.begin(), node.results.end(), isRead) ||
        std::none_of(node.results.begin(), node.results.end(), mayGo))
      continue;
    isGone[i] = true;
    forEachOperand(node, [&](ValueId value) { --readers[value.index()]; });
  }
  for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
    if (!m_isIdle[i]) continue;
    forEachOperand(m_graph.nodes[i], [&](ValueId value) {
      if (isGone[m_graph.value(value).producer.index()]) isGone[i] = true;
    });
  }
  return isGone;
}

bool Rewrite::apply() && {
  if (!m_isChanged) return false;
  const std::vector<bool> isGone = gone();
  std::ranges::stable_sort(m_inserted, {}, [](const Inserted& one) { return one.before.raw(); });
  const std::size_t all = m_graph.nodes.size();
  Numbers<NodeId> nodes(all + m_inserted.size());
  Numbers<ValueId> values(m_graph.values.size() + m_inserted.size());
  std::vector<Node> keptNodes;
  std::vector<Value> keptValues;
  const auto keep = [&](NodeId id, Node& node, auto&& valueOf) {
    nodes.keep(id);
    for (const ValueId result : node.results) {
      values.keep(result);
      keptValues.push_back(std::move(valueOf(result)));
      keptValues.back().producer = id;
    }
    keptNodes.push_back(std::move(node));
  };
  auto next = m_inserted.begin();
  for (const NodeId id : idRange<NodeId>(all)) {
    for (; next != m_inserted.end() && next->before == id; ++next) {
      const NodeId own(static_cast<std::uint32_t>(all + std::size_t(next - m_inserted.begin())));
      keep(own, next->node, [&](ValueId) -> Value& { return next->value; });
    }
    if (isGone[id.index()]) continue;
    keep(id, m_graph.nodes[id.index()], [&](ValueId value) -> Value& { return m_graph.values[value.index()]; });
  }
  std::unordered_map<std::uint32_t, std::vector<std::byte>> constants;
  for (auto& [raw, bytes] : m_graph.constants) {
    if (!isGone[raw]) constants.emplace(nodes(NodeId(raw)).raw(), std::move(bytes));
  }
  for (Node& node : keptNodes) renumber(node, values);
  for (Value& value : keptValues) value.producer = nodes(value.producer);
  for (Output& output : m_graph.outputs) output.value = values(output.value);
  m_graph.nodes = std::move(keptNodes);
  m_graph.values = std::move(keptValues);
  m_graph.constants = std::move(constants);
  fillUsers(m_graph);
  return true;
}

}  // namespace cleave::graph
