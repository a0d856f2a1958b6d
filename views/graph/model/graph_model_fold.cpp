// Which nodes and values of a graph are not drawn as boxes and lines: noise, docked weights, hubs, helpers.
#include <algorithm>
#include <array>
#include <set>

#include "graph/layers.h"
#include "views/graph/model/graph_model_builder.h"

namespace cleave::views {

using graph::NodeKind;

namespace {

constexpr std::size_t kManySiblings = 3;  // read in this number of sibling modules: a hub
constexpr std::uint32_t kFarRanks = 8;    // an edge over more ranks than this is long
constexpr std::size_t kMinRotary = 4;     // minimum number of operators for a group

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void GraphModelBuilder::findNoise() {
  m_model.m_source.resize(g().values.size());
  m_model.m_isNoise.assign(g().nodes.size(), false);
  for (const ValueId v : idRange<ValueId>(g().values.size())) m_model.m_source[v.index()] = v;
  if (!m_options.foldNoise) return;
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    const graph::Node& node = g().node(n);
    if (node.kind != NodeKind::Call) continue;
    const std::string_view op = shortOp(n);
    bool isNoise = node.results.empty();  // asserts
    if (node.results.size() == 1) {
      const auto operands = graph::operandsOf(node);
      if (operands.size() == 1) {
        const auto& before = g().value(operands[0]).type;
        const auto& after = g().value(node.results[0]).type;
        isNoise = before == after &&
                  isOneOf(op, {"alias", "detach", "lift_fresh", "lift_fresh_copy", "contiguous", "clone", "_to_copy",
                               "to", "view", "_unsafe_view", "reshape", "expand", "slice", "dropout"});
        if (isNoise) m_model.m_source[node.results[0].index()] = m_model.m_source[operands[0].index()];
      }
    }
    m_model.m_isNoise[n.index()] = isNoise;
  }
  findUnread();
  m_model.m_noiseCount = static_cast<std::size_t>(std::count(m_model.m_isNoise.begin(), m_model.m_isNoise.end(), true));
}

/// Calls that lead to no output. Exported programs keep results that their code computed and never used.
void GraphModelBuilder::findUnread() {
  if (g().outputs.empty()) return;
  std::vector<bool> isRead(g().values.size(), false);
  for (const graph::Output& output : g().outputs) isRead[output.value.index()] = true;
  for (std::size_t i = g().nodes.size(); i-- > 0;) {
    const graph::Node& node = g().nodes[i];
    if (node.kind != NodeKind::Call) continue;
    const bool leadsOn =
        std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return isRead[result.index()]; });
    if (leadsOn)
      graph::forEachOperand(node, [&](ValueId operand) { isRead[operand.index()] = true; });
    else
      m_model.m_isNoise[i] = true;
  }
}

void GraphModelBuilder::findReaders() {
  m_model.m_readers.resize(g().values.size());
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    if (!isShownCall(n)) continue;
    for (const ValueId operand : graph::operandsOf(g().node(n))) {
      auto& readers = m_model.m_readers[m_model.m_source[operand.index()].index()];
      if (readers.empty() || readers.back() != n) readers.push_back(n);
    }
  }
}

void GraphModelBuilder::findHubs() {
  m_model.m_isHub.assign(g().values.size(), false);
  for (const ValueId v : idRange<ValueId>(g().values.size())) {
    if (m_model.m_source[v.index()] != v) continue;
    const NodeKind kind = g().node(producerOf(v)).kind;
    const bool isStored = kind == NodeKind::Parameter || kind == NodeKind::Constant;
    m_model.m_isHub[v.index()] = isStored ? m_model.m_readers[v.index()].size() > 1 : isSpreadOut(v);
  }
}

/// True if many sibling modules read it at some level, or several modules of one list (cos and sin of a model with two
/// layers).
bool GraphModelBuilder::isSpreadOut(ValueId value) const {
  const auto& readers = m_model.m_readers[value.index()];
  if (readers.size() < 2) return false;
  std::set<std::pair<ModuleId, ModuleId>> seen;  // parent, child
  for (const NodeId reader : readers) {
    for (ModuleId id = m_model.m_nodeModule[reader.index()]; id.isValid() && id != m_model.root();
         id = m_model.module(id).parent)
      if (!seen.insert({m_model.module(id).parent, id}).second) break;
  }
  for (auto it = seen.begin(); it != seen.end();) {
    std::size_t siblings = 0, listed = 0;
    const ModuleId parent = it->first;
    for (; it != seen.end() && it->first == parent; ++it) {
      ++siblings;
      listed += m_model.module(it->second).listIndex >= 0;
    }
    if (siblings >= kManySiblings || listed >= 2) return true;
  }
  return false;
}

