#include "formats/exported_graph.h"

#include "base/quantities.h"
#include "formats/exported_modules.h"
#include "graph/graph.h"
#include "graph/verify.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::formats {
namespace {

using nlohmann::json;

constexpr int kDeepestGraph = 8;
constexpr std::size_t kMostResults = 1 << 16;  ///< arguments of one call
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

/// Higher operators that compute exactly what their graph computes, whatever their other arguments are.
bool runsItsGraph(std::string_view target) {
  target.remove_prefix(kHigherOrder.size());
  return target == "wrap_with_set_grad_enabled" || target == "wrap" || target == "invoke_subgraph" ||
         target == "wrap_activation_checkpoint" || target == "tag_activation_checkpoint";
}

/// `wrap_with_autocast(device, dtype, enabled, cache, graph, ...)`: it changes nothing if it is disabled.
bool isAutocast(std::string_view target) { return target == "torch.ops.higher_order.wrap_with_autocast"; }

/// The boolean argument of a higher operator at this position; nullopt: it is not a boolean.
std::optional<bool> switchAt(const JsonArray& arguments, std::size_t position) {
  if (arguments.size() <= position || !arguments[position].is_object()) return std::nullopt;
  const auto argument = arguments[position].find("arg");
  if (argument == arguments[position].end() || !argument->is_object()) return std::nullopt;
  const auto flag = argument->find("as_bool");
  if (flag == argument->end() || !flag->is_boolean()) return std::nullopt;
  return flag->get<bool>();
}

bool switchesAutocastOff(const JsonArray& arguments) {
  constexpr std::size_t kEnabled = 2;
  return switchAt(arguments, kEnabled) == false;
}

/// True if calls inside a higher operator's graph pass gradients: `torch.no_grad()` is
/// `wrap_with_set_grad_enabled(False, graph, ...)`.
bool passesGradients(std::string_view target, const JsonArray& arguments, bool outside) {
  if (target != "torch.ops.higher_order.wrap_with_set_grad_enabled") return outside;
  return switchAt(arguments, 0).value_or(outside);
}

}  // namespace

struct ExportedGraphReader::GraphCall {
  JsonObject graph;
  std::vector<ExportedMeaning> handed;  ///< arguments for the graph's inputs
};

struct ExportedGraphReader::Level {
  JsonObject fields;
  const json* tensorValues = nullptr;
  ExportedNames& names;
  int depth = 0;
  bool passesGradients = true;

  static Result<Level> of(const JsonObject& fields, ExportedNames& names, int depth) {
    const json* values = fields.find("tensor_values");
    if (values && !values->is_object()) return fields.wrong("tensor_values", "an object");
    return Level{fields, values, names, depth, true};
  }
};

Result<std::vector<ExportedArgument>> ExportedGraphReader::read(const json& graph) {
  CLEAVE_TRY(const JsonObject fields, JsonObject::at(graph, m_where + ": graph"));
  CLEAVE_TRY(Level level, Level::of(fields, m_names, 0));
  CLEAVE_TRY_VOID(readInputs(level));
  CLEAVE_TRY_VOID(readNodes(level));
  return readOutputs(level);
}

Result<ExportedId> ExportedGraphReader::define(const std::string& name, Level& level, const std::string& where) {
  const ExportedId id(m_program.values.size());
  if (!level.names.emplace(name, id).second)
    return fail(ErrorCode::BadInput, "{} defines {}, which is already defined.", where, quotedText(name));
  ExportedValue value{name, std::nullopt};
  if (level.tensorValues) {
    if (const auto known = level.tensorValues->find(name); known != level.tensorValues->end()) {
      const std::string place = fmt::format("{}: the tensor {}", m_where, quotedText(name));
      // Tensors that no graph supports (complex numbers) are reported at the call that makes them.
      const auto dtype = known->is_object() ? known->find("dtype") : known->end();
      const bool isNamed = known->is_object() && dtype != known->end();
      value.isComplex = isNamed && isComplexType(*dtype);
      if (!isNamed || readScalarType(*dtype, place)) {
        CLEAVE_TRY(value.tensor, m_types.readTensor(*known, place));
      }
    }
  }
  m_program.values.push_back(std::move(value));
  return id;
}

