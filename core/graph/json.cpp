#include "graph/json.h"

#include "base/json.h"
#include "graph/graph_builder.h"
#include "graph/type_text.h"
#include "graph/verify.h"

#include <nlohmann/json.hpp>

#include <unordered_set>

/// Layout of a graph in JSON (compact, deterministic):
///   {"name": ..., "ops": [...], "scopes": [{"path","parent","class"}...],
///    "nodes": [{"kind": "input"|"parameter"|"constant"} | {"op": index, "args": [...]}, each with "out": [[name,
///    "f32[2,8]"]...],
///              "scope": index, "origin": index, "data": [bytes as hex]],
///    "outputs": [[name, value]...], "tied": {parameter: [names]}, "packed": {parameter: bytes},
///    "frozen": [parameters]}
/// Arguments: null, numbers, booleans and strings as they are. Reals are {"f": x}, so that 1.0 remains a real. A value
/// is {"v": id}. Lists are {"vs": [id or null...]} for values, {"fs": [...]} for reals, {"bs": [...]} for booleans,
/// [...] for integers. Further forms are {"dtype": "f32"} and {"device": true}. inf and nan are the strings "inf",
/// "-inf", "nan" inside "f".

namespace cleave::graph {
namespace {

constexpr std::size_t kMaxScopeBytes = 4096;

class Reader {
 public:
  Result<Graph> read(const nlohmann::json& json) {
    CLEAVE_TRY(const JsonObject graph, JsonObject::at(json, "graph"));
    CLEAVE_TRY(const std::string name, graph.text("name", ""));
    m_builder = GraphBuilder(name);
    CLEAVE_TRY(m_ops, graph.texts("ops"));
    CLEAVE_TRY_VOID(readScopes(graph));
    CLEAVE_TRY(const JsonArray nodes, graph.array("nodes"));
    if (nodes.size() > kMaxNodes)
      return fail(ErrorCode::BadInput, "graph.nodes has {} entries; the limit is {}.", nodes.size(), kMaxNodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      CLEAVE_TRY(const JsonObject node, nodes.object(i));
      CLEAVE_TRY_VOID(readNode(node));
    }
    CLEAVE_TRY_VOID(readOutputs(graph));
    CLEAVE_TRY_VOID(readTied(graph));
    CLEAVE_TRY_VOID(readPacked(graph));
    CLEAVE_TRY_VOID(readFrozen(graph));
    return std::move(m_builder).finish();
  }

 private:
  /// Ids in a file must be less than `bound`.
  static IntegerRange below(std::size_t bound) { return {0, static_cast<std::int64_t>(bound) - 1}; }

  /// Parents come before their children, so that a path creates one scope and not one for each of its parts.
  Result<void> readScopes(const JsonObject& graph) {
    CLEAVE_TRY(const JsonArray scopes, graph.array("scopes"));
    std::unordered_set<std::string> paths{""};
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      CLEAVE_TRY(const JsonObject scope, scopes.object(i));
      CLEAVE_TRY(const std::string path, scope.text("path"));
      CLEAVE_TRY(const std::string className, scope.text("class", ""));
      const auto dot = path.rfind('.');
      const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
      if (path.size() > kMaxScopeBytes)
        return fail(ErrorCode::BadInput, "{} is longer than the limit of {} bytes.", scope.nameOf("path"),
                    kMaxScopeBytes);
      if (path.empty() != (i == 0))
        return scope.wrong("path", i == 0 ? "empty (the first scope is the root)" : "a dotted path");
      if (!paths.contains(parent))
        return fail(ErrorCode::BadInput, "{} is {}, but its parent does not come before it.", scope.nameOf("path"),
                    quotedText(path));
      paths.insert(path);
      m_scopes.push_back(m_builder.scope(path, className));
    }
    return {};
  }

