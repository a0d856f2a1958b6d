#include "graph/json.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <limits>

/// Layout of a graph in JSON (compact, deterministic):
///   {"name": ..., "ops": [...], "scopes": [{"path","parent","class"}...],
///    "nodes": [{"kind": "input"|"parameter"|"constant"} | {"op": index, "args": [...]}, each with "out": [[name, "f32[2,8]"]...],
///              "scope": index, "origin": index, "data": [bytes as hex]],
///    "outputs": [[name, value]...], "tied": {parameter: [names]}}
/// Arguments: null, numbers, booleans and strings as themselves; reals are {"f": x} so that 1.0 stays a real; a value is
/// {"v": id}; lists of values {"vs": [id or null...]}, of reals {"fs": [...]}, of booleans {"bs": [...]}, integers [...];
/// {"dtype": "f32"}; {"device": true}. inf and nan are the strings "inf", "-inf", "nan" inside "f".

namespace cleave::graph {
namespace {

using Json = nlohmann::ordered_json;

Json realToJson(double value) {
  if (value != value) return "nan";
  if (value == std::numeric_limits<double>::infinity()) return "inf";
  if (value == -std::numeric_limits<double>::infinity()) return "-inf";
  return value;
}

Json idToJson(ValueId id) { return id.isValid() ? Json(id.raw()) : Json(nullptr); }

struct ArgumentWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(ValueId value) const { return {{"v", idToJson(value)}}; }
  Json operator()(const ValueList& values) const {
    Json list = Json::array();
    for (ValueId value : values) list.push_back(idToJson(value));
    return {{"vs", std::move(list)}};
  }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(double value) const { return {{"f", realToJson(value)}}; }
  Json operator()(bool value) const { return value; }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const std::vector<std::int64_t>& values) const { return values; }
  Json operator()(const std::vector<double>& values) const {
    Json list = Json::array();
    for (double value : values) list.push_back(realToJson(value));
    return {{"fs", std::move(list)}};
  }
  Json operator()(const std::vector<bool>& values) const { return {{"bs", values}}; }
  Json operator()(DType dtype) const { return {{"dtype", toText(dtype)}}; }
  Json operator()(DeviceArgument) const { return {{"device", true}}; }
};

