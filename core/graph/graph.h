#pragma once
/// A tensor program: nodes in topological order, each producing values that later nodes read.
///
/// One type serves four graphs: the captured graph (operators as the model's code called them), the ATen graph
/// (decomposed and functional: what is solved), the rank program (the ATen graph with local shapes and explicit
/// collectives: what a rank runs) and one-operator graphs for checks of rules.
///
/// A graph is built with `GraphBuilder`, verified once, and then only read: share it as
/// `std::shared_ptr<const Graph>` between threads. Nodes and values are dense vectors; ids are their indices; every
/// input of a node is produced by a node with a smaller id.
///
///     GraphBuilder b;
///     ValueId x = b.addInput("x", {DType::Float32, {2, 8}});
///     ValueId w = b.addParameter("fc.weight", {DType::Float32, {16, 8}});
///     ValueId y = b.addCall("aten::linear", {x, w, Argument{}}, {{DType::Float32, {2, 16}}}, b.scope("fc"))[0];
///     b.addOutput("y", y);
///     CLEAVE_TRY(Graph g, std::move(b).finish());
#include "base/ids.h"
#include "base/result.h"
#include "graph/types.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace cleave::graph {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;
using ScopeId = Id<struct ScopeTag>;  ///< 0 is the model itself (path "")
using OpId = Id<struct OpTag>;
using SourceId = Id<struct SourceTag>;

/// Where a run-time device goes in an operator's arguments (`aten::arange(..., device=...)`): always the rank's device.
struct DeviceArgument {
  bool operator==(const DeviceArgument&) const = default;
};
/// A list of tensors, some of them possibly absent (`aten::index.Tensor`); an absent one is an invalid id.
using ValueList = std::vector<ValueId>;

/// One argument of an operator, in the order of its schema. `std::monostate` is None, or an argument that is absent.
/// Layouts and memory formats are their schema integers.
using Argument = std::variant<std::monostate, ValueId, ValueList, std::int64_t, double, bool, std::string,
                              std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, DType, DeviceArgument>;

enum class NodeKind : std::uint8_t {
  Input,      ///< given by the user for each run (input_ids, labels, ...)
  Parameter,  ///< a tensor of the checkpoint; its value's name is the tensor's name there
  Constant,   ///< small data that is part of the program (rotary frequencies); bytes in `Graph::constants`
  Call,       ///< an operator
};

struct Node {
  NodeKind kind = NodeKind::Call;
  OpId op;                     ///< Call only: index into Graph::ops
  std::vector<Argument> args;  ///< Call only: schema order, defaults filled in by capture; trailing ones may be missing
  std::vector<ValueId> results;  ///< exactly one unless kind is Call
  ScopeId scope{0};
  NodeId origin;    ///< node of the captured graph during which this was recorded; invalid: none
  SourceId source;  ///< line of the model's code, index into Graph::sources; invalid: not known
};

struct Value {
  std::string name;  ///< unique: "<op>_<n>", or the name of an input, parameter or constant
  TensorType type;
  NodeId producer;
  std::uint32_t resultIndex = 0;
  std::vector<NodeId> users;  ///< ascending, each once
};

/// A module of the model: "model.layers.3.self_attn.q_proj". Scopes form a tree through `parent`.
struct Scope {
  std::string path;
  ScopeId parent;         ///< invalid for the root
  std::string className;  ///< "LlamaAttention", "Linear"; empty when unknown
};

struct Output {
  std::string name;
  ValueId value;
};

/// How checkpoints may store a parameter [items, ...]: for each item one or more tensors, which make it one behind the
/// other, row-major.
struct StackedName {
  std::string before;               ///< "model.layers.0.mlp.experts."
  std::vector<std::string> behind;  ///< {".gate_proj.weight", ".up_proj.weight"}
  std::string of(std::int64_t item, std::size_t part) const { return before + std::to_string(item) + behind[part]; }
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Scope> scopes;
  std::vector<std::string> ops;      ///< "aten::sum.dim_IntList"; interned, so that one lookup per operator is enough
  std::vector<std::string> sources;  ///< "modeling_llama.py:244: q = self.q_proj(x)"; interned; not part of text or
                                     ///< JSON
  std::vector<Output> outputs;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> constants;  ///< by raw NodeId of a Constant; row-major,
                                                                        ///< little-endian
  std::unordered_map<std::string, std::vector<std::string>> tiedNames;  ///< parameter name → other names it has in the
                                                                        ///< model
  std::unordered_map<std::string, StackedName> stackedNames;  ///< by parameter name; not kept in files
  /// By name, of parameters that are stored in another form than their type (quantized): bytes of all that makes one,
  /// packed weights, scales and zeros.
  std::unordered_map<std::string, std::int64_t> packedBytes;
  /// Names of parameters that training leaves as they are: buffers, and parameters without `requires_grad`.
  std::unordered_set<std::string> frozen;

