#include "libtorch/rank/execute/interpreter.h"

#include "base/quantities.h"
#include "base/throttle.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"

#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::torch_rank {

using graph::NodeId;
using graph::NodeKind;
using graph::ValueId;

namespace {
constexpr auto kReportPeriod = std::chrono::milliseconds(50);
}

Result<Program> Program::bind(std::shared_ptr<const graph::Graph> graph, at::Device device) {
  Program program(std::move(graph), device);
  CLEAVE_TRY(program.m_calls, bindCalls(*program.m_graph, device));
  program.m_given.resize(program.m_graph->values.size());
  program.m_values.resize(program.m_graph->values.size());
  program.planLifetimes();
  CLEAVE_TRY_VOID(program.makeConstants());
  return program;
}

void Program::planLifetimes() {
  m_deadAfter.resize(m_graph->nodes.size());
  std::vector<bool> isOutput(m_graph->values.size(), false);
  for (const graph::Output& output : m_graph->outputs) isOutput[output.value.index()] = true;
  for (auto id : idRange<ValueId>(m_graph->values.size())) {
    if (isOutput[id.index()]) continue;
    const graph::Value& value = m_graph->value(id);
    const NodeId last = value.users.empty() ? value.producer : value.users.back();
    m_deadAfter[last.index()].push_back(id);
  }
}

Result<void> Program::makeConstants() {
  for (auto id : idRange<NodeId>(m_graph->nodes.size())) {
    const graph::Node& node = m_graph->node(id);
    if (node.kind != NodeKind::Constant) continue;
    const graph::Value& value = m_graph->value(node.results[0]);
    const auto data = m_graph->constants.find(id.raw());
    const std::int64_t bytes = graph::sizeInBytes(value.type);
    if (data == m_graph->constants.end() || static_cast<std::int64_t>(data->second.size()) != bytes) {
      return fail(ErrorCode::BadInput, "The program's constant {} needs {} of data, but has {}.", value.name,
                  counted(bytes, "byte"), data == m_graph->constants.end() ? 0 : data->second.size());
    }
    const auto view = at::from_blob(const_cast<std::byte*>(data->second.data()), value.type.shape,
                                    bridge::toScalarType(value.type.dtype));
    m_given[node.results[0].index()] = view.clone().to(m_device);
  }
  return {};
}

Result<void> Program::setTensor(ValueId id, at::Tensor tensor) {
  const graph::Value& value = m_graph->value(id);
  if (tensor.sizes() != at::IntArrayRef(value.type.shape) ||
      tensor.scalar_type() != bridge::toScalarType(value.type.dtype)) {
    return fail(ErrorCode::BadInput, "{} is {}, but this plan needs {}.", value.name, bridge::describe(tensor),
                graph::toText(value.type));
  }
  m_given[id.index()] = std::move(tensor);
  return {};
}

std::vector<c10::IValue> Program::collectArguments(const BoundCall& call, NodeId node, const Tape::Seen& seen) {
  std::vector<c10::IValue> stack =
      call.arguments.with([&](ValueId value) { return seen(value, m_values[value.index()]); });
  // Releases values that this node uses last. Then only the stack owns them, so a collective may work in place.
  for (ValueId value : m_deadAfter[node.index()]) m_values[value.index()] = at::Tensor();
  return stack;
}

Result<std::vector<at::Tensor>> Program::execute(NodeId node, Collectives& collectives, Tape* tape) {
  const BoundCall& call = *m_calls[node.index()];
  const auto take = [&](const Tape::Seen& seen) { return collectArguments(call, node, seen); };
  if (tape && tape->records(node)) return tape->record(node, call, collectives, take);
  std::vector<c10::IValue> stack = take([](ValueId, const at::Tensor& tensor) { return tensor; });
  return runCall(call, stack, collectives, m_draws);
}