std::string toHex(const std::vector<std::byte>& data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(data.size() * 2);
  for (std::byte b : data) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

Json nodeToJson(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Json json;
  if (node.kind == NodeKind::Call) {
    json["op"] = node.op.raw();
    Json args = Json::array();
    for (const Argument& argument : node.args) args.push_back(std::visit(ArgumentWriter{}, argument));
    json["args"] = std::move(args);
  } else {
    json["kind"] = node.kind == NodeKind::Input ? "input" : node.kind == NodeKind::Parameter ? "parameter" : "constant";
  }
  Json out = Json::array();
  for (ValueId result : node.results) out.push_back({graph.value(result).name, toText(graph.value(result).type)});
  json["out"] = std::move(out);
  if (node.scope.index() != 0) json["scope"] = node.scope.raw();
  if (node.origin.isValid()) json["origin"] = node.origin.raw();
  if (const auto data = graph.constants.find(id.raw()); data != graph.constants.end()) json["data"] = toHex(data->second);
  return json;
}

class Reader {
 public:
  Result<Graph> read(const Json& json) {
    CLEAVE_TRY(const Json* ops, member(json, "graph", "ops", Json::value_t::array));
    CLEAVE_TRY(const Json* scopes, member(json, "graph", "scopes", Json::value_t::array));
    CLEAVE_TRY(const Json* nodes, member(json, "graph", "nodes", Json::value_t::array));
    CLEAVE_TRY(const Json* outputs, member(json, "graph", "outputs", Json::value_t::array));
    if (nodes->size() > kMaxNodes) return fail(ErrorCode::BadInput, "graph.nodes has {} entries; at most {} are accepted.", nodes->size(), kMaxNodes);
    if (json.contains("name") && json["name"].is_string()) m_builder = GraphBuilder(json["name"].get<std::string>());
    for (const Json& op : *ops) {
      if (!op.is_string()) return fail(ErrorCode::BadInput, "graph.ops must hold strings.");
      m_ops.push_back(op.get<std::string>());
    }
    CLEAVE_TRY_VOID(readScopes(*scopes));
    for (std::size_t i = 0; i < nodes->size(); ++i) CLEAVE_TRY_VOID(readNode((*nodes)[i], fmt::format("graph.nodes[{}]", i)));
    for (std::size_t i = 0; i < outputs->size(); ++i) CLEAVE_TRY_VOID(readOutput((*outputs)[i], fmt::format("graph.outputs[{}]", i)));
    CLEAVE_TRY_VOID(readTied(json));
    return std::move(m_builder).finish();
  }

 private:
  static Result<const Json*> member(const Json& json, const std::string& path, const char* key, Json::value_t type) {
    if (!json.is_object() || !json.contains(key)) return fail(ErrorCode::BadInput, "{}.{} is missing.", path, key);
    const Json& found = json[key];
    if (found.type() != type) return fail(ErrorCode::BadInput, "{}.{} has the wrong type: {}.", path, key, found.type_name());
    return &found;
  }

  static Result<std::size_t> index(const Json& json, const std::string& path, std::size_t bound) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= bound) {
      return fail(ErrorCode::BadInput, "{} must be an index below {}, but it is {}.", path, bound, json.dump().substr(0, 40));
    }
    return json.get<std::size_t>();
  }

  Result<void> readScopes(const Json& scopes) {
    if (!scopes.empty() && scopes[0].is_object()) m_builder.scope("", scopes[0].value("class", ""));
    for (std::size_t i = 1; i < scopes.size(); ++i) {
      const Json& scope = scopes[i];
      const std::string path = fmt::format("graph.scopes[{}]", i);
      CLEAVE_TRY(const Json* text, member(scope, path, "path", Json::value_t::string));
      const std::string className = scope.contains("class") && scope["class"].is_string() ? scope["class"].get<std::string>() : "";
      if (text->get_ref<const std::string&>().size() > 4096) return fail(ErrorCode::BadInput, "{}.path is longer than 4096 bytes.", path);
      m_scopes.push_back(m_builder.scope(text->get<std::string>(), className));
    }
    return {};
  }

  Result<TensorType> type(const std::string& text, const std::string& path) {
    const auto bracket = text.find('[');
    const auto dtype = bracket == std::string::npos ? std::nullopt : parseDType(std::string_view(text).substr(0, bracket));
    if (!dtype || text.back() != ']') return fail(ErrorCode::BadInput, "{}: \"{}\" is not a tensor type such as f32[2,8].", path, text.substr(0, 60));
    TensorType result{*dtype, {}};
    const char* at = text.data() + bracket + 1;
    const char* const end = text.data() + text.size() - 1;
    while (at < end) {
      std::int64_t size = 0;
      const auto parsed = std::from_chars(at, end, size);
      if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != ',')) {
        return fail(ErrorCode::BadInput, "{}: \"{}\" has a size that is not an integer.", path, text.substr(0, 60));
      }
      result.shape.push_back(size);
      at = parsed.ptr == end ? end : parsed.ptr + 1;
    }
    return result;
  }

  Result<void> readNode(const Json& json, const std::string& path) {
    CLEAVE_TRY(const Json* out, member(json, path, "out", Json::value_t::array));
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (const Json& result : *out) {
      if (!result.is_array() || result.size() != 2 || !result[0].is_string() || !result[1].is_string()) {
        return fail(ErrorCode::BadInput, "{}.out must hold pairs of name and type.", path);
      }
      names.push_back(result[0].get<std::string>());
      CLEAVE_TRY(types.emplace_back(), type(result[1].get<std::string>(), path + ".out"));
    }
    ScopeId scope(0);
    if (json.contains("scope")) {
      CLEAVE_TRY(const std::size_t i, index(json["scope"], path + ".scope", m_scopes.size() + 1));
      scope = i == 0 ? ScopeId(0) : m_scopes[i - 1];
    }
    NodeId origin;
    if (json.contains("origin")) {
      CLEAVE_TRY(const std::size_t i, index(json["origin"], path + ".origin", kMaxNodes));
      origin = NodeId(i);
    }
    if (json.contains("op")) return readCall(json, path, std::move(names), std::move(types), scope, origin);
    return readSource(json, path, std::move(names), std::move(types), scope);
  }

  Result<void> readCall(const Json& json, const std::string& path, std::vector<std::string> names, std::vector<TensorType> types,
                        ScopeId scope, NodeId origin) {
    CLEAVE_TRY(const std::size_t op, index(json["op"], path + ".op", m_ops.size()));
    CLEAVE_TRY(const Json* list, member(json, path, "args", Json::value_t::array));
    std::vector<Argument> args;
    for (std::size_t i = 0; i < list->size(); ++i) {
      CLEAVE_TRY(args.emplace_back(), argument((*list)[i], fmt::format("{}.args[{}]", path, i)));
    }
    const auto results = m_builder.addCall(m_ops[op], std::move(args), std::move(types), scope, origin);
    for (std::size_t i = 0; i < results.size(); ++i) m_builder.renameValue(results[i], names[i]);
    return {};
  }

  Result<void> readSource(const Json& json, const std::string& path, std::vector<std::string> names, std::vector<TensorType> types,
                          ScopeId scope) {
    CLEAVE_TRY(const Json* kind, member(json, path, "kind", Json::value_t::string));
    if (names.size() != 1) return fail(ErrorCode::BadInput, "{}.out must hold one value.", path);
    if (*kind == "input") {
      m_builder.addInput(names[0], types[0]);
    } else if (*kind == "parameter") {
      m_builder.addParameter(names[0], types[0], scope);
    } else if (*kind == "constant") {
      CLEAVE_TRY(const Json* data, member(json, path, "data", Json::value_t::string));
      CLEAVE_TRY(auto bytes, fromHex(data->get_ref<const std::string&>(), path));
      m_builder.addConstant(names[0], types[0], std::move(bytes), scope);
    } else {
      return fail(ErrorCode::BadInput, "{}.kind is \"{}\": expected input, parameter or constant.", path, kind->get<std::string>().substr(0, 40));
    }
    return {};
  }

  static Result<std::vector<std::byte>> fromHex(const std::string& text, const std::string& path) {
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
    std::vector<std::byte> data;
    data.reserve(text.size() / 2);
    for (std::size_t i = 0; i + 1 < text.size() + (text.size() % 2); i += 2) {
      const int high = digit(text[i]);
      const int low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
      if (high < 0 || low < 0) return fail(ErrorCode::BadInput, "{}.data is not an even number of hexadecimal digits.", path);
      data.push_back(static_cast<std::byte>(high * 16 + low));
    }
    return data;
  }

  Result<ValueId> valueId(const Json& json, const std::string& path) {
    if (json.is_null()) return ValueId();
    CLEAVE_TRY(const std::size_t i, index(json, path, m_builder.current().values.size()));
    return ValueId(i);
  }

  static Result<double> real(const Json& json, const std::string& path) {
    if (json.is_number()) return json.get<double>();
    if (json == "inf") return std::numeric_limits<double>::infinity();
    if (json == "-inf") return -std::numeric_limits<double>::infinity();
    if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
    return fail(ErrorCode::BadInput, "{} must be a number.", path);
  }

  Result<Argument> argument(const Json& json, const std::string& path) {
    if (json.is_null()) return Argument();
    if (json.is_boolean()) return Argument(json.get<bool>());
    if (json.is_number_integer()) return Argument(json.get<std::int64_t>());
    if (json.is_string()) return Argument(json.get<std::string>());
    if (json.is_array()) {
      std::vector<std::int64_t> items;
      for (const Json& item : json) {
        if (!item.is_number_integer()) return fail(ErrorCode::BadInput, "{} must hold integers.", path);
        items.push_back(item.get<std::int64_t>());
      }
      return Argument(std::move(items));
    }
    if (json.is_object() && json.size() == 1) return taggedArgument(json.begin().key(), json.begin().value(), path);
    return fail(ErrorCode::BadInput, "{} is no argument of an operator.", path);
  }

  Result<Argument> taggedArgument(const std::string& tag, const Json& json, const std::string& path) {
    if (tag == "v") {
      CLEAVE_TRY(const ValueId value, valueId(json, path));
      return value.isValid() ? Argument(value) : Argument();
    }
    if (tag == "f") {
      CLEAVE_TRY(const double value, real(json, path));
      return Argument(value);
    }
    if (tag == "dtype" && json.is_string()) {
      if (const auto dtype = parseDType(json.get_ref<const std::string&>())) return Argument(*dtype);
    }
    if (tag == "device") return Argument(DeviceArgument{});
    if (json.is_array() && tag == "vs") return list<ValueId>(json, path, [this](const Json& j, const std::string& p) { return valueId(j, p); });
    if (json.is_array() && tag == "fs") return list<double>(json, path, [](const Json& j, const std::string& p) { return real(j, p); });
    if (json.is_array() && tag == "bs") {
      return list<bool>(json, path, [](const Json& j, const std::string& p) -> Result<bool> {
        if (!j.is_boolean()) return fail(ErrorCode::BadInput, "{} must hold booleans.", p);
        return j.get<bool>();
      });
    }
    return fail(ErrorCode::BadInput, "{} is no argument of an operator.", path);
  }

  template <class T, class ReadItem>
  static Result<Argument> list(const Json& json, const std::string& path, ReadItem readItem) {
    std::vector<T> items;
    for (const Json& item : json) {
      CLEAVE_TRY(const T value, readItem(item, path));
      items.push_back(value);
    }
    return Argument(std::move(items));
  }

  Result<void> readOutput(const Json& json, const std::string& path) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_string()) return fail(ErrorCode::BadInput, "{} must be a name and a value.", path);
    CLEAVE_TRY(const ValueId value, valueId(json[1], path));
    if (!value.isValid()) return fail(ErrorCode::BadInput, "{} names no value.", path);
    m_builder.addOutput(json[0].get<std::string>(), value);
    return {};
  }

  Result<void> readTied(const Json& json) {
    if (!json.contains("tied")) return {};
    for (const auto& [parameter, names] : json["tied"].items()) {
      if (!names.is_array()) return fail(ErrorCode::BadInput, "graph.tied.{} must be a list of names.", parameter);
      for (const Json& name : names) {
        if (!name.is_string()) return fail(ErrorCode::BadInput, "graph.tied.{} must be a list of names.", parameter);
        m_builder.addTiedName(parameter, name.get<std::string>());
      }
    }
    return {};
  }

  GraphBuilder m_builder;
  std::vector<std::string> m_ops;
  std::vector<ScopeId> m_scopes;
};

}  // namespace

Json toJson(const Argument& argument) { return std::visit(ArgumentWriter{}, argument); }

Json toJson(const Graph& graph) {
  Json json;
  json["name"] = graph.name;
  json["ops"] = graph.ops;
  Json scopes = Json::array();
  for (const Scope& scope : graph.scopes) {
    Json entry{{"path", scope.path}};
    if (!scope.className.empty()) entry["class"] = scope.className;
    scopes.push_back(std::move(entry));
  }
  json["scopes"] = std::move(scopes);
  Json nodes = Json::array();
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) nodes.push_back(nodeToJson(graph, id));
  json["nodes"] = std::move(nodes);
  Json outputs = Json::array();
  for (const Output& output : graph.outputs) outputs.push_back({output.name, output.value.raw()});
  json["outputs"] = std::move(outputs);
  Json tied = Json::object();
  for (const Value& value : graph.values) {
    if (const auto names = graph.tiedNames.find(value.name); names != graph.tiedNames.end()) tied[value.name] = names->second;
  }
  if (!tied.empty()) json["tied"] = std::move(tied);
  return json;
}

Result<Graph> graphFromJson(const Json& json) { return Reader().read(json); }

}  // namespace cleave::graph