/// Hubs that only the layout shows: values with two far readers in one module, or inputs read far below.
bool GraphModelBuilder::findFarHubs() {
  bool found = false;
  for (const Module& module : m_model.m_modules) {
    std::vector<std::uint32_t> rank(module.members.size(), 0);
    for (const MemberEdge& e :
         module.edges)  // sorted by `from`; members are in topological order except for rare cycles
      if (e.from != MemberEdge::kOutside && e.to != MemberEdge::kOutside && e.from < e.to)
        rank[e.to] = std::max(rank[e.to], rank[e.from] + 1);
    std::unordered_map<std::uint32_t, int> farReaders;
    for (const MemberEdge& e : module.edges) {
      if (e.from == MemberEdge::kOutside || e.to == MemberEdge::kOutside) continue;
      const bool isInput = g().node(producerOf(e.value)).kind == NodeKind::Input;
      if (rank[e.to] > rank[e.from] + kFarRanks) farReaders[e.value.raw()] += isInput ? 2 : 1;
    }
    for (const auto& [value, count] : farReaders) {
      if (count < 2) continue;
      m_model.m_isHub[value] = true;
      found = true;
    }
  }
  return found;
}

void GraphModelBuilder::trim() {
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    if (!isShownCall(n)) continue;
    Trimmings& trimmings = m_model.m_trimmings[n.index()];
    for (const ValueId operand : graph::operandsOf(g().node(n))) {
      const ValueId v = m_model.m_source[operand.index()];
      const NodeKind kind = g().node(producerOf(v)).kind;
      const bool isStored = kind == NodeKind::Parameter || kind == NodeKind::Constant;
      auto& list = m_model.isHub(v) ? trimmings.hubs : trimmings.docked;
      if (!m_model.isHub(v) && !isStored) continue;
      if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
      if (!m_model.isHub(v)) m_model.m_shownNode[producerOf(v).index()] = n;
    }
  }
}

// ---- rotary helpers

/// From an operand of a product back through halves, negations and joins to the whole tensor that was rotated.
bool GraphModelBuilder::traceHalves(NodeId from, ValueId whole, std::vector<NodeId>& found) const {
  std::vector<NodeId> pending{from};
  const ModuleId home = m_model.m_nodeModule[from.index()];
  while (!pending.empty()) {
    const NodeId n = pending.back();
    pending.pop_back();
    if (std::find(found.begin(), found.end(), n) != found.end()) continue;
    if (found.size() > 16 || !isShownCall(n) || m_model.m_nodeModule[n.index()] != home) return false;
    if (!isOneOf(shortOp(n), {"cat", "neg", "slice", "split", "split_with_sizes", "chunk", "stack", "select", "unbind",
                              "view", "unsqueeze", "narrow", "flatten"}))
      return false;
    found.push_back(n);
    for (const ValueId operand : graph::operandsOf(g().node(n)))
      if (const ValueId v = m_model.m_source[operand.index()]; v != whole) pending.push_back(producerOf(v));
  }
  return true;
}

/// x·cos + rotated(x)·sin, where rotated(x) joins a negated and a plain half of x.
bool GraphModelBuilder::matchRotary(NodeId add, std::vector<NodeId>& found) const {
  if (shortOp(add) != "add") return false;
  const auto terms = graph::operandsOf(g().node(add));
  if (terms.size() != 2) return false;
  std::array<NodeId, 2> products;
  for (int i = 0; i < 2; ++i) {
    products[i] = producerOf(m_model.m_source[terms[i].index()]);
    if (!isShownCall(products[i]) || shortOp(products[i]) != "mul") return false;
    if (m_model.m_nodeModule[products[i].index()] != m_model.m_nodeModule[add.index()]) return false;
  }
  for (int plain = 0; plain < 2; ++plain) {
    for (const ValueId whole : graph::operandsOf(g().node(products[plain]))) {
      for (const ValueId rotated : graph::operandsOf(g().node(products[1 - plain]))) {
        const NodeId join = producerOf(m_model.m_source[rotated.index()]);
        if (!isShownCall(join) || !isOneOf(shortOp(join), {"cat", "view", "flatten"})) continue;
        std::vector<NodeId> halves;
        if (!traceHalves(join, m_model.m_source[whole.index()], halves)) continue;
        found = std::move(halves);
        found.insert(found.end(), {products[0], products[1], add});
        return true;
      }
    }
  }
  return false;
}