std::string Program::describeOperands(const graph::Node& node) const {
  std::vector<std::string> texts;
  for (ValueId operand : graph::operandsOf(node)) {
    const graph::Value& value = m_graph->value(operand);
    texts.push_back(fmt::format("{} {}", value.name, graph::toText(value.type)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Result<void> Program::runNode(NodeId id, Collectives& collectives, LiveMemory& memory, Tape* tape) {
  const graph::Node& node = m_graph->node(id);
  memory.setCurrentNode(static_cast<std::int32_t>(id.index()));
  if (node.kind != NodeKind::Call) {
    const ValueId value = node.results[0];
    if (!m_given[value.index()].defined())
      return fail(ErrorCode::BadInput, "The program's {} has no tensor.", m_graph->value(value).name);
    m_values[value.index()] = m_given[value.index()];
    if (m_watcher) m_watcher->see(value, m_values[value.index()]);
    return {};
  }
  auto results = bridge::translated(
      [&] {
        const StepRecorder::Scope recorded(m_recorder, SpanKind::Forward, id);
        return execute(id, collectives, tape);
      },
      ErrorCode::BadInput);
  if (!results) {
    return fail(results.error().code, "{} failed on {}: {}", nameOfNode(*m_graph, id), describeOperands(node),
                results.error().message);
  }
  if (results->size() != node.results.size()) {
    return fail(ErrorCode::BadInput, "{} has {} results, but the plan has {}.", nameOfNode(*m_graph, id),
                results->size(), node.results.size());
  }
  for (std::size_t i = 0; i < results->size(); ++i) {
    const at::Tensor& tensor = (*results)[i];
    const graph::Value& value = m_graph->value(node.results[i]);
    const bool isAsPlanned = !tensor.defined() || (tensor.sizes() == at::IntArrayRef(value.type.shape) &&
                                                   bridge::toDType(tensor.scalar_type()) == value.type.dtype);
    if (!isAsPlanned) {
      return fail(ErrorCode::BadInput, "{} returned {}, but the plan has {}.", nameOfNode(*m_graph, id),
                  bridge::describe(tensor), graph::toText(value.type));
    }
    memory.add(node.results[i], tensor);
    m_values[node.results[i].index()] = tensor;
    if (m_watcher) m_watcher->see(node.results[i], tensor);
    if (tape) tape->see(node.results[i], tensor);
  }
  for (ValueId dead : m_deadAfter[id.index()]) {
    memory.release(dead);
    m_values[dead.index()] = at::Tensor();
    if (tape) tape->release(dead);
  }
  return {};
}

Result<NamedTensors> Program::run(Collectives& collectives, LiveMemory& memory, const Progress& progress, Tape* tape) {
  std::fill(m_values.begin(), m_values.end(), at::Tensor());
  memory.reset();
  m_draws.key = drawKey(m_seed, m_pass);
  at::manual_seed(m_draws.key);  // for random operators on replicated values
  if (tape) tape->setDraws(m_draws);
  for (const at::Tensor& tensor : m_given) {
    if (tensor.defined()) memory.pin(tensor);
  }
  Throttle reports(kReportPeriod, std::chrono::steady_clock::now());
  const auto count = static_cast<std::int64_t>(m_graph->nodes.size());
  for (auto id : idRange<NodeId>(m_graph->nodes.size())) {
    if (progress.cancelled()) return progress.cancelledError("running the program");
    if (auto ran = runNode(id, collectives, memory, tape); !ran) return tl::unexpected(ran.error());
    if (reports.isDue(std::chrono::steady_clock::now()))
      progress.report("running", static_cast<std::int64_t>(id.index()) + 1, count);
  }
  memory.setCurrentNode(-1);
  NamedTensors outputs;
  for (const graph::Output& output : m_graph->outputs)
    outputs.emplace_back(output.name, m_values[output.value.index()]);
  std::fill(m_values.begin(), m_values.end(), at::Tensor());
  return outputs;
}

Result<at::Tensor> Program::evaluate(ValueId wanted) const {
  const NodeId last = m_graph->value(wanted).producer;
  std::vector<bool> leadsThere(m_graph->nodes.size(), false);
  leadsThere[last.index()] = true;
  for (std::size_t n = last.index() + 1; n-- > 0;) {
    if (!leadsThere[n]) continue;
    graph::forEachOperand(m_graph->nodes[n],
                          [&](ValueId operand) { leadsThere[m_graph->value(operand).producer.index()] = true; });
  }
  std::vector<at::Tensor> values(m_graph->values.size());
  for (auto id : idRange<NodeId>(last.index() + 1)) {
    if (!leadsThere[id.index()]) continue;
    const graph::Node& node = m_graph->node(id);
    if (node.kind == NodeKind::Input || node.kind == NodeKind::Constant) {
      values[node.results[0].index()] = m_given[node.results[0].index()];
      continue;
    }
    const auto* op =
        node.kind == NodeKind::Call ? std::get_if<c10::OperatorHandle>(&m_calls[id.index()]->target) : nullptr;
    if (!op) {
      return fail(ErrorCode::BadInput, "{} depends on {}, not only on inputs.", m_graph->value(wanted).name,
                  m_graph->value(node.results[0]).name);
    }
    std::vector<c10::IValue> stack =
        m_calls[id.index()]->arguments.with([&](ValueId value) { return values[value.index()]; });
    CLEAVE_TRY(const std::vector<at::Tensor> results,
               bridge::translated([&] { return bridge::call(*op, stack); }, ErrorCode::BadInput));
    for (std::size_t i = 0; i < std::min(results.size(), node.results.size()); ++i)
      values[node.results[i].index()] = results[i];
  }
  return values[wanted.index()];
}

}  // namespace cleave::torch_rank
