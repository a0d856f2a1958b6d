#include "views/graph/model/graph_model_builder.h"

#include <algorithm>
#include <utility>

#include "views/graph/model/module_path.h"

namespace cleave::views {

using graph::NodeKind;

namespace {

constexpr std::uint16_t kMaxDepth = 48;  // deeper scopes dissolve: the screen cannot show more nested frames

void sortUnique(auto& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

struct PendingScope {
  ScopeId scope;
  ModuleId parent;
  std::string prefix;
};

GraphModel makeGraphModel(std::shared_ptr<const ModuleTree> tree, GraphModelOptions options) {
  return GraphModelBuilder(std::move(tree), options).build();
}

GraphModelBuilder::GraphModelBuilder(std::shared_ptr<const ModuleTree> tree, GraphModelOptions options)
    : m_model(std::move(tree)), m_options(options) {}

GraphModel GraphModelBuilder::build() && {
  m_model.m_trimmings.resize(g().nodes.size());
  m_model.m_shownNode.resize(g().nodes.size());
  m_model.m_nodeModule.resize(g().nodes.size());
  findNoise();
  findReaders();
  countOperators();
  makeModules();
  placeNodes();
  findHubs();
  if (m_options.foldNoise) groupRotary();
  makeMembers();
  makeEdges();
  if (findFarHubs()) makeEdges();
  if (m_options.foldNoise) {
    groupShared();
    makeMembers();
    makeEdges();
  }
  trim();
  collectHubs();
  return std::move(m_model);
}

bool GraphModelBuilder::isShownCall(NodeId node) const {
  return g().node(node).kind == NodeKind::Call && !m_model.m_isNoise[node.index()];
}

std::string_view GraphModelBuilder::shortOp(NodeId node) const { return shortOpName(g().opName(g().node(node))); }

void GraphModelBuilder::countOperators() {
  const std::size_t count = g().scopes.size();
  m_scopeOperators.assign(count, 0);
  m_scopeDirect.assign(count, 0);
  m_scopeChildren.assign(count, {});
  if (count == 0) return;  // an empty graph
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    if (!isShownCall(n)) continue;
    ++m_scopeDirect[g().node(n).scope.index()];
    for (ScopeId s = g().node(n).scope; s.isValid(); s = g().scope(s).parent) ++m_scopeOperators[s.index()];
  }
  for (const ScopeId s : idRange<ScopeId>(count))
    std::copy_if(m_model.tree().below(s).begin(), m_model.tree().below(s).end(),
                 std::back_inserter(m_scopeChildren[s.index()]),
                 [&](ScopeId child) { return m_scopeOperators[child.index()] > 0; });
}

ModuleId GraphModelBuilder::addModule(ModuleKind kind, ScopeId scope, ModuleId parent, std::string title) {
  Module module;
  module.kind = kind;
  module.scope = scope;
  module.parent = parent;
  module.depth = parent.isValid() ? m_model.module(parent).depth + 1 : 0;
  if (kind == ModuleKind::Scope) {
    if (scope.isValid()) module.className = g().scope(scope).className;
    const auto dot = title.rfind('.');
    if (const int index = dot == std::string::npos ? -1 : listIndexOf(std::string_view(title).substr(dot + 1));
        index >= 0) {
      module.listName = title.substr(0, dot);
      module.listIndex = index;
    }
  }
  module.title = std::move(title);
  m_model.m_modules.push_back(std::move(module));
  return ModuleId(m_model.m_modules.size() - 1);
}

void GraphModelBuilder::makeModules() {
  m_model.m_scopeModule.assign(g().scopes.size(), ModuleId());
  m_model.m_inlined.assign(g().scopes.size(), NodeId());
  const ModuleId root = addModule(ModuleKind::Scope, g().scopes.empty() ? ScopeId() : ScopeId(0), ModuleId(), g().name);
  if (g().scopes.empty()) return;
  m_model.m_scopeModule[0] = root;

  // The wrapper chain from the root. While one unnumbered child has most of the model, the wrapper gets no frame of its
  // own.
  std::vector<PendingScope> pending;
  ScopeId wrapper(0);
  for (bool descended = true; descended;) {
    descended = false;
    if (openStacks(wrapper, pending)) break;
    ScopeId next;
    for (const ScopeId child : m_scopeChildren[wrapper.index()]) {
      const bool isMost = m_scopeOperators[child.index()] * 2 > m_scopeOperators[0];
      const bool isNamed = listIndexOf(lastPart(g().scope(child).path)) < 0;
      if (isMost && isNamed && !m_scopeChildren[child.index()].empty() && !next.isValid())
        next = child;
      else
        pending.push_back({child, root, {}});
    }
    if (!next.isValid()) break;
    const auto& children = m_scopeChildren[next.index()];
    const bool isList = m_scopeDirect[next.index()] == 0 &&
                        std::all_of(children.begin(), children.end(),
                                    [&](ScopeId c) { return listIndexOf(lastPart(g().scope(c).path)) >= 0; });
    if (isList) {  // "model.layers" right below the root keeps its name as a prefix
      pending.push_back({next, root, {}});
      break;
    }
    m_model.m_scopeModule[next.index()] = root;
    wrapper = next;
    descended = true;
  }
  while (!pending.empty()) {
    const PendingScope next = std::move(pending.back());
    pending.pop_back();
    openScope(next.scope, next.parent, next.prefix, pending);
  }
  // Scopes without operators, and scopes inside one-operator modules, belong to the nearest module around them.
  for (const ScopeId s : idRange<ScopeId>(g().scopes.size())) {
    ScopeId up = s;
    while (up.isValid() && !m_model.m_scopeModule[up.index()].isValid()) up = g().scope(up).parent;
    m_model.m_scopeModule[s.index()] = up.isValid() ? m_model.m_scopeModule[up.index()] : root;
  }
}

/// A pure list of modules, such as `decoder.layers`.
bool GraphModelBuilder::isListOfModules(ScopeId scope) const {
  const auto& children = m_scopeChildren[scope.index()];
  return m_scopeDirect[scope.index()] == 0 && children.size() > 1 &&
         std::all_of(children.begin(), children.end(),
                     [&](ScopeId c) { return listIndexOf(lastPart(g().scope(c).path)) >= 0; });
}

/// An encoder next to a decoder: the content of both is shown side by side, with each one's name as a prefix. False:
/// there is at most one of them, and nothing changed.
bool GraphModelBuilder::openStacks(ScopeId wrapper, std::vector<PendingScope>& pending) {
  const auto& children = m_scopeChildren[wrapper.index()];
  const auto isStack = [&](ScopeId scope) {
    const auto& inside = m_scopeChildren[scope.index()];
    return listIndexOf(lastPart(g().scope(scope).path)) < 0 &&
           std::any_of(inside.begin(), inside.end(), [&](ScopeId s) { return isListOfModules(s); });
  };
  if (std::count_if(children.begin(), children.end(), isStack) < 2) return false;
  for (const ScopeId child : children) {
    if (!isStack(child)) {
      pending.push_back({child, m_model.root(), {}});
      continue;
    }
    m_model.m_scopeModule[child.index()] = m_model.root();
    for (const ScopeId inside : m_scopeChildren[child.index()])
      pending.push_back({inside, m_model.root(), std::string(lastPart(g().scope(child).path)) + "."});
  }
  return true;
}

/// A layer, that is one of several numbered modules.
bool GraphModelBuilder::isOneOfAList(ScopeId scope) const {
  const ScopeId list = g().scope(scope).parent;
  const auto isNumbered = [&](ScopeId s) { return listIndexOf(lastPart(g().scope(s).path)) >= 0; };
  if (!list.isValid() || !isNumbered(scope)) return false;
  const auto& siblings = m_scopeChildren[list.index()];
  return std::count_if(siblings.begin(), siblings.end(), isNumbered) > 1;
}

void GraphModelBuilder::openScope(ScopeId scope, ModuleId parent, const std::string& prefix,
                                  std::vector<PendingScope>& pending) {
  const std::string title = prefix + std::string(lastPart(g().scope(scope).path));
  const auto& children = m_scopeChildren[scope.index()];
  if (m_scopeOperators[scope.index()] == 1) {
    m_inlineTitle[scope.raw()] = title;
    m_model.m_scopeModule[scope.index()] = parent;
    return;
  }
  const bool isList = std::all_of(children.begin(), children.end(),
                                  [&](ScopeId c) { return listIndexOf(lastPart(g().scope(c).path)) >= 0; });
  const bool isHollow = m_scopeDirect[scope.index()] == 0 && !children.empty() && (isList || children.size() == 1) &&
                        !isOneOfAList(scope);
  if (isHollow || m_model.module(parent).depth + 1 >= kMaxDepth) {
    m_model.m_scopeModule[scope.index()] = parent;
    for (const ScopeId child : children) pending.push_back({child, parent, title + "."});
    return;
  }
  const ModuleId module = addModule(ModuleKind::Scope, scope, parent, title);
  m_model.m_scopeModule[scope.index()] = module;
  for (const ScopeId child : children) pending.push_back({child, module, {}});
}

void GraphModelBuilder::placeNodes() {
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    const graph::Node& node = g().node(n);
    if (node.kind == NodeKind::Input) {
      m_model.m_shownNode[n.index()] = n;
      m_model.m_nodeModule[n.index()] = m_model.root();
    } else if (node.kind == NodeKind::Call && !m_model.m_isNoise[n.index()]) {
      m_model.m_shownNode[n.index()] = n;
      m_model.m_nodeModule[n.index()] = g().scopes.empty() ? m_model.root() : m_model.m_scopeModule[node.scope.index()];
      for (ScopeId s = node.scope; s.isValid() && !g().scopes.empty(); s = g().scope(s).parent) {
        const auto title = m_inlineTitle.find(s.raw());
        if (title == m_inlineTitle.end()) continue;
        m_model.m_trimmings[n.index()].tail = title->second;
        m_model.m_inlined[s.index()] = n;
      }
    } else if (node.kind == NodeKind::Call && !node.results.empty()) {
      const NodeId source = producerOf(m_model.m_source[node.results[0].index()]);
      m_model.m_shownNode[n.index()] = m_model.m_shownNode[source.index()];
    }
  }
}

void GraphModelBuilder::makeMembers() {
  const std::size_t moduleCount = m_model.m_modules.size();
  constexpr std::uint32_t kNone = MemberEdge::kOutside;
  std::vector<std::uint32_t> firstNode(moduleCount, kNone);
  for (Module& module : m_model.m_modules) {
    module.members.clear();
    module.operatorCount = 0;
  }
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    if (m_model.m_shownNode[n.index()] != n) continue;
    for (ModuleId id = m_model.m_nodeModule[n.index()]; id.isValid(); id = m_model.module(id).parent) {
      firstNode[id.index()] = std::min(firstNode[id.index()], n.raw());
      if (g().node(n).kind == NodeKind::Call) ++m_model.m_modules[id.index()].operatorCount;
    }
  }
  std::vector<std::pair<std::uint32_t, Member>> all;  // by first node; inside a module only the order counts
  for (const NodeId n : idRange<NodeId>(g().nodes.size()))
    if (m_model.m_shownNode[n.index()] == n) all.push_back({n.raw(), {n, {}, -1}});
  for (const ModuleId id : idRange<ModuleId>(moduleCount))
    if (id != m_model.root() && firstNode[id.index()] != kNone) all.push_back({firstNode[id.index()], {{}, id, -1}});
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  m_memberOfNode.assign(g().nodes.size(), kNone);
  m_memberOfModule.assign(moduleCount, kNone);
  for (const auto& [first, member] : all) {
    const ModuleId home =
        member.node.isValid() ? m_model.m_nodeModule[member.node.index()] : m_model.module(member.module).parent;
    auto& members = m_model.m_modules[home.index()].members;
    const auto position = static_cast<std::uint32_t>(members.size());
    if (member.node.isValid())
      m_memberOfNode[member.node.index()] = position;
    else
      m_memberOfModule[member.module.index()] = position;
    members.push_back(member);
  }
  for (std::size_t i = 0; i < g().outputs.size(); ++i)
    m_model.m_modules[0].members.push_back({NodeId(), ModuleId(), static_cast<int>(i)});
}