/// Constants among the inputs have no name here, and no call reads them.
Result<void> ExportedGraphReader::readInputs(Level& level) {
  CLEAVE_TRY(const JsonArray inputs, level.fields.array("inputs"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CLEAVE_TRY(const ExportedUnion input, readUnion(inputs[i], inputs.nameOf(i)));
    const bool isTensor = input.tag == "as_tensor";
    if (!isTensor && input.tag != "as_sym_int" && input.tag != "as_custom_obj") continue;
    CLEAVE_TRY(const std::string name,
               readName(*input.value, input.tag == "as_sym_int" ? "as_name" : "name", input.where));
    CLEAVE_TRY(const ExportedId id, define(name, level, input.where));
    if (isTensor || !level.fields.has("sym_int_values")) continue;
    CLEAVE_TRY(const JsonObject numbers, level.fields.object("sym_int_values"));
    if (const json* number = numbers.find(name)) {
      CLEAVE_TRY(m_program.values[id.index()].number, m_types.readSize(*number, numbers.nameOf(name)));
    }
  }
  return {};
}

Result<void> ExportedGraphReader::readNodes(Level& level) {
  CLEAVE_TRY(const JsonArray nodes, level.fields.array("nodes"));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (m_progress.cancelled()) return m_progress.cancelledError("reading the exported program");
    if (m_program.nodes.size() >= graph::kMaxNodes)
      return fail(ErrorCode::BadInput, "{}: the graph has more than {} calls.", m_where, graph::kMaxNodes);
    CLEAVE_TRY(const JsonObject node, nodes.object(i));
    CLEAVE_TRY_VOID(readNode(node, level));
  }
  return {};
}

Result<void> ExportedGraphReader::readNode(const JsonObject& node, Level& level) {
  ExportedNode call;
  CLEAVE_TRY(call.target, node.text("target"));
  CLEAVE_TRY_VOID(readOrigin(node, call));
  if (!call.target.starts_with(kHigherOrder)) return readCall(node, std::move(call), level);
  return readGraphCall(node, call, level);
}

Result<void> ExportedGraphReader::readOrigin(const JsonObject& node, ExportedNode& call) {
  if (!node.has("metadata")) return {};
  CLEAVE_TRY(const JsonObject metadata, node.object("metadata"));
  CLEAVE_TRY(const std::string stack, metadata.text("nn_module_stack", std::string()));
  CLEAVE_TRY(const std::string trace, metadata.text("stack_trace", std::string()));
  const auto [modules, isNewStack] = m_modules.try_emplace(stack, static_cast<std::uint32_t>(m_program.modules.size()));
  if (isNewStack) m_program.modules.push_back(modulesOf(stack));
  call.module = modules->second;
  constexpr auto kNone = static_cast<std::uint32_t>(-1);
  const auto [source, isNewTrace] = m_sources.try_emplace(trace, kNone);
  if (isNewTrace) {
    if (std::string line = sourceLineOf(trace); !line.empty()) {
      const auto [known, isNewLine] =
          m_sourceLines.try_emplace(line, static_cast<std::uint32_t>(m_program.sources.size()));
      if (isNewLine) m_program.sources.push_back(std::move(line));
      source->second = known->second;
    }
  }
  if (source->second != kNone) call.source = source->second;
  return {};
}

