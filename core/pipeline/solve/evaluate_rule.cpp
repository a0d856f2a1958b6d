#include "pipeline/solve/evaluate_rule.h"

#include "base/json.h"
#include "graph/graph_builder.h"
#include "graph/layers.h"
#include "graph/type_text.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/normalise.h"
#include "libtorch/capture/operator_arguments.h"
#include "rules/rule.h"
#include "rules/strategies.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::pipeline {
namespace {

using graph::Argument;
constexpr int kMaxRanksAsked = 1 << 16;
constexpr JsonLimits kLineLimits{.bytes = 1 << 20, .depth = 16, .elements = 100'000};

/// A tensor of the line, which becomes a value of the graph with one operator.
struct AskedTensor {
  graph::TensorType type;
  rules::Placement placement;
  bool isPlaced = false, isParameter = false;
};

bool wantsIndices(const std::string& argumentName) {
  return argumentName.find("ind") == 0 || argumentName == "target" || argumentName == "index";
}

class LineEvaluator {
 public:
  Result<std::string> evaluate(std::string_view line) {
    CLEAVE_TRY(const nlohmann::json json, parseJson(line, "The line", kLineLimits));
    CLEAVE_TRY(const JsonObject fields, JsonObject::of(json, "The line"));
    CLEAVE_TRY_VOID(readHead(fields));
    CLEAVE_TRY_VOID(readArguments(fields));
    CLEAVE_TRY(const graph::Graph graph, buildGraph());
    return answer(graph, graph::NodeId(graph.nodes.size() - 1));
  }

 private:
  Result<void> readHead(const JsonObject& fields) {
    CLEAVE_TRY(m_op, fields.text("op"));
    if (m_op.find("::") == std::string::npos) m_op = "aten::" + m_op;
    // Use the operator that capture writes, unless this one has its own rule.
    if (const auto view = torch_capture::viewOf(m_op); view && !rules::hasRule(m_op)) m_op = *view;
    m_known = torch_capture::argumentsOf(m_op);
    CLEAVE_TRY(const std::int64_t ranks, fields.integer("ranks", {1, kMaxRanksAsked}, 2));
    m_context.worldSize = static_cast<int>(ranks);
    m_context.candidateSet = rules::CandidateSet::Full;
    if (fields.has("menu")) {
      CLEAVE_TRY(m_context.candidateSet, fields.word("menu", rules::parseCandidateSet));
    }
    return readSequenceParallel(fields);
  }

  /// on, off, auto, true or false.
  Result<void> readSequenceParallel(const JsonObject& fields) {
    m_context.sequenceParallel = rules::SequenceParallel::Auto;
    const nlohmann::json* given = fields.find("sequence_parallel");
    if (given == nullptr) return {};
    if (given->is_boolean()) {
      m_context.sequenceParallel = given->get<bool>() ? rules::SequenceParallel::On : rules::SequenceParallel::Off;
      return {};
    }
    CLEAVE_TRY(m_context.sequenceParallel, fields.word("sequence_parallel", rules::parseSequenceParallel));
    return {};
  }

  const torch_capture::OperatorArgument* knownAt(std::size_t position) const {
    return m_known && position < m_known->size() ? &(*m_known)[position] : nullptr;
  }

  std::string argumentName(std::size_t position) const {
    const auto* known = knownAt(position);
    return known ? known->name : std::to_string(position);
  }

  Result<void> readArguments(const JsonObject& fields) {
    if (fields.has("args")) {
      CLEAVE_TRY(const JsonArray args, fields.array("args"));
      for (std::size_t i = 0; i < args.size(); ++i) {
        CLEAVE_TRY(Argument argument, readArgument(args[i], i));
        m_args.push_back(std::move(argument));
      }
    }
    if (!fields.has("kwargs")) return {};
    CLEAVE_TRY(const JsonObject named, fields.object("kwargs"));
    for (const auto& [name, value] : named.json().items()) CLEAVE_TRY_VOID(readNamed(name, value));
    return {};
  }

  Result<void> readNamed(const std::string& name, const nlohmann::json& value) {
    if (!m_known)
      return fail(ErrorCode::BadInput,
                  "The schema of {} is unknown, so {} has no position. Give all arguments in order.", m_op,
                  quotedText(name));
    const auto found = std::ranges::find(*m_known, name, &torch_capture::OperatorArgument::name);
    if (found == m_known->end()) return fail(ErrorCode::BadInput, "{} has no argument {}.", m_op, quotedText(name));
    const std::size_t position = static_cast<std::size_t>(found - m_known->begin());
    for (std::size_t i = m_args.size(); i <= position; ++i) {
      CLEAVE_TRY(Argument filler, i < position ? defaultArgument(i) : Result<Argument>(Argument()));
      m_args.push_back(std::move(filler));
    }
    CLEAVE_TRY(m_args[position], readArgument(value, position));
    return {};
  }

  Result<Argument> defaultArgument(std::size_t position) const {
    const torch_capture::OperatorArgument& argument = (*m_known)[position];
    if (argument.byDefault) return *argument.byDefault;
    return fail(ErrorCode::BadInput, "{} needs its argument \"{}\".", m_op, argument.name);
  }

  Result<Argument> readArgument(const nlohmann::json& json, std::size_t position) {
    if (json.is_null()) return Argument();
    if (json.is_boolean()) return Argument(json.get<bool>());
    if (json.is_number_integer()) {
      CLEAVE_TRY(const std::int64_t integer, integerOf(json, position));
      return Argument(integer);
    }
    if (json.is_number_float()) return Argument(json.get<double>());
    if (json.is_string()) return text(json.get<std::string>(), position);
    if (json.is_object()) return tensor(json, position);
    return list(json, position);
  }

  Result<std::int64_t> integerOf(const nlohmann::json& json, std::size_t position) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() <= kMost) return json.get<std::int64_t>();
    return fail(ErrorCode::BadInput, "Argument {} of {} is {}, which does not fit a signed 64-bit integer.",
                argumentName(position), m_op, describe(json));
  }