void GraphModelBuilder::makeEdges() {
  for (Module& module : m_model.m_modules) module.edges.clear();
  const auto isDrawn = [&](ValueId source) {
    const NodeKind kind = g().node(producerOf(source)).kind;
    return (kind == NodeKind::Call || kind == NodeKind::Input) && !m_model.isHub(source) &&
           m_model.m_shownNode[producerOf(source).index()].isValid();
  };
  for (const ValueId source : idRange<ValueId>(g().values.size())) {
    if (m_model.m_source[source.index()] != source || !isDrawn(source)) continue;
    for (const NodeId reader : m_model.m_readers[source.index()]) addEdge(producerOf(source), reader, -1, source);
  }
  for (std::size_t i = 0; i < g().outputs.size(); ++i) {
    const ValueId source = m_model.m_source[g().outputs[i].value.index()];
    if (m_model.m_shownNode[producerOf(source).index()].isValid())
      addEdge(producerOf(source), NodeId(), static_cast<int>(i), source);
  }
  for (Module& module : m_model.m_modules) sortUnique(module.edges);
}

void GraphModelBuilder::addEdge(NodeId from, NodeId to, int output, ValueId value) {
  ModuleId a = m_model.m_nodeModule[from.index()];
  std::uint32_t itemA = m_memberOfNode[from.index()];
  ModuleId b = output < 0 ? m_model.m_nodeModule[to.index()] : m_model.root();
  std::uint32_t itemB =
      output < 0 ? m_memberOfNode[to.index()]
                 : static_cast<std::uint32_t>(m_model.m_modules[0].members.size() - g().outputs.size()) + output;
  while (a != b) {
    if (m_model.module(a).depth >= m_model.module(b).depth) {
      m_model.m_modules[a.index()].edges.push_back({itemA, MemberEdge::kOutside, value});
      itemA = m_memberOfModule[a.index()];
      a = m_model.module(a).parent;
    } else {
      m_model.m_modules[b.index()].edges.push_back({MemberEdge::kOutside, itemB, value});
      itemB = m_memberOfModule[b.index()];
      b = m_model.module(b).parent;
    }
  }
  if (itemA != itemB) m_model.m_modules[a.index()].edges.push_back({itemA, itemB, value});
}