  const Node& node(NodeId id) const { return nodes[id.index()]; }
  const Value& value(ValueId id) const { return values[id.index()]; }
  const Scope& scope(ScopeId id) const { return scopes[id.index()]; }
  const std::string& opName(const Node& n) const;    ///< "" unless Call
  const std::string& sourceOf(const Node& n) const;  ///< "" when not known
  const Shape& shapeOf(ValueId id) const { return value(id).type.shape; }
  std::int64_t bytesOf(ValueId id) const { return sizeInBytes(value(id).type); }
  /// What a device holds of a value: the same, but for packed parameters.
  std::int64_t heldBytes(ValueId id) const;
  /// Of `count` of its elements: of a packed parameter their share, rounded up.
  std::int64_t heldBytes(ValueId id, std::int64_t count) const;
  ValueId findValue(std::string_view name) const;  ///< linear; invalid when there is none
  ScopeId findScope(std::string_view path) const;  ///< linear; invalid when there is none
};

/// Calls `visit` with the tensor operands of a node in argument order, lists flattened, absent ones skipped; duplicates
/// stay.
template <class Visit>
void forEachOperand(const Node& node, Visit visit) {
  for (const Argument& argument : node.args) {
    if (const auto* value = std::get_if<ValueId>(&argument)) {
      visit(*value);
    } else if (const auto* list = std::get_if<ValueList>(&argument)) {
      for (ValueId value : *list) {
        if (value.isValid()) visit(value);
      }
    }
  }
}
/// The same as a list.
std::vector<ValueId> operandsOf(const Node& node);

/// Builds a graph in topological order. Not thread-safe. Names are made unique here.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string graphName = {});
  ValueId addInput(const std::string& name, TensorType type, NodeId origin = NodeId());
  ValueId addParameter(const std::string& name, TensorType type, ScopeId scope = ScopeId(0), NodeId origin = NodeId());
  ValueId addConstant(const std::string& name, TensorType type, std::vector<std::byte> data, ScopeId scope = ScopeId(0),
                      NodeId origin = NodeId());
  /// Appends a call; results are named "<op>_<n>" (operator without namespace and overload, n counted per operator).
  std::vector<ValueId> addCall(std::string_view op, std::vector<Argument> args, std::vector<TensorType> results,
                               ScopeId scope = ScopeId(0), NodeId origin = NodeId());
  void addOutput(const std::string& name, ValueId value);
  void addTiedName(const std::string& parameter, const std::string& otherName);
  void setStackedName(const std::string& parameter, const StackedName& stored);
  void setPackedBytes(const std::string& parameter, std::int64_t bytes);
  /// Training does not change this parameter.
  void freeze(const std::string& parameter) { m_graph.frozen.insert(parameter); }
  void renameValue(ValueId value, const std::string& name);
  /// Of the calls that are added from here on; empty: not known.
  void setSource(const std::string& line);
  /// The scope of a dotted path, made with its ancestors when it is new.
  ScopeId scope(std::string_view path, std::string_view className = {});
  const Graph& current() const { return m_graph; }
  /// Fills `users`, verifies, and hands the graph out. BadInput names the first broken thing.
  Result<Graph> finish() &&;

 private:
  ValueId addSource(NodeKind kind, const std::string& name, TensorType type, ScopeId scope, NodeId origin);
  ValueId addValue(std::string name, TensorType type, NodeId producer, std::uint32_t resultIndex);
  Graph m_graph;
  std::unordered_map<std::string, std::uint32_t> m_opIndex;
  std::unordered_map<std::string, std::uint32_t> m_scopeIndex;
  std::unordered_map<std::string, std::uint32_t> m_nameCount;
  std::unordered_map<std::string, std::uint32_t> m_takenNames;
  std::unordered_map<std::string, std::uint32_t> m_sourceIndex;
  SourceId m_source;
};

/// Limits on foreign graphs.
inline constexpr std::size_t kMaxNodes = 2'000'000;

/// Most bytes that a packed parameter of a type may take: scales and zeros of small groups may outweigh a tiny weight.
std::int64_t mostPackedBytes(const TensorType& type);

/// Checks ids, order, arity, sizes (no negative, bytes fit 64 bits), unique names, scopes, packed bytes. Result names
/// the node.
Result<void> verify(const Graph& graph);

/// Text form for tests, logs and goldens; `parse(toText(g))` gives the same graph (constants' data left out).
///
///     x: f32[2,8] = input
///     fc.weight: f32[16,8] = parameter @fc
///     linear_0: f32[2,16] = aten::linear(x, fc.weight, None) @fc
///     return y=linear_0
std::string toText(const Graph& graph);
Result<Graph> parseGraph(std::string_view text);  ///< for tests: what toText wrote

}  // namespace cleave::graph