Result<void> ExportedGraphReader::readCall(const JsonObject& node, ExportedNode call, Level& level) {
  CLEAVE_TRY(const JsonArray inputs, node.array("inputs"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CLEAVE_TRY(const JsonObject input, inputs.object(i));
    CLEAVE_TRY(std::string name, input.text("name", std::string()));
    const json* argument = input.find("arg");
    if (!argument) return input.wrong("arg", "an argument");
    CLEAVE_TRY(const ExportedUnion from, readUnion(*argument, input.nameOf("arg")));
    CLEAVE_TRY(ExportedArgument value, readArgument(from, level.names));
    call.arguments.emplace_back(std::move(name), std::move(value));
  }
  const std::size_t known = m_program.values.size();
  CLEAVE_TRY_VOID(readResults(node, call, level));
  m_program.nodes.push_back(std::move(call));
  m_withoutGradient.resize(known);
  m_withoutGradient.resize(m_program.values.size(), !level.passesGradients);
  return {};
}

/// `id`, or a detached value that is made here if a call without gradients made `id`.
ExportedId ExportedGraphReader::detached(ExportedId id, const ExportedNode& place) {
  if (!id.isValid() || id.index() >= m_withoutGradient.size() || !m_withoutGradient[id.index()]) return id;
  const auto& tensor = m_program.value(id).tensor;
  if (!tensor || !graph::isFloatingPoint(tensor->dtype)) return id;
  const ExportedId made(m_program.values.size());
  m_program.values.push_back(ExportedValue(m_program.value(id)));
  ExportedNode call;
  call.target = "torch.ops.aten.detach.default";
  call.module = place.module;
  call.source = place.source;
  call.arguments.emplace_back("self", id);
  call.results.emplace_back(made);
  m_program.nodes.push_back(std::move(call));
  return made;
}

Result<void> ExportedGraphReader::readResults(const JsonObject& node, ExportedNode& call, Level& level) {
  CLEAVE_TRY(const JsonArray outputs, node.array("outputs"));
  std::size_t count = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CLEAVE_TRY(const ExportedUnion output, readUnion(outputs[i], outputs.nameOf(i)));
    const bool isList = output.tag == "as_tensors" && output.value->is_array();
    count += isList ? output.value->size() : 1;
    if (count > kMostResults)
      return fail(ErrorCode::BadInput, "{}: a call cannot have {}.", outputs.nameOf(i),
                  counted(static_cast<std::int64_t>(count), "result"));
    if (isList) {
      std::vector<ExportedId> ids;
      for (std::size_t j = 0; j < output.value->size(); ++j) {
        const std::string where = fmt::format("{}[{}]", output.where, j);
        CLEAVE_TRY(const std::string name, readName((*output.value)[j], "name", where));
        CLEAVE_TRY(ids.emplace_back(), define(name, level, where));
      }
      call.results.emplace_back(std::move(ids));
    } else if (output.tag == "as_none") {
      call.results.emplace_back(ExportedId());
    } else if (output.tag == "as_tensor" || output.tag.starts_with("as_sym_")) {
      const char* key = output.tag == "as_tensor" ? "name" : "as_name";
      CLEAVE_TRY(const std::string name, readName(*output.value, key, output.where));
      CLEAVE_TRY(const ExportedId id, define(name, level, output.where));
      call.results.emplace_back(id);
    } else {
      return fail(ErrorCode::BadInput, "{} is a result of a kind that Cleave does not support.", output.where);
    }
  }
  return {};
}

std::string ExportedGraphReader::placeOf(const ExportedNode& call) const {
  const std::string& path = m_program.modules[call.module].back().path;
  return fmt::format("{}: {}{}{}{}", m_where, call.target, path.empty() ? "" : " in module " + path,
                     call.source ? " at " : "", call.source ? m_program.sources[*call.source] : "");
}

/// The graph argument of a higher operator, and the arguments after it.
Result<ExportedGraphReader::GraphCall> ExportedGraphReader::readHanded(const ExportedNode& call,
                                                                       const JsonArray& inputs,
                                                                       const Level& level) const {
  const json* graph = nullptr;
  std::string where;
  std::vector<ExportedMeaning> handed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CLEAVE_TRY(const JsonObject input, inputs.object(i));
    const json* argument = input.find("arg");
    if (!argument) return input.wrong("arg", "an argument");
    CLEAVE_TRY(const ExportedUnion from, readUnion(*argument, input.nameOf("arg")));
    if (from.tag == "as_graph" && !graph) {
      graph = from.value->is_object() && from.value->contains("graph") ? &(*from.value)["graph"] : nullptr;
      where = from.where + ".graph";
      if (!graph) return input.wrong("arg", "a graph");
      continue;
    }
    CLEAVE_TRY(const ExportedArgument value, readArgument(from, level.names));
    if (!graph || std::holds_alternative<std::string>(value)) continue;  // switches and the name of a graph
    if (const auto* id = std::get_if<ExportedId>(&value)) handed.emplace_back(*id);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) handed.emplace_back(*integer);
    if (const auto* real = std::get_if<double>(&value)) handed.emplace_back(*real);
    if (const auto* flag = std::get_if<bool>(&value)) handed.emplace_back(*flag);
    if (std::holds_alternative<std::monostate>(value)) handed.emplace_back(std::monostate());
    if (const auto* list = std::get_if<std::vector<ExportedId>>(&value))
      handed.insert(handed.end(), list->begin(), list->end());
  }
  if (!graph) return fail(ErrorCode::BadInput, "{} has no graph.", placeOf(call));
  CLEAVE_TRY(const JsonObject fields, JsonObject::at(*graph, where));
  return GraphCall{fields, std::move(handed)};
}

