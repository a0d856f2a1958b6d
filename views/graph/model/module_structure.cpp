#include "views/graph/model/module_structure.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "views/graph/model/module_path.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;

namespace {

using Signature = std::vector<std::uint64_t>;

constexpr std::size_t kManyReaders = 3;  // number of neighbours that must read a value before it counts as shared

/// Numbers texts: equal texts have equal numbers.
class Interner {
 public:
  std::uint64_t operator()(std::string_view text) {
    const auto known = m_ids.find(text);
    return known != m_ids.end() ? known->second : m_ids.emplace(std::string(text), m_ids.size()).first->second;
  }

 private:
  std::map<std::string, std::uint64_t, std::less<>> m_ids;
};

/// The other readers of a module's inputs and results.
class Sharing {
 public:
  explicit Sharing(const graph::Graph& graph) : m_graph(graph), m_isOutput(graph.values.size(), false) {
    for (const graph::Output& output : graph.outputs) m_isOutput[output.value.index()] = true;
  }

  /// True if many modules in the list of `module` read the value.
  bool isShared(ValueId value, ScopeId module) {
    const auto& users = m_graph.value(value).users;
    if (users.size() < kManyReaders) return false;
    const ScopeId list = m_graph.scope(module).parent;
    const auto [known, isNew] = m_isShared.try_emplace((std::uint64_t(value.raw()) << 32) | list.raw(), false);
    if (!isNew) return known->second;
    std::vector<ScopeId> readers;
    for (const NodeId user : users) {
      ScopeId reader = m_graph.node(user).scope;
      while (reader.isValid() && m_graph.scope(reader).parent != list) reader = m_graph.scope(reader).parent;
      if (!reader.isValid() || std::find(readers.begin(), readers.end(), reader) != readers.end()) continue;
      readers.push_back(reader);
      if (readers.size() >= kManyReaders) break;
    }
    return known->second = readers.size() >= kManyReaders;
  }

  bool isReadOutside(ValueId value, ScopeId module) const {
    const auto& users = m_graph.value(value).users;
    return m_isOutput[value.index()] || std::any_of(users.begin(), users.end(), [&](NodeId user) {
             ScopeId scope = m_graph.node(user).scope;
             while (scope.isValid() && scope != module) scope = m_graph.scope(scope).parent;
             return !scope.isValid();
           });
  }

 private:
  const graph::Graph& m_graph;
  std::vector<bool> m_isOutput;
  std::unordered_map<std::uint64_t, bool> m_isShared;  ///< by value and the list's scope
};

/// Writes the signature of one module, node by node.
class Signer {
 public:
  Signer(const graph::Graph& graph, Interner& intern, Sharing& sharing, ScopeId module)
      : m_graph(graph), m_intern(intern), m_sharing(sharing), m_module(module) {}

  Signature sign(const std::vector<NodeId>& nodes) {
    const std::size_t prefix = m_graph.scope(m_module).path.size();
    for (const NodeId id : nodes) {
      const graph::Node& node = m_graph.node(id);
      const std::string_view path = m_graph.scope(node.scope).path;
      add({node.op.raw(), m_intern(path.substr(prefix)), node.args.size()});
      for (const graph::Argument& argument : node.args) std::visit([this](const auto& each) { write(each); }, argument);
      add({node.results.size()});
      for (const ValueId result : node.results) {
        number(result);
        writeType(result);
        add({m_sharing.isReadOutside(result, m_module)});
      }
    }
    return std::move(m_signature);
  }

 private:
  void add(std::initializer_list<std::uint64_t> tokens) { m_signature.insert(m_signature.end(), tokens); }
  std::uint64_t number(ValueId value) { return m_numbers.try_emplace(value.raw(), m_numbers.size()).first->second; }
  void writeType(ValueId value) {
    const graph::TensorType& type = m_graph.value(value).type;
    add({static_cast<std::uint64_t>(type.dtype), type.shape.size()});
    for (const auto size : type.shape) add({static_cast<std::uint64_t>(size)});
  }

  void write(std::monostate) { add({0}); }
  /// A value that was met before goes by its number. A new one comes from outside, or is a weight.
  void write(ValueId value) {
    if (!value.isValid()) return add({1});
    if (const auto known = m_numbers.find(value.raw()); known != m_numbers.end()) return add({2, known->second});
    if (m_sharing.isShared(value, m_module)) return add({3, value.raw()});
    // The first module of a list may read an input where the others read a result of the previous one.
    const auto kind = m_graph.node(m_graph.value(value).producer).kind;
    add({4, number(value), kind == graph::NodeKind::Parameter, kind == graph::NodeKind::Constant});
    writeType(value);
  }
  void write(std::int64_t v) { add({5, static_cast<std::uint64_t>(v)}); }
  void write(double v) { add({6, std::bit_cast<std::uint64_t>(v)}); }
  void write(bool v) { add({7, v}); }
  void write(const std::string& v) { add({8, m_intern(v)}); }
  void write(graph::DType v) { add({9, static_cast<std::uint64_t>(v)}); }
  void write(graph::DeviceArgument) { add({10}); }
  template <class T>
  void write(const std::vector<T>& list) {
    add({11, list.size()});
    for (const T each : list) write(each);
  }

  const graph::Graph& m_graph;
  Interner& m_intern;
  Sharing& m_sharing;
  ScopeId m_module;
  std::unordered_map<std::uint32_t, std::uint64_t> m_numbers;  ///< numbers of values in the order of their first use
  Signature m_signature;
};

/// Members of lists: modules whose name is a number and that have such a neighbour.
std::vector<bool> findNumbered(const graph::Graph& graph, const std::vector<std::vector<ScopeId>>& below) {
  std::vector<bool> isNumbered(graph.scopes.size(), false);
  const auto hasNumber = [&](ScopeId scope) { return listIndexOf(lastPart(graph.scope(scope).path)) >= 0; };
  for (const auto& children : below)
    if (std::count_if(children.begin(), children.end(), hasNumber) > 1)
      for (const ScopeId child : children) isNumbered[child.index()] = hasNumber(child);
  return isNumbered;
}

}  // namespace

std::vector<std::uint32_t> structuresOf(const graph::Graph& graph, const std::vector<std::vector<ScopeId>>& below) {
  const std::vector<bool> isNumbered = findNumbered(graph, below);
  std::vector<std::vector<NodeId>> nodes(graph.scopes.size());  // calls inside, at any depth
  for (const NodeId node : idRange<NodeId>(graph.nodes.size()))
    if (graph.node(node).kind == graph::NodeKind::Call)
      for (ScopeId scope = graph.node(node).scope; scope.isValid(); scope = graph.scope(scope).parent)
        if (isNumbered[scope.index()]) nodes[scope.index()].push_back(node);
  Interner intern;
  Sharing sharing(graph);
  std::map<Signature, std::uint32_t> ids;
  std::vector<std::uint32_t> structures(graph.scopes.size(), kNoStructure);
  for (const ScopeId scope : idRange<ScopeId>(graph.scopes.size())) {
    if (!isNumbered[scope.index()]) continue;
    Signature signature = Signer(graph, intern, sharing, scope).sign(nodes[scope.index()]);
    structures[scope.index()] =
        ids.try_emplace(std::move(signature), static_cast<std::uint32_t>(ids.size())).first->second;
  }
  return structures;
}

}  // namespace cleave::views