  Result<void> readNode(const JsonObject& node) {
    CLEAVE_TRY(const JsonArray out, node.array("out"));
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < out.size(); ++i) {
      CLEAVE_TRY(const JsonArray result, out.array(i));
      if (result.size() != 2) return out.wrong(i, "a name and a type");
      CLEAVE_TRY(names.emplace_back(), result.text(0));
      CLEAVE_TRY(const std::string type, result.text(1));
      const auto parsed = parseTensorType(type);
      if (!parsed)
        return result.wrong(1, fmt::format("a tensor type such as f32[2,8], of at most {} dimensions", kMaxDimensions));
      types.push_back(*parsed);
      // Checked here, because the builder would search long for unique names.
      if (!m_names.insert(names.back()).second)
        return fail(ErrorCode::BadInput, "{} is {}, the name of another value.", result.nameOf(0),
                    quotedText(names.back()));
    }
    CLEAVE_TRY(const std::int64_t scopeIndex, node.integer("scope", below(m_scopes.size()), 0));
    const ScopeId scope = m_scopes.empty() ? ScopeId(0) : m_scopes[static_cast<std::size_t>(scopeIndex)];
    CLEAVE_TRY(const auto index, node.optionalInteger("origin", below(kMaxNodes)));
    const NodeId origin = index ? NodeId(static_cast<std::size_t>(*index)) : NodeId();
    if (node.has("op")) return readCall(node, names, std::move(types), scope, origin);
    return readSource(node, names, types, scope, origin);
  }