  Result<Argument> text(const std::string& word, std::size_t position) const {
    const auto* known = knownAt(position);
    if (known && known->isDevice) return Argument(graph::DeviceArgument());
    const bool isDType = known && known->isElementType;
    if (const auto dtype = graph::parseDType(word); dtype && (isDType || word.starts_with("torch.")))
      return Argument(*dtype);
    return Argument(word);
  }

  Result<Argument> tensor(const nlohmann::json& json, std::size_t position) {
    CLEAVE_TRY(const JsonObject fields,
               JsonObject::at(json, fmt::format("Argument {} of {}", argumentName(position), m_op)));
    AskedTensor asked;
    CLEAVE_TRY(asked.type.shape, fields.integers("tensor", {}, graph::kMaxDimensions));
    if (wantsIndices(argumentName(position))) asked.type.dtype = graph::DType::Int64;
    if (fields.has("dtype")) {
      CLEAVE_TRY(asked.type.dtype, fields.word("dtype", graph::parseDType));
    }
    if (fields.has("placement")) {
      CLEAVE_TRY(const std::string text, fields.text("placement"));
      const auto placement = rules::Placement::parse(text);
      if (!placement) return fields.wrong("placement", "a placement such as R, S(1) or S(1,x2)");
      asked.placement = *placement;
      asked.isPlaced = true;
    }
    CLEAVE_TRY(const bool isParameter, fields.flag("parameter", false));
    asked.isParameter = isParameter || (argumentName(position) == "weight" && !asked.isPlaced);
    m_tensors.push_back(std::move(asked));
    return Argument(graph::ValueId(m_tensors.size() - 1));
  }

