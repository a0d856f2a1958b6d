#include "graph/json.h"

#include <algorithm>

namespace cleave::graph {
namespace {

struct ArgumentWriter {
  JsonWriter& json;

  void id(ValueId value) const { value.isValid() ? json.value(value.raw()) : json.null(); }
  template <class List, class WriteItem>
  void list(const List& items, WriteItem writeItem) const {
    json.beginArray();
    for (const auto item : items) writeItem(item);
    json.endArray();
  }
  template <class WriteValue>
  void tagged(std::string_view tag, WriteValue writeValue) const {
    json.beginObject();
    json.key(tag);
    writeValue();
    json.endObject();
  }

  void operator()(std::monostate) const { json.null(); }
  void operator()(ValueId value) const {
    tagged("v", [&] { id(value); });
  }
  void operator()(const ValueList& values) const {
    tagged("vs", [&] { list(values, [&](ValueId value) { id(value); }); });
  }
  void operator()(std::int64_t value) const { json.value(value); }
  void operator()(double value) const {
    tagged("f", [&] { json.real(value); });
  }
  void operator()(bool value) const { json.value(value); }
  void operator()(const std::string& value) const { json.value(value); }
  void operator()(const std::vector<std::int64_t>& values) const {
    list(values, [&](std::int64_t value) { json.value(value); });
  }
  void operator()(const std::vector<double>& values) const {
    tagged("fs", [&] { list(values, [&](double value) { json.real(value); }); });
  }
  void operator()(const std::vector<bool>& values) const {
    tagged("bs", [&] { list(values, [&](bool value) { json.value(value); }); });
  }
  void operator()(DType dtype) const {
    tagged("dtype", [&] { json.value(toText(dtype)); });
  }
  void operator()(DeviceArgument) const {
    tagged("device", [&] { json.value(true); });
  }
};

void writeNode(JsonWriter& json, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  json.beginObject();
  if (node.kind == NodeKind::Call) {
    json.key("op").value(node.op.raw());
    json.key("args").beginArray();
    for (const Argument& argument : node.args) std::visit(ArgumentWriter{json}, argument);
    json.endArray();
  } else {
    json.key("kind").value(node.kind == NodeKind::Input       ? "input"
                           : node.kind == NodeKind::Parameter ? "parameter"
                                                              : "constant");
  }
  json.key("out").beginArray();
  for (ValueId result : node.results) {
    json.beginArray();
    json.value(graph.value(result).name);
    json.value(toText(graph.value(result).type));
    json.endArray();
  }
  json.endArray();
  if (node.scope.index() != 0) json.key("scope").value(node.scope.raw());
  if (node.origin.isValid()) json.key("origin").value(node.origin.raw());
  if (const auto data = graph.constants.find(id.raw()); data != graph.constants.end())
    json.key("data").hex(data->second);
  json.endObject();
}

void writeScopes(JsonWriter& json, const Graph& graph) {
  json.key("scopes").beginArray();
  for (const Scope& scope : graph.scopes) {
    json.beginObject();
    json.key("path").value(scope.path);
    if (!scope.className.empty()) json.key("class").value(scope.className);
    json.endObject();
  }
  json.endArray();
}

void writeTied(JsonWriter& json, const Graph& graph) {
  const bool anyTied = std::any_of(graph.values.begin(), graph.values.end(),
                                   [&](const Value& value) { return graph.tiedNames.contains(value.name); });
  if (!anyTied) return;
  json.key("tied").beginObject();
  for (const Value& value : graph.values) {
    const auto names = graph.tiedNames.find(value.name);
    if (names == graph.tiedNames.end()) continue;
    json.key(value.name).beginArray();
    for (const std::string& name : names->second) json.value(name);
    json.endArray();
  }
  json.endObject();
}

void writePacked(JsonWriter& json, const Graph& graph) {
  if (graph.packedBytes.empty()) return;
  json.key("packed").beginObject();
  for (const Value& value : graph.values) {
    const auto bytes = graph.packedBytes.find(value.name);
    if (bytes != graph.packedBytes.end()) json.key(value.name).value(bytes->second);
  }
  json.endObject();
}

void writeFrozen(JsonWriter& json, const Graph& graph) {
  if (graph.frozen.empty()) return;
  json.key("frozen").beginArray();
  for (const Value& value : graph.values) {
    if (graph.frozen.contains(value.name)) json.value(value.name);
  }
  json.endArray();
}

}  // namespace

void writeGraph(JsonWriter& json, const Graph& graph) {
  json.beginObject();
  json.key("name").value(graph.name);
  json.key("ops").beginArray();
  for (const std::string& op : graph.ops) json.value(op);
  json.endArray();
  writeScopes(json, graph);
  json.key("nodes").beginArray();
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) writeNode(json, graph, id);
  json.endArray();
  json.key("outputs").beginArray();
  for (const Output& output : graph.outputs) {
    json.beginArray();
    json.value(output.name);
    json.value(output.value.raw());
    json.endArray();
  }
  json.endArray();
  writeTied(json, graph);
  writePacked(json, graph);
  writeFrozen(json, graph);
  json.endObject();
}

std::string toJson(const Graph& graph) {
  JsonWriter json;
  writeGraph(json, graph);
  return std::move(json).take();
}

}  // namespace cleave::graph