  Result<void> readCall(const JsonObject& node, const std::vector<std::string>& names, std::vector<TensorType> types,
                        ScopeId scope, NodeId origin) {
    CLEAVE_TRY(const std::int64_t op, node.integer("op", below(m_ops.size())));
    CLEAVE_TRY(const JsonArray list, node.array("args"));
    std::vector<Argument> args;
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(args.emplace_back(), argument(list, i));
    }
    const auto results =
        m_builder.addCall(m_ops[static_cast<std::size_t>(op)], std::move(args), std::move(types), scope, origin);
    for (std::size_t i = 0; i < results.size(); ++i) m_builder.renameValue(results[i], names[i]);
    return {};
  }

  Result<void> readSource(const JsonObject& node, const std::vector<std::string>& names,
                          const std::vector<TensorType>& types, ScopeId scope, NodeId origin) {
    CLEAVE_TRY(const std::string kind, node.text("kind"));
    if (names.size() != 1) return node.wrong("out", "a list of one value");
    if (kind == "input") {
      m_builder.addInput(names[0], types[0], origin);
    } else if (kind == "parameter") {
      m_builder.addParameter(names[0], types[0], scope, origin);
    } else if (kind == "constant") {
      CLEAVE_TRY(auto bytes, readHex(node, "data"));
      m_builder.addConstant(names[0], types[0], std::move(bytes), scope, origin);
    } else {
      return node.wrong("kind", "input, parameter or constant");
    }
    return {};
  }

  static Result<std::vector<std::byte>> readHex(const JsonObject& node, const char* key) {
    CLEAVE_TRY(const std::string text, node.text(key));
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    std::vector<std::byte> data;
    data.reserve(text.size() / 2);
    for (std::size_t i = 0; i < text.size(); i += 2) {
      const int high = digit(text[i]);
      const int low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
      if (high < 0 || low < 0) return node.wrong(key, "an even number of hexadecimal digits");
      data.push_back(static_cast<std::byte>(high * 16 + low));
    }
    return data;
  }

  /// The item as the id of a value that an earlier node produced. null gives an invalid id.
  Result<ValueId> valueId(const JsonArray& list, std::size_t i) const {
    if (list[i].is_null()) return ValueId();
    CLEAVE_TRY(const std::int64_t id, list.integer(i, below(m_builder.current().values.size())));
    return ValueId(static_cast<std::size_t>(id));
  }

  Result<Argument> argument(const JsonArray& args, std::size_t i) const {
    const nlohmann::json& json = args[i];
    if (json.is_null()) return Argument();
    if (json.is_boolean()) return Argument(json.get<bool>());
    if (json.is_string()) return Argument(json.get<std::string>());
    if (json.is_object() && json.size() == 1) return taggedArgument(args, i, json.begin().key(), json.begin().value());
    if (!json.is_array()) {
      CLEAVE_TRY(const std::int64_t integer, args.integer(i));
      return Argument(integer);
    }
    CLEAVE_TRY(const JsonArray list, args.array(i));
    std::vector<std::int64_t> items(list.size());
    for (std::size_t k = 0; k < items.size(); ++k) {
      CLEAVE_TRY(items[k], list.integer(k));
    }
    return Argument(std::move(items));
  }

  /// {"f": 1.0} and the other kinds that plain JSON cannot distinguish.
  Result<Argument> taggedArgument(const JsonArray& args, std::size_t i, const std::string& tag,
                                  const nlohmann::json& json) const {
    if (tag == "v") {
      if (json.is_null()) return Argument();
      CLEAVE_TRY(const JsonObject object, args.object(i));
      CLEAVE_TRY(const std::int64_t id, object.integer(tag, below(m_builder.current().values.size())));
      return Argument(ValueId(static_cast<std::size_t>(id)));
    }
    if (tag == "f") {
      if (const auto value = realOf(json)) return Argument(*value);
    } else if (tag == "dtype" && json.is_string()) {
      if (const auto dtype = parseDType(json.get_ref<const std::string&>())) return Argument(*dtype);
    } else if (tag == "device") {
      return Argument(DeviceArgument{});
    } else if (json.is_array() && (tag == "vs" || tag == "fs" || tag == "bs")) {
      CLEAVE_TRY(const JsonArray list, JsonArray::at(json, fmt::format("{}.{}", args.nameOf(i), tag)));
      return tag == "vs" ? values(list) : tag == "fs" ? reals(list) : booleans(list);
    }
    return args.wrong(i, "an argument of an operator");
  }

  Result<Argument> values(const JsonArray& list) const {
    ValueList items(list.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      CLEAVE_TRY(items[i], valueId(list, i));
    }
    return Argument(std::move(items));
  }
  static Result<Argument> reals(const JsonArray& list) {
    std::vector<double> items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(items.emplace_back(), list.real(i));
    }
    return Argument(std::move(items));
  }
  static Result<Argument> booleans(const JsonArray& list) {
    std::vector<bool> items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(const bool flag, list.flag(i));
      items.push_back(flag);
    }
    return Argument(std::move(items));
  }

  Result<void> readOutputs(const JsonObject& graph) {
    CLEAVE_TRY(const JsonArray outputs, graph.array("outputs"));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CLEAVE_TRY(const JsonArray output, outputs.array(i));
      if (output.size() != 2) return outputs.wrong(i, "a name and a value");
      CLEAVE_TRY(const std::string name, output.text(0));
      CLEAVE_TRY(const ValueId value, valueId(output, 1));
      if (!value.isValid()) return output.wrong(1, "a value");
      m_builder.addOutput(name, value);
    }
    return {};
  }

  Result<void> readTied(const JsonObject& graph) {
    if (!graph.has("tied")) return {};
    CLEAVE_TRY(const JsonObject tied, graph.object("tied"));
    for (const auto& [parameter, list] : tied.json().items()) {
      CLEAVE_TRY(const auto names, tied.texts(parameter));
      for (const std::string& name : names) m_builder.addTiedName(parameter, name);
    }
    return {};
  }

  Result<void> readPacked(const JsonObject& graph) {
    if (!graph.has("packed")) return {};
    CLEAVE_TRY(const JsonObject packed, graph.object("packed"));
    for (const auto& [parameter, ignored] : packed.json().items()) {
      CLEAVE_TRY(const std::int64_t bytes, packed.integer(parameter, kNotNegative));
      m_builder.setPackedBytes(parameter, bytes);
    }
    return {};
  }

  Result<void> readFrozen(const JsonObject& graph) {
    if (!graph.has("frozen")) return {};
    CLEAVE_TRY(const auto names, graph.texts("frozen"));
    for (const std::string& name : names) m_builder.freeze(name);
    return {};
  }

  GraphBuilder m_builder;
  std::vector<std::string> m_ops;
  std::vector<ScopeId> m_scopes;
  std::unordered_set<std::string> m_names;  ///< of values
};

}  // namespace

Result<Graph> graphFromJson(const nlohmann::json& json) { return Reader().read(json); }

}  // namespace cleave::graph