  Result<Argument> list(const nlohmann::json& json, std::size_t position) {
    const bool hasTensors =
        std::any_of(json.begin(), json.end(), [](const nlohmann::json& item) { return item.is_object(); });
    const bool hasReals =
        std::any_of(json.begin(), json.end(), [](const nlohmann::json& item) { return item.is_number_float(); });
    const bool hasBooleans = !json.empty() && std::all_of(json.begin(), json.end(),
                                                          [](const nlohmann::json& item) { return item.is_boolean(); });
    if (hasBooleans) return Argument(json.get<std::vector<bool>>());
    graph::ValueList values;
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    for (const nlohmann::json& item : json) {
      if (hasTensors && (item.is_object() || item.is_null())) {
        CLEAVE_TRY(const Argument argument, readArgument(item, position));
        const auto* value = std::get_if<graph::ValueId>(&argument);
        values.push_back(value ? *value : graph::ValueId());
      } else if (item.is_number() && hasReals) {
        reals.push_back(item.get<double>());
      } else if (item.is_number_integer() && !hasTensors) {
        CLEAVE_TRY(integers.emplace_back(), integerOf(item, position));
      } else {
        return fail(ErrorCode::BadInput, "Argument {} of {} is a list with items of different kinds.",
                    argumentName(position), m_op);
      }
    }
    if (hasTensors) return Argument(std::move(values));
    return hasReals ? Argument(std::move(reals)) : Argument(std::move(integers));
  }

  /// Tensor n of the line becomes value n of the graph, because inputs and parameters come first.
  Result<graph::Graph> buildGraph() {
    std::vector<graph::TensorType> types;
    for (const AskedTensor& asked : m_tensors) types.push_back(asked.type);
    CLEAVE_TRY(auto results, torch_capture::inferResults(m_op, m_args, types));
    graph::GraphBuilder builder;
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
      const std::string name = fmt::format("input_{}", i);
      m_tensors[i].isParameter ? builder.addParameter(name, types[i]) : builder.addInput(name, types[i]);
    }
    builder.addCall(m_op, m_args, std::move(results));
    return std::move(builder).finish();
  }

  Result<std::string> answer(const graph::Graph& graph, graph::NodeId node) const {
    for (std::size_t i = 0; i < m_tensors.size(); ++i) {
      const auto& [type, placement, isPlaced, isParameter] = m_tensors[i];
      if (placement.localShape(type.shape, m_context.worldSize)) continue;
      return jsonText(
          {{"conflict", fmt::format("tensor {} of shape {} cannot be {}: {}", i, graph::toText(type.shape),
                                    placement.text(), placement.whyNotDivisible(type.shape, m_context.worldSize))}});
    }
    if (const auto layer = graph::layerShape(graph, node)) return layerAnswer(graph, node, *layer);
    std::vector<rules::Placement> operands;
    for (const graph::ValueId value : graph::operandsOf(graph.node(node)))
      operands.push_back(m_tensors[value.index()].placement);
    const auto verdict = rules::applyRule({graph, node, operands, m_context.worldSize});
    if (const auto* conflict = std::get_if<rules::Conflict>(&verdict))
      return jsonText({{"conflict", conflict->reason}});
    std::vector<std::string> out;
    for (const rules::Claim& claim : std::get<std::vector<rules::Claim>>(verdict))
      addUnique(out, claim.results.at(0).text());
    return jsonText({{"out", out}});
  }

  Result<std::string> layerAnswer(const graph::Graph& graph, graph::NodeId node, const graph::LayerShape& layer) const {
    const auto options = rules::layerStrategies(graph, node, layer, m_context);
    const rules::Placement& input = m_tensors[layer.input.index()].placement;
    std::vector<std::string> out;
    for (const rules::LayerStrategy& option : options.offered) {
      const bool weightFits = !layer.weight.isValid() || !m_tensors[layer.weight.index()].isPlaced ||
                              m_tensors[layer.weight.index()].placement == option.weight;
      if (option.input == input && weightFits) addUnique(out, option.result.text());
    }
    if (!out.empty()) return jsonText({{"out", out}});
    std::string reason = fmt::format("no strategy of this layer accepts an input that is {}", input.text());
    for (const rules::Refusal& refusal : options.refused) reason += "; " + refusal.reason;
    return jsonText({{"conflict", reason}});
  }

  static void addUnique(std::vector<std::string>& list, std::string text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
  }

  std::string m_op;
  std::optional<std::vector<torch_capture::OperatorArgument>> m_known;  ///< arguments of m_op
  rules::StrategyContext m_context;
  std::vector<AskedTensor> m_tensors;
  std::vector<Argument> m_args;
};

}  // namespace

Result<std::string> evaluateRule(std::string_view line) { return LineEvaluator().evaluate(line); }

std::string errorLine(const Error& error) { return jsonText({{"error", error.message}}); }

}  // namespace cleave::pipeline