/// Inlines the inner graph: its inputs are the call's arguments, and its outputs get the names of the call's results.
Result<void> ExportedGraphReader::readGraphCall(const JsonObject& node, const ExportedNode& call, Level& level) {
  CLEAVE_TRY(const JsonArray inputs, node.array("inputs"));
  if (isAutocast(call.target) && !switchesAutocastOff(inputs)) {
    return fail(ErrorCode::BadInput,
                "{}: the graph does not show where autocast computes in other types. Call "
                "program.run_decompositions() before saving, which writes it out.",
                placeOf(call));
  }
  if (!isAutocast(call.target) && !runsItsGraph(call.target)) {
    return fail(ErrorCode::BadInput,
                "{} is a higher operator that selects its graph at run time, which Cleave does not support. Export "
                "the model on a path without it.",
                placeOf(call));
  }
  if (level.depth >= kDeepestGraph)
    return fail(ErrorCode::BadInput, "{}: graphs are nested deeper than {} levels.", placeOf(call), kDeepestGraph);
  CLEAVE_TRY(GraphCall inner, readHanded(call, inputs, level));
  return runGraph(node, call, std::move(inner), passesGradients(call.target, inputs, level.passesGradients), level);
}

Result<void> ExportedGraphReader::runGraph(const JsonObject& node, const ExportedNode& call, GraphCall inside,
                                           bool passes, Level& level) {
  std::vector<ExportedMeaning>& handed = inside.handed;
  const JsonObject& fields = inside.graph;
  CLEAVE_TRY(const JsonArray wanted, fields.array("inputs"));
  if (wanted.size() != handed.size()) {
    return fail(ErrorCode::BadInput, "{}: its graph takes {}, but the call passes {}.", placeOf(call),
                counted(static_cast<std::int64_t>(wanted.size()), "value"), handed.size());
  }
  ExportedNames names;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (auto* id = std::get_if<ExportedId>(&handed[i]); id && passes && !level.passesGradients)
      *id = detached(*id, call);
    CLEAVE_TRY(const ExportedUnion input, readUnion(wanted[i], wanted.nameOf(i)));
    if (input.tag != "as_tensor" && input.tag != "as_sym_int") continue;
    CLEAVE_TRY(const std::string name,
               readName(*input.value, input.tag == "as_tensor" ? "name" : "as_name", input.where));
    if (!names.emplace(name, handed[i]).second)
      return fail(ErrorCode::BadInput, "{} names {} twice.", input.where, quotedText(name));
  }
  CLEAVE_TRY(Level inner, Level::of(fields, names, level.depth + 1));
  inner.passesGradients = passes;
  CLEAVE_TRY_VOID(readNodes(inner));
  CLEAVE_TRY(auto results, readOutputs(inner));
  if (!passes && level.passesGradients) {
    for (ExportedArgument& result : results) {
      if (auto* id = std::get_if<ExportedId>(&result)) *id = detached(*id, call);
    }
  }
  return bindResults(node, results, level);
}

Result<void> ExportedGraphReader::bindResults(const JsonObject& node, const std::vector<ExportedArgument>& results,
                                              Level& level) {
  CLEAVE_TRY(const JsonArray outputs, node.array("outputs"));
  std::vector<std::string> names;  // empty: the result is not used
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CLEAVE_TRY(const ExportedUnion output, readUnion(outputs[i], outputs.nameOf(i)));
    if (output.tag == "as_tensors" && output.value->is_array()) {
      for (const json& one : *output.value) {
        CLEAVE_TRY(names.emplace_back(), readName(one, "name", output.where));
      }
    } else if (output.tag == "as_none") {
      names.emplace_back();
    } else {
      const char* key = output.tag == "as_tensor" ? "name" : "as_name";
      CLEAVE_TRY(names.emplace_back(), readName(*output.value, key, output.where));
    }
  }
  if (names.size() != results.size()) {
    return fail(ErrorCode::BadInput, "{}: its graph returns {}, but {} are named.", node.where(),
                counted(static_cast<std::int64_t>(results.size()), "value"), names.size());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    ExportedMeaning meaning;
    if (const auto* id = std::get_if<ExportedId>(&results[i])) meaning = *id;
    if (const auto* integer = std::get_if<std::int64_t>(&results[i])) meaning = *integer;
    if (const auto* real = std::get_if<double>(&results[i])) meaning = *real;
    if (const auto* flag = std::get_if<bool>(&results[i])) meaning = *flag;
    if (!level.names.emplace(names[i], meaning).second)
      return fail(ErrorCode::BadInput, "{} defines {}, which is already defined.", node.where(), quotedText(names[i]));
  }
  return {};
}

Result<std::vector<ExportedArgument>> ExportedGraphReader::readOutputs(Level& level) const {
  CLEAVE_TRY(const JsonArray outputs, level.fields.array("outputs"));
  std::vector<ExportedArgument> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CLEAVE_TRY(const ExportedUnion output, readUnion(outputs[i], outputs.nameOf(i)));
    CLEAVE_TRY(results.emplace_back(), readArgument(output, level.names));
  }
  return results;
}

}  // namespace cleave::formats
