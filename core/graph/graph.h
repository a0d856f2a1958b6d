#pragma once
/// A tensor program: nodes in topological order, each producing values that later nodes read.
///
/// One type serves four graphs. The captured graph has the operators that the model's code called. The ATen graph is
/// decomposed and functional; the engines solve it. The rank program is the ATen graph with local shapes and explicit
/// collectives; ranks run it. One-operator graphs serve checks of rules.
///
/// A graph is built with `GraphBuilder` (graph_builder.h), verified once (verify.h), and then read only: share it as
/// `std::shared_ptr<const Graph>` between threads. Nodes and values are dense vectors, and ids are their indices. The
/// producer of each input of a node has a smaller id than the node.
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

/// The run-time device in an operator's arguments (`aten::arange(..., device=...)`): always the rank's device.
struct DeviceArgument {
  bool operator==(const DeviceArgument&) const = default;
};
/// A list of tensors (`aten::index.Tensor`). An absent tensor is an invalid id.
using ValueList = std::vector<ValueId>;

/// One argument of an operator, in the order of its schema. `std::monostate` represents None or an absent argument.
/// Layouts and memory formats are their schema integers.
using Argument = std::variant<std::monostate, ValueId, ValueList, std::int64_t, double, bool, std::string,
                              std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, DType, DeviceArgument>;

enum class NodeKind : std::uint8_t {
  Input,      ///< given by the user for each run (input_ids, labels, ...)
  Parameter,  ///< a tensor of the checkpoint; its value has the tensor's name
  Constant,   ///< small data that is part of the program (rotary frequencies); bytes in `Graph::constants`
  Call,       ///< an operator
};

struct Node {
  NodeKind kind = NodeKind::Call;
  OpId op;                     ///< Call only: index into Graph::ops
  std::vector<Argument> args;  ///< Call only: schema order, defaults filled in by capture; trailing ones may be absent
  std::vector<ValueId> results;  ///< exactly one unless kind is Call
  ScopeId scope{0};
  NodeId origin;    ///< node of the captured graph that was running when this one was recorded; invalid: none
  SourceId source;  ///< line of the model's code, index into Graph::sources; invalid if unknown
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
  std::string className;  ///< "LlamaAttention", "Linear"; empty if unknown
};

struct Output {
  std::string name;
  ValueId value;
};

/// Names under which checkpoints may store a parameter [items, ...]: one or more tensors for each item, which are
/// concatenated row-major.
struct StackedName {
  std::string prefix;                 ///< "model.layers.0.mlp.experts."
  std::vector<std::string> suffixes;  ///< {".gate_proj.weight", ".up_proj.weight"}
  std::string of(std::int64_t item, std::size_t part) const { return prefix + std::to_string(item) + suffixes[part]; }
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Scope> scopes;
  std::vector<std::string> ops;      ///< "aten::sum.dim_IntList"; interned, so that each operator needs one lookup
  std::vector<std::string> sources;  ///< "modeling_llama.py:244: q = self.q_proj(x)"; interned; not part of text or
                                     ///< JSON
  std::vector<Output> outputs;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> constants;  ///< by raw NodeId of a Constant; row-major,
                                                                        ///< little-endian
  std::unordered_map<std::string, std::vector<std::string>> tiedNames;  ///< parameter name → its other names in the
                                                                        ///< model
  std::unordered_map<std::string, StackedName> stackedNames;            ///< by parameter name; not saved in files
  /// By name, for quantized parameters: stored bytes of the packed weights, scales and zeros together.
  std::unordered_map<std::string, std::int64_t> packedBytes;
  /// Names of parameters that training does not change: buffers, and parameters without `requires_grad`.
  std::unordered_set<std::string> frozen;

  const Node& node(NodeId id) const { return nodes[id.index()]; }
  const Value& value(ValueId id) const { return values[id.index()]; }
  const Scope& scope(ScopeId id) const { return scopes[id.index()]; }
  const std::string& opName(const Node& n) const;    ///< "" unless Call
  const std::string& sourceOf(const Node& n) const;  ///< "" if unknown
  const Shape& shapeOf(ValueId id) const { return value(id).type.shape; }
  std::int64_t bytesOf(ValueId id) const { return sizeInBytes(value(id).type); }
  /// Bytes of a value on a device. Differs from its type's size for packed parameters only.
  std::int64_t heldBytes(ValueId id) const;
  /// Bytes of `count` of its elements. For a packed parameter their share, rounded up.
  std::int64_t heldBytes(ValueId id, std::int64_t count) const;
  ValueId findValue(std::string_view name) const;  ///< linear; invalid if not found
  ScopeId findScope(std::string_view path) const;  ///< linear; invalid if not found
};

/// Calls `visit` with the tensor operands of a node in argument order. Lists are flattened, absent tensors skipped,
/// duplicates kept.
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
/// The same operands as a list.
std::vector<ValueId> operandsOf(const Node& node);
/// Sets Value::users of all values, each user once and in the order of nodes. Operands that do not exist are skipped:
/// verify() reports them.
void fillUsers(Graph& graph);
/// True if the elements of a value are floating-point numbers.
bool isReal(const Graph& graph, ValueId value);

/// Text form for tests, logs and goldens. `parse(toText(g))` gives the same graph without the constants' data.
///
///     x: f32[2,8] = input
///     fc.weight: f32[16,8] = parameter @fc
///     linear_0: f32[2,16] = aten::linear(x, fc.weight, None) @fc
///     return y=linear_0
std::string toText(const Graph& graph);
Result<Graph> parseGraph(std::string_view text);  ///< for tests: reads the output of toText

}  // namespace cleave::graph