void GraphModelBuilder::groupRotary() {
  std::unordered_map<std::uint32_t, std::set<NodeId>> byModule;
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    std::vector<NodeId> found;
    if (isShownCall(n) && matchRotary(n, found))
      byModule[m_model.m_nodeModule[n.index()].raw()].insert(found.begin(), found.end());
  }
  std::vector<std::uint32_t> homes;
  for (const auto& [home, nodes] : byModule) homes.push_back(home);
  std::sort(homes.begin(), homes.end());
  for (const std::uint32_t home : homes) {
    std::set<NodeId>& nodes = byModule[home];
    if (nodes.size() < kMinRotary) continue;
    // Operators that only fit cos and sin to these products (unsqueeze of a hub) belong to the group.
    for (std::uint32_t i = nodes.rbegin()->raw(); i-- > 0;) {
      const NodeId n(i);
      if (m_model.m_nodeModule[i] != ModuleId(home) || !isShownCall(n) || nodes.contains(n)) continue;
      const auto operands = graph::operandsOf(g().node(n));
      const auto& results = g().node(n).results;
      const bool readsHubs = !operands.empty() && std::all_of(operands.begin(), operands.end(), [&](ValueId v) {
        return m_model.isHub(m_model.m_source[v.index()]);
      });
      const bool feedsOnly =
          readsHubs && std::all_of(results.begin(), results.end(), [&](ValueId v) {
            const auto& readers = m_model.m_readers[v.index()];
            return !m_model.isHub(v) && !readers.empty() &&
                   std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return nodes.contains(r); });
          });
      if (feedsOnly) nodes.insert(n);
    }
    const ModuleId group = addModule(ModuleKind::Rotary, ScopeId(), ModuleId(home), "rotary");
    for (const NodeId n : nodes) m_model.m_nodeModule[n.index()] = group;
  }
}

// ---- operators that prepare hubs

void GraphModelBuilder::groupShared() {
  std::vector<bool> prepares(g().nodes.size(), false);
  std::vector<std::uint32_t> preparing(m_model.m_modules.size(), 0);
  std::vector<bool> isOutput(g().values.size(), false);
  for (const graph::Output& output : g().outputs) isOutput[m_model.m_source[output.value.index()].index()] = true;
  for (std::size_t i = g().nodes.size(); i-- > 0;) {
    const NodeId n(i);
    // An encoder that a decoder reads everywhere is a model of its own, not a hub's preparation.
    if (!isShownCall(n) || graph::layerShape(g(), n)) continue;
    const auto& results = g().node(n).results;
    prepares[i] = std::all_of(results.begin(), results.end(), [&](ValueId v) {
      const auto& readers = m_model.m_readers[v.index()];
      if (isOutput[v.index()]) return false;
      return m_model.isHub(v) || (!readers.empty() && std::all_of(readers.begin(), readers.end(),
                                                                  [&](NodeId r) { return prepares[r.index()]; }));
    });
    if (prepares[i])
      for (ModuleId id = m_model.m_nodeModule[i]; id.isValid(); id = m_model.module(id).parent) ++preparing[id.index()];
  }
  std::vector<NodeId> nodes;
  std::vector<ModuleId> modules;
  for (const Member& member : m_model.module(m_model.root()).members) {
    if (member.node.isValid() && prepares[member.node.index()]) nodes.push_back(member.node);
    if (member.module.isValid() && preparing[member.module.index()] == m_model.module(member.module).operatorCount)
      modules.push_back(member.module);
  }
  if (nodes.size() + modules.size() < 2) return;
  const ModuleId group = addModule(ModuleKind::Shared, ScopeId(), m_model.root(), "shared by all layers");
  for (const NodeId n : nodes) m_model.m_nodeModule[n.index()] = group;
  for (const ModuleId id : modules) m_model.m_modules[id.index()].parent = group;
  for (Module& module : m_model.m_modules) {  // some are one level deeper now
    module.depth = 0;
    for (ModuleId up = module.parent; up.isValid(); up = m_model.module(up).parent) ++module.depth;
  }
}

// ---- names of hubs

std::string GraphModel::hubName(ValueId value) const {
  const graph::Graph& g = graph();
  const graph::Value& v = g.value(value);
  const NodeKind kind = g.node(v.producer).kind;
  if (kind == NodeKind::Input) return v.name;
  if (kind == NodeKind::Parameter || kind == NodeKind::Constant) {
    const auto last = v.name.rfind('.');
    const auto before = last == std::string::npos || last == 0 ? std::string::npos : v.name.rfind('.', last - 1);
    return before == std::string::npos ? v.name : v.name.substr(before + 1);
  }
  for (const NodeId reader : m_readers[value.index()]) {  // the mask of an attention
    const graph::Node& node = g.node(reader);
    if (shortOpName(g.opName(node)).find("attention") == std::string_view::npos || node.args.size() < 4) continue;
    const auto* mask = std::get_if<ValueId>(&node.args[3]);
    if (mask && m_source[mask->index()] == value) return "mask";
  }
  ValueId at = value;
  for (int steps = 0; steps < 6; ++steps) {  // cos and sin, through scaling, casts and reshapes
    const graph::Node& node = g.node(g.value(at).producer);
    if (node.kind != NodeKind::Call) break;
    const std::string_view op = shortOpName(g.opName(node));
    if (op == "cos" || op == "sin") return std::string(op);
    const auto operands = graph::operandsOf(node);
    if (operands.empty() || !isOneOf(op, {"mul", "_to_copy", "to", "unsqueeze", "view", "reshape", "expand", "alias",
                                          "slice", "clone", "index", "index_select"}))
      break;
    at = operands[0];
  }
  const std::string& module = trimmings(v.producer).tail;
  return module.empty() ? v.name : module;
}

}  // namespace cleave::views