bool GraphModelBuilder::isInside(ModuleId outer, NodeId node) const {
  const NodeId shown = m_model.m_shownNode[node.index()];
  return shown.isValid() && m_model.isAncestor(outer, m_model.m_nodeModule[shown.index()]);
}

void GraphModelBuilder::collectHubs() {
  for (Module& module : m_model.m_modules) module.hubs.clear(), module.madeHubs.clear();
  for (const NodeId n : idRange<NodeId>(g().nodes.size())) {
    if (m_model.m_shownNode[n.index()] != n) continue;
    for (const ValueId hub : m_model.m_trimmings[n.index()].hubs)
      for (ModuleId id = m_model.m_nodeModule[n.index()]; id.isValid() && !isInside(id, producerOf(hub));
           id = m_model.module(id).parent)
        m_model.m_modules[id.index()].hubs.push_back(hub);
    for (const ValueId result : g().node(n).results) {
      if (!m_model.isHub(result)) continue;
      for (ModuleId id = m_model.m_nodeModule[n.index()]; id.isValid() && id != m_model.root();
           id = m_model.module(id).parent) {
        const auto& readers = m_model.readers(result);
        if (std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !isInside(id, r); }))
          m_model.m_modules[id.index()].madeHubs.push_back(result);
      }
    }
  }
  for (Module& module : m_model.m_modules) sortUnique(module.hubs), sortUnique(module.madeHubs);
}

}  // namespace cleave::views
