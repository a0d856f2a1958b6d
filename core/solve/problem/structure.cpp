#include "solve/problem/structure.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using graph::Argument;
using graph::ValueList;

void mixType(std::size_t& seed, const Graph& graph, ValueId value) {
  if (!value.isValid()) return mixHash(seed, 0x5eed);
  const auto& type = graph.value(value).type;
  mixHash(seed, static_cast<std::size_t>(type.dtype));
  for (std::int64_t size : type.shape) mixHash(seed, static_cast<std::size_t>(size));
}

void mixArgument(std::size_t& seed, const Graph& graph, const Argument& argument) {
  mixHash(seed, argument.index());
  if (const auto* value = std::get_if<ValueId>(&argument)) return mixType(seed, graph, *value);
  if (const auto* list = std::get_if<ValueList>(&argument)) {
    for (ValueId v : *list) mixType(seed, graph, v);
  } else if (const auto* integer = std::get_if<std::int64_t>(&argument)) {
    mixHash(seed, static_cast<std::size_t>(*integer));
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&argument)) {
    for (std::int64_t i : *integers) mixHash(seed, static_cast<std::size_t>(i));
  }
}

bool sameType(const Graph& graph, ValueId a, ValueId b) {
  if (a.isValid() != b.isValid()) return false;
  return !a.isValid() || graph.value(a).type == graph.value(b).type;
}

bool sameArgument(const Graph& graph, const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (const auto* value = std::get_if<ValueId>(&a)) return sameType(graph, *value, std::get<ValueId>(b));
  if (const auto* list = std::get_if<ValueList>(&a)) {
    const auto& other = std::get<ValueList>(b);
    return std::equal(list->begin(), list->end(), other.begin(), other.end(),
                      [&](ValueId x, ValueId y) { return sameType(graph, x, y); });
  }
  return a == b;
}

/// True if the same positions read the same tensor: mul(x, x) differs from mul(x, y).
bool sameSharing(std::span<const Read> a, std::span<const Read> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].role != b[i].role) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if ((a[i].value == a[j].value) != (b[i].value == b[j].value)) return false;
    }
  }
  return true;
}

bool sameLayer(const Graph& graph, const std::optional<graph::LayerShape>& a,
               const std::optional<graph::LayerShape>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return true;
  return a->kind == b->kind && a->outAxis == b->outAxis && a->inAxis == b->inAxis &&
         sameType(graph, a->weight, b->weight) && sameType(graph, a->bias, b->bias) &&
         sameType(graph, a->input, b->input) && sameType(graph, a->target, b->target);
}

}  // namespace

std::size_t structureHash(const Graph& graph, const Variables& variables, NodeId node) {
  const graph::Node& n = graph.node(node);
  std::size_t seed = static_cast<std::size_t>(n.kind);
  if (n.kind != graph::NodeKind::Call) return seed;
  mixHash(seed, n.op.raw());
  mixHash(seed, variables.reads(node).size());
  for (const Argument& argument : n.args) mixArgument(seed, graph, argument);
  for (ValueId result : n.results) mixType(seed, graph, result);
  return seed;
}

bool sameStructure(const Graph& graph, const Variables& variables, NodeId a, NodeId b) {
  const graph::Node& x = graph.node(a);
  const graph::Node& y = graph.node(b);
  if (x.kind != y.kind) return false;
  if (x.kind != graph::NodeKind::Call) return true;
  if (x.op != y.op || x.args.size() != y.args.size() || x.results.size() != y.results.size()) return false;
  const auto readsX = variables.reads(a);
  const auto readsY = variables.reads(b);
  if (readsX.size() != readsY.size() || !sameSharing(readsX, readsY)) return false;
  for (std::size_t i = 0; i < x.args.size(); ++i) {
    if (!sameArgument(graph, x.args[i], y.args[i])) return false;
  }
  for (std::size_t i = 0; i < x.results.size(); ++i) {
    if (!sameType(graph, x.results[i], y.results[i])) return false;
  }
  return sameLayer(graph, variables.layer(a), variables.layer(b));
}

}  // namespace cleave::solve
