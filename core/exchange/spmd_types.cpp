#include "base/characters.h"
#include "base/json.h"
#include "base/quantities.h"
#include "exchange/formats.h"
#include "exchange/spmd_prelude.h"
#include "graph/operators.h"

#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

// clang-format off
/// The rank program as Python code for the checker of the package spmd_types (0.3). It has ATen's operators with one
/// rank's shapes, and collectives with the types on both sides. At each module border it has the plan's type of the
/// value: R (replicated) or V (each rank has its part). A partial sum is P up to the collective that completes it, so
/// the checker rejects the program if a collective is removed. It covers the forward pass; constants are zeros.
// clang-format on

namespace cleave::exchange {
namespace {

using graph::Argument;
using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ParallelOp;
using graph::ValueId;

std::string inTorch(DType dtype) { return fmt::format("torch.{}", graph::torchName(dtype)); }

/// JSON strings are valid Python strings.
std::string quoted(const std::string& text) { return jsonText(nlohmann::ordered_json(text)); }

std::string numberText(double number) {
  if (std::isnan(number)) return "float(\"nan\")";
  if (std::isinf(number)) return number > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

template <class T, class Text>
std::string listOf(const std::vector<T>& items, Text text) {
  std::vector<std::string> texts;
  for (const auto& item : items) texts.push_back(text(item));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string shapeText(const graph::Shape& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) text += fmt::format("{}, ", size);
  return text + ")";
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const plan::Plan& plan)
      : m_plan(plan), m_graph(*plan.program), m_isPart(m_graph.values.size()) {}

  Result<std::string> write() && {
    declareSources();
    for (NodeId node : idRange<NodeId>(m_graph.nodes.size())) CLEAVE_TRY_VOID(writeNode(node));
    for (const graph::Output& output : m_graph.outputs)
      m_outputs += fmt::format("{}: {}, ", quoted(output.name), name(output.value));
    std::string text = fmt::format(
        "\"\"\"One rank's program of {}, for the checker of spmd_types: run this file.\n\nWritten from a plan of "
        "Cleave. Constants are zeros, because the check does not need their values.\n\"\"\"",
        counted(m_plan.spec.ranks, "rank"));
    text += kSpmdPrelude;
    text +=
        fmt::format("\nRANKS = {}\nPARAMETERS = {{\n{}}}\nINPUTS = {{\n{}}}\n\n\ndef program(p, i, tp, device):\n{}",
                    m_plan.spec.ranks, m_parameters, m_inputs, m_body);
    return text + fmt::format("    return {{{}}}\n", m_outputs) + std::string(kSpmdCheck);
  }

 private:
  static std::string name(ValueId value) { return fmt::format("v{}", value.index()); }

  void declareSources() {
    std::set<std::string> parts;
    for (const plan::ParameterShards& shards : m_plan.parameters) {
      if (!shards.placement.isReplicatedOn(m_plan.spec.ranks)) parts.insert(shards.name);
    }
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const Node& node = m_graph.node(id);
      if (node.kind == NodeKind::Call) continue;
      const graph::Value& value = m_graph.value(node.results[0]);
      const bool isPart = node.kind == NodeKind::Parameter && parts.contains(value.name);
      m_isPart[node.results[0].index()] = isPart;
      const std::string entry = fmt::format("    {}: ({}, {}, {}),\n", quoted(value.name), shapeText(value.type.shape),
                                            inTorch(value.type.dtype), isPart ? "V" : "R");
      if (node.kind == NodeKind::Parameter) m_parameters += entry;
      if (node.kind == NodeKind::Input) m_inputs += entry;
    }
  }

  void line(const std::string& text) { m_body += "    " + text + "\n"; }

