#include "solve/optimal/layout.h"

#include "solve/candidates/frontier.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

/// Finds the steps whose values are R in every plan.
void findFixed(const Pricing& pricing, PricedTable& table, Layout& layout) {
  const Variables& variables = pricing.variables;
  layout.isFixed.assign(pricing.problem.graph->values.size(), false);
  for (const NodeId node : variables.deciders()) {
    const auto reads = variables.reads(node);
    const bool isFree =
        variables.layer(node) || variables.redistributes(node) ||
        !std::all_of(reads.begin(), reads.end(), [&](const Read& r) { return layout.isFixed[r.value.index()]; });
    if (isFree) {
      layout.order.push_back(node);
      continue;
    }
    const IdTuple replicated(reads.size(), kReplicated);
    auto row = table.row(pricing, node, table.classOf(pricing, node), replicated);
    if (row->open.empty()) {
      layout.impossible = node;
      return;
    }
    // A source with a part per head, and copies of one head, may be split although all operands are R.
    const auto writes = row->open.front().writes;
    if (row->open.size() > 1 || std::any_of(writes.begin(), writes.end(), [](auto id) { return id != kReplicated; })) {
      layout.order.push_back(node);
      continue;
    }
    for (const ValueId value : variables.writes(node)) layout.isFixed[value.index()] = true;
    layout.fixed.push_back({node, std::move(row)});
  }
}

/// Largest number of live values.
std::size_t widthOf(const Pricing& pricing, const Layout& layout, const std::vector<NodeId>& order) {
  const auto last = lastReads(pricing.variables, pricing.problem.graph->values.size(), order);
  std::vector<std::uint32_t> endingAt(order.size() + 1, 0);
  std::size_t live = 0, widest = 0;
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    for (const ValueId value : pricing.variables.writes(order[place])) {
      if (!value.isValid() || last[value.index()] <= place + 1 || layout.isFixed[value.index()]) continue;
      ++live;
      ++endingAt[last[value.index()]];
    }
    live -= endingAt[place + 1];
    widest = std::max(widest, live);
  }
  return widest;
}

/// Depth first from the outputs: a step follows the steps that only it needs. Steps that no output needs come last.
std::vector<NodeId> lazyOrder(const Pricing& pricing, const Layout& layout) {
  const Graph& graph = *pricing.problem.graph;
  enum class Mark : std::uint8_t { New, Open, Done };
  std::vector<Mark> marks(graph.nodes.size(), Mark::Done);
  std::vector<NodeId> placedBy(graph.values.size());  // invalid: fixed
  for (const NodeId node : layout.order) {
    marks[node.index()] = Mark::New;
    for (const ValueId value : pricing.variables.writes(node)) {
      if (value.isValid()) placedBy[value.index()] = node;
    }
  }
  std::vector<NodeId> order, stack;
  const auto visit = [&](NodeId root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      Mark& mark = marks[node.index()];
      if (mark != Mark::New) {
        if (mark == Mark::Open) order.push_back(node);
        mark = Mark::Done;
        stack.pop_back();
        continue;
      }
      mark = Mark::Open;
      const auto reads = pricing.variables.reads(node);
      for (std::size_t i = reads.size(); i-- > 0;) {
        const NodeId producer = placedBy[reads[i].value.index()];
        if (producer.isValid() && marks[producer.index()] == Mark::New) stack.push_back(producer);
      }
    }
  };
  for (const auto& output : graph.outputs) visit(pricing.variables.decider(graph.value(output.value).producer));
  for (const NodeId node : layout.order) visit(node);
  return order;
}

}  // namespace

Layout layoutOf(const Pricing& pricing, PricedTable& table) {
  Layout layout;
  findFixed(pricing, table, layout);
  if (layout.impossible.isValid()) return layout;
  auto lazy = lazyOrder(pricing, layout);
  if (widthOf(pricing, layout, lazy) < widthOf(pricing, layout, layout.order)) layout.order = std::move(lazy);
  layout.isInOrder = std::is_sorted(layout.order.begin(), layout.order.end());
  return layout;
}

}  // namespace cleave::solve::optimal
