#pragma once
/// What the canvas draws, without pixels: a graph as a tree of modules. Each module is a small graph of operators and
/// child modules.
///
/// - Modules come from the scopes. Wrappers around almost everything (`model`) and pure lists (`model.layers`) dissolve
///   into their parent, so that the first picture shows the model's parts. Members of a list never dissolve. An encoder
///   next to a decoder dissolves too, and its name becomes a prefix of its content. A module of one operator is drawn
///   as that operator with the module's name as its `tail`.
/// - Equal neighbours of a list may be drawn as one stack. The module tree decides which are equal (module_tree.h).
/// - A *hub* (cos, sin, mask, a tied weight: read all over the model) is drawn as a chip at each reader instead of an
///   edge; a weight or constant with one reader is docked to it. Long edges from hubs would make layout slow and
///   pictures black.
/// - *Noise* (aliases, casts and views that change nothing) is skipped: its readers see its input. Operators that lead
///   to no output are noise too and are not drawn. Rotary helpers become one module, as do operators that only prepare
///   hubs.
///
/// Immutable once built (graph_model_builder.h). Ids of nodes, values and scopes are the graph's own.
///
///     const GraphModel model = makeGraphModel(std::make_shared<const ModuleTree>(graph));
///     for (const Member& m : model.module(model.root()).members) ...
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "views/graph/model/module_tree.h"

namespace cleave::views {

using ModuleId = Id<struct ModuleTag>;

/// A child of a module: an operator, an input or output of the graph, or a module. Exactly one of the ids is valid.
struct Member {
  NodeId node;  ///< a Call or an Input
  ModuleId module;
  int output = -1;  ///< index into Graph::outputs
  bool operator==(const Member&) const = default;
};

/// A value flowing between two members of one module. `kOutside` stands for the module's boundary.
struct MemberEdge {
  static constexpr std::uint32_t kOutside = 0xFFFFFFFF;
  std::uint32_t from = kOutside;
  std::uint32_t to = kOutside;
  ValueId value;
  auto operator<=>(const MemberEdge&) const = default;
};

enum class ModuleKind : std::uint8_t {
  Scope,   ///< a module of the model
  Rotary,  ///< rotary helpers of one attention, folded together
  Shared,  ///< operators that only prepare hubs: positions, masks, cos and sin
};

struct Module {
  ModuleKind kind = ModuleKind::Scope;
  ScopeId scope;                    ///< invalid for Rotary and Shared
  ModuleId parent;                  ///< invalid for the root
  std::string title;                ///< relative to the parent: "layers.3", "self_attn"
  std::string className;            ///< "LlamaDecoderLayer"; may be empty
  std::vector<Member> members;      ///< by first operator
  std::vector<MemberEdge> edges;    ///< sorted; includes those from and to the boundary
  std::vector<ValueId> hubs;        ///< hubs read inside but made outside, ascending
  std::vector<ValueId> madeHubs;    ///< hubs made inside and read outside, ascending
  std::uint32_t operatorCount = 0;  ///< operators inside, at any depth, without noise
  std::uint16_t depth = 0;          ///< root: 0
  std::string listName;             ///< "layers" for "layers.3", empty when the title has no index
  int listIndex = -1;               ///< 3 for "layers.3"
};

/// What a node shows in addition to its operator.
struct Trimmings {
  std::string tail;             ///< name of its one-operator module, such as "q_proj"; may be empty
  std::vector<ValueId> docked;  ///< weights and constants that only it reads, in argument order
  std::vector<ValueId> hubs;    ///< hubs it reads, in argument order
};

class GraphModel {
 public:
  const graph::Graph& graph() const { return m_tree->graph(); }
  const ModuleTree& tree() const { return *m_tree; }
  ModuleId root() const { return ModuleId(0); }
  std::size_t moduleCount() const { return m_modules.size(); }
  const Module& module(ModuleId id) const { return m_modules[id.index()]; }
  const Trimmings& trimmings(NodeId node) const { return m_trimmings[node.index()]; }

  /// The node drawn for this one: itself; for noise, the node whose value it passes on; for a docked weight, its
  /// reader. Invalid if it is not drawn (an unused parameter).
  NodeId shownNode(NodeId node) const { return m_shownNode[node.index()]; }
  /// The module that contains the node. Invalid if the node is not drawn.
  ModuleId moduleOf(NodeId node) const;
  /// The module drawn for a scope: its own, or the nearest one around it. Always valid for scopes of the graph.
  ModuleId moduleOf(ScopeId scope) const { return m_scopeModule[scope.index()]; }
  /// The operator drawn for this scope if it is a module of one operator.
  std::optional<NodeId> inlinedNode(ScopeId scope) const;
  bool isAncestor(ModuleId ancestor, ModuleId descendant) const;  ///< true for equal ids
  /// From the root's child down to `id` itself; empty for the root.
  std::vector<ModuleId> pathTo(ModuleId id) const;
  /// `next` follows `before` in a numbered list and is equal to it.
  bool continuesStack(ModuleId before, ModuleId next) const;

  bool isHub(ValueId value) const { return m_isHub[value.index()]; }
  bool isNoise(NodeId node) const { return m_isNoise[node.index()]; }
  /// The value that `value` equals without noise.
  ValueId source(ValueId value) const { return m_source[value.index()]; }
  std::size_t noiseCount() const { return m_noiseCount; }
  /// Short name for a chip: "cos", "mask", "embed_tokens.weight", the one-operator module that makes it, or the value's
  /// name.
  std::string hubName(ValueId value) const;
  /// Operators that read the value, directly or through noise, ascending.
  const std::vector<NodeId>& readers(ValueId source) const { return m_readers[source.index()]; }

 private:
  friend class GraphModelBuilder;
  explicit GraphModel(std::shared_ptr<const ModuleTree> tree) : m_tree(std::move(tree)) {}

  std::shared_ptr<const ModuleTree> m_tree;
  std::vector<Module> m_modules;
  std::vector<Trimmings> m_trimmings;
  std::vector<NodeId> m_shownNode;
  std::vector<ModuleId> m_nodeModule;
  std::vector<ModuleId> m_scopeModule;
  std::vector<NodeId> m_inlined;  ///< by scope
  std::vector<ValueId> m_source;
  std::vector<std::vector<NodeId>> m_readers;
  std::vector<bool> m_isHub;
  std::vector<bool> m_isNoise;
  std::size_t m_noiseCount = 0;
};

/// "linear" for "aten::linear", "sum" for "aten::sum.dim_IntList".
std::string_view shortOpName(std::string_view op);

}  // namespace cleave::views