  Result<void> writeNode(NodeId id) {
    const Node& node = m_graph.node(id);
    if (node.results.empty()) return {};
    enterScope(node.scope);
    const ValueId result = node.results[0];
    const graph::Value& value = m_graph.value(result);
    switch (node.kind) {
      case NodeKind::Input: line(fmt::format("{} = i[{}]", name(result), quoted(value.name))); return {};
      case NodeKind::Parameter: line(fmt::format("{} = p[{}]", name(result), quoted(value.name))); return {};
      case NodeKind::Constant:
        line(fmt::format("{} = spmd.assert_type(torch.zeros({}, dtype={}, device=device), {{tp: R}})", name(result),
                         shapeText(value.type.shape), inTorch(value.type.dtype)));
        return {};
      case NodeKind::Call: break;
    }
    if (const auto own = graph::parallelOp(m_graph.opName(node))) {
      CLEAVE_TRY_VOID(writeOwn(node, *own));
    } else {
      CLEAVE_TRY_VOID(writeAten(node));
    }
    for (const ValueId made : node.results) assertAtBorder(made);
    return {};
  }

  void enterScope(graph::ScopeId scope) {
    if (scope == m_scope) return;
    m_scope = scope;
    std::string path = m_graph.scope(scope).path;
    std::replace_if(
        path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
    line(fmt::format("# {}", path.empty() ? "the model" : path));
  }

  /// A value that leaves its module has the plan's type.
  void assertAtBorder(ValueId value) {
    const graph::ScopeId scope = m_graph.node(m_graph.value(value).producer).scope;
    const auto& users = m_graph.value(value).users;
    const bool leaves = users.empty() || std::any_of(users.begin(), users.end(),
                                                     [&](NodeId user) { return m_graph.node(user).scope != scope; });
    if (leaves) line(fmt::format("spmd.assert_type({}, {{tp: {}}})", name(value), m_isPart[value.index()] ? "V" : "R"));
  }

  Result<void> writeAten(const Node& node) {
    const std::string& op = m_graph.opName(node);
    const bool isPlain = op.starts_with("aten::") && hasOnlyLettersDigitsAnd("_.:", op);
    if (!isPlain || std::count(op.begin(), op.end(), ':') != 2)
      return fail(ErrorCode::BadInput, "spmd-types cannot call the operator {}, which is not an ATen operator.",
                  quotedText(op));
    std::string path = op.substr(6);
    if (path.find('.') == std::string::npos) path += ".default";
    std::string results;
    for (const ValueId result : node.results) results += name(result) + ", ";
    if (node.results.size() == 1) results.resize(results.size() - 2);
    bool readsTensor = false, readsPart = false;
    graph::forEachOperand(node, [&](ValueId value) {
      readsTensor = true;
      readsPart = readsPart || m_isPart[value.index()];
    });
    for (const ValueId result : node.results) m_isPart[result.index()] = readsPart;
    std::string arguments;
    for (const Argument& argument : node.args) arguments += ", " + text(argument);
    line(fmt::format("{} = call(torch.ops.aten.{}{})", results, path, arguments));
    // A result without tensor inputs is equal on all ranks, but the checker does not know that for every operator.
    if (!readsTensor) {
      for (const ValueId result : node.results) line(fmt::format("spmd.assert_type({}, {{tp: R}})", name(result)));
    }
    return {};
  }

  Result<void> writeOwn(const Node& node, ParallelOp op) {
    const ValueId result = node.results[0];
    const auto argument = [&](std::size_t i) {
      return i < node.args.size() ? text(node.args[i]) : std::string("None");
    };
    const std::string made = name(result), x = argument(0);
    bool isPart = false;
    switch (op) {
      case ParallelOp::AllReduce:
        line(fmt::format("{} = partial({}, tp)", made, x));
        line(fmt::format("{0} = spmd.all_reduce({0}, tp, src=P, dst=R)", made));
        break;
      case ParallelOp::AllGather:
      case ParallelOp::GatherInput:
        line(fmt::format("{} = spmd.all_gather({}, tp, src=S({}), dst=R)", made, x, argument(1)));
        break;
      case ParallelOp::ReduceScatter:
        line(fmt::format("{} = partial({}, tp)", made, x));
        line(fmt::format("{0} = spmd.reduce_scatter({0}, tp, src=P, dst=S({1}))", made, argument(1)));
        isPart = true;
        break;
      case ParallelOp::Shard:
        line(fmt::format("{} = spmd.convert({}, tp, src=R, dst=S({}))", made, x, argument(1)));
        isPart = true;
        break;
      case ParallelOp::VocabEmbedding:
        line(fmt::format("{} = vocab_embedding({}, {})", made, x, argument(1)));
        isPart = true;
        break;
      case ParallelOp::VocabCrossEntropy:
        if (argument(5) != "0.0") return refuse("a loss with label smoothing");
        line(fmt::format("{} = vocab_cross_entropy(tp, {}, {}, {}, {}, {})", made, x, argument(1), argument(3),
                         argument(4), argument(6)));
        break;
      case ParallelOp::MoeExperts:
      case ParallelOp::LocalExperts: {
        std::string all = x;
        for (std::size_t i = 1; i <= 8; ++i) all += ", " + argument(i);
        const ValueId gateUp = std::get<ValueId>(node.args[3]);
        line(fmt::format("{} = experts({}, {})", made, all,
                         op == ParallelOp::LocalExperts ? fmt::format("dist.get_rank() * {}.shape[0]", name(gateUp))
                                                        : std::string("0")));
        isPart = m_isPart[gateUp.index()];
        break;
      }
      case ParallelOp::GradAllReduce:
      case ParallelOp::Same:
        line(fmt::format("{} = {}", made, x));
        isPart = m_isPart[std::get<ValueId>(node.args[0]).index()];
        break;
      case ParallelOp::Dropout: return refuse("dropout without element indices");
      case ParallelOp::GroupedProduct: return refuse("grouped products");
    }
    m_isPart[result.index()] = isPart;
    return {};
  }

  static tl::unexpected<Error> refuse(std::string_view what) {
    return fail(ErrorCode::BadInput, "spmd-types cannot express {}.", what);
  }

  static std::string text(const Argument& argument) {
    struct Visitor {
      std::string operator()(std::monostate) const { return "None"; }
      std::string operator()(ValueId value) const { return value.isValid() ? name(value) : "None"; }
      std::string operator()(const graph::ValueList& values) const {
        return listOf(values, [](ValueId v) { return v.isValid() ? name(v) : std::string("None"); });
      }
      std::string operator()(std::int64_t number) const { return std::to_string(number); }
      std::string operator()(double number) const { return numberText(number); }
      std::string operator()(bool truth) const { return truth ? "True" : "False"; }
      std::string operator()(const std::string& text) const { return quoted(text); }
      std::string operator()(const std::vector<std::int64_t>& numbers) const {
        return listOf(numbers, [](std::int64_t n) { return std::to_string(n); });
      }
      std::string operator()(const std::vector<double>& numbers) const { return listOf(numbers, numberText); }
      std::string operator()(const std::vector<bool>& truths) const {
        std::vector<std::string> texts;
        for (const bool truth : truths) texts.emplace_back(truth ? "True" : "False");
        return fmt::format("[{}]", fmt::join(texts, ", "));
      }
      std::string operator()(DType dtype) const { return inTorch(dtype); }
      std::string operator()(graph::DeviceArgument) const { return "device"; }
    };
    return std::visit(Visitor(), argument);
  }

  const plan::Plan& m_plan;
  const Graph& m_graph;
  std::vector<bool> m_isPart;  ///< by ValueId: each rank has its own
  graph::ScopeId m_scope;
  std::string m_parameters, m_inputs, m_body, m_outputs;
};

}  // namespace

Result<Exported> writeSpmdTypes(const plan::Plan& plan, const Options&) {
  CLEAVE_TRY(std::string text, ProgramWriter(plan).write());
  return Exported{std::move(text), {}};
}

}  // namespace cleave::exchange
