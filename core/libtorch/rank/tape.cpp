#include "libtorch/rank/tape.h"

#include "base/throttle.h"
#include "graph/arguments.h"
#include "graph/operators.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"
#include "libtorch/bridge/types.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace cleave::torch_rank {

using graph::NodeId;
using graph::ValueId;

namespace {

using torch::autograd::Edge;

constexpr auto kBetweenReports = std::chrono::milliseconds(50);

/// Where autograd's record of one call begins: it takes an operand's gradient, and keeps no hold of the operand.
struct OperandEnd final : torch::autograd::Node {
  explicit OperandEnd(const at::Tensor& operand) { add_input_metadata(operand); }
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

/// Cleave's own operators that are made of ATen's.
bool isMadeOfOperators(ParallelOp op) {
  return op == ParallelOp::VocabEmbedding || op == ParallelOp::MoeExperts || op == ParallelOp::LocalExperts ||
         op == ParallelOp::GroupedProduct;
}

/// Its memory is nobody else's, so that it may be written to.
bool isOwn(const at::Tensor& x) {
  return x.use_count() == 1 && x.storage().use_count() == 1 && x.is_non_overlapping_and_dense();
}

}  // namespace

// ---- gradients of parameters

void ParameterGradients::add(ValueId parameter, at::Tensor gradient, bool isPart) {
  at::Tensor& sum = of(parameter, isPart);
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = isOwn(gradient) && gradient.is_contiguous() ? std::move(gradient)
                                                      : gradient.clone(at::MemoryFormat::Contiguous);
  }
}

void ParameterGradients::clear() {
  m_complete.clear();
  m_parts.clear();
}

// ---- forward

/// What one node keeps.
struct Tape::Entry {
  NodeId node;
  std::vector<std::pair<ValueId, std::shared_ptr<OperandEnd>>> operands;  ///< that have a gradient
  std::vector<std::pair<ValueId, Edge>> results;                          ///< that depend on them
  std::optional<VocabLoss> loss;
};

Tape::Tape(const graph::Graph& program, const program::Backward& backward, at::Device device)
    : m_program(program), m_backward(backward), m_device(device), m_gradients(program.values.size()) {}
Tape::~Tape() = default;

void Tape::clear() {
  m_entries.clear();
  m_gathered.clear();
  std::fill(m_gradients.begin(), m_gradients.end(), at::Tensor());
}

Result<std::vector<at::Tensor>> Tape::record(NodeId node, const BoundCall& call, Collectives& collectives,
                                             const TakeArguments& take) {
  auto entry = std::make_unique<Entry>();
  entry->node = node;
  const auto* own = std::get_if<ParallelOp>(&call.target);
  std::vector<at::Tensor> results;
  if (!own || isMadeOfOperators(*own)) {
    CLEAVE_TRY(results, recordOperator(*entry, call, collectives, take));
  } else {
    CLEAVE_TRY(results.emplace_back(), recordOwn(*entry, *own, collectives, take));
  }
  m_entries.push_back(std::move(entry));
  return results;
}

Result<std::vector<at::Tensor>> Tape::recordOperator(Entry& entry, const BoundCall& call, Collectives& collectives,
                                                     const TakeArguments& take) {
  const auto seen = [&](ValueId value, const at::Tensor& tensor) {
    if (!m_backward.gradients.of(value)) return tensor;
    auto end = std::find_if(entry.operands.begin(), entry.operands.end(),
                            [&](const auto& operand) { return operand.first == value; });
    if (end == entry.operands.end()) end = entry.operands.insert(end, {value, std::make_shared<OperandEnd>(tensor)});
    at::Tensor operand = tensor.detach();
    torch::autograd::impl::set_gradient_edge(operand, Edge(end->second, 0));
    return operand;
  };
  std::vector<c10::IValue> stack = take(seen);
  std::vector<at::Tensor> results;
  const c10::AutoGradMode gradients(true);
  if (const auto* own = std::get_if<ParallelOp>(&call.target)) {
    CLEAVE_TRY(results.emplace_back(), runParallelOp(*own, stack, collectives));
  } else {
    CLEAVE_TRY(results, bridge::call(std::get<c10::OperatorHandle>(call.target), stack));
  }
  const graph::Node& node = m_program.node(entry.node);
  for (std::size_t i = 0; i < results.size() && i < node.results.size(); ++i) {
    if (!results[i].defined()) continue;
    if (results[i].requires_grad())
      entry.results.emplace_back(node.results[i], torch::autograd::impl::gradient_edge(results[i]));
    results[i] = results[i].detach();
  }
  return results;
}

Result<at::Tensor> Tape::recordOwn(Entry& entry, ParallelOp op, Collectives& collectives, const TakeArguments& take) {
  std::vector<c10::IValue> stack = take([](ValueId, const at::Tensor& tensor) { return tensor; });
  if (op == ParallelOp::VocabCrossEntropy) {
    CLEAVE_TRY(entry.loss, vocabLoss(stack, collectives));
    return std::exchange(entry.loss->loss, at::Tensor());
  }
  const graph::Node& node = m_program.node(entry.node);
  const ValueId operand = graph::operandAt(node, 0);
  Gathered gathered;
  const bool isAgain =
      op == ParallelOp::GatherInput && program::isGatheredAgain(m_program, m_backward.gradients, node.results[0]);
  if (isAgain) gathered = {.part = stack[0].toTensor(), .dim = stack[1].toInt(), .readers = 1};
  CLEAVE_TRY(at::Tensor result, runParallelOp(op, stack, collectives));
  if (isAgain) {
    gathered.whole = result.variable_data();
    m_gathered[node.results[0].raw()] = std::move(gathered);
  }
  if (const auto of = m_gathered.find(operand.raw()); op == ParallelOp::GradAllReduce && of != m_gathered.end())
    ++of->second.readers;
  return result;
}

void Tape::release(ValueId value) {
  auto gathered = m_gathered.find(value.raw());
  if (gathered == m_gathered.end()) gathered = m_gathered.find(program::behindGradientSum(m_program, value).raw());
  if (gathered == m_gathered.end() || --gathered->second.readers > 0) return;
  // The layers keep views of this memory; they are not looked at before it is filled again.
  const at::Storage& memory = gathered->second.whole.storage();
  memory.set_data_ptr_noswap(memory.allocator()->allocate(0));
  memory.set_nbytes(0);
  gathered->second.isGone = true;
}

// ---- backward

void Tape::give(ValueId value, at::Tensor gradient) {
  if (!gradient.defined() || !m_backward.gradients.of(value)) return;
  if (m_program.node(m_program.value(value).producer).kind == graph::NodeKind::Parameter)
    return m_parameters.add(value, std::move(gradient), false);
  at::Tensor& sum = m_gradients[value.index()];
  if (!sum.defined()) {
    sum = std::move(gradient);
  } else if (isOwn(sum)) {
    sum.add_(gradient);
  } else if (isOwn(gradient)) {
    sum = std::move(gradient.add_(sum));
  } else {
    sum = sum.add(gradient);
  }
}

at::Tensor Tape::take(ValueId value) { return std::exchange(m_gradients[value.index()], at::Tensor()); }

Result<void> Tape::gatherAgain(NodeId node, Collectives& collectives) {
  const ValueId value = program::gatheredAgain(m_program, m_backward.gradients, node);
  const auto gathered = value.isValid() ? m_gathered.find(value.raw()) : m_gathered.end();
  if (gathered == m_gathered.end() || !gathered->second.isGone) return {};
  CLEAVE_TRY(const at::Tensor again, collectives.allGather(gathered->second.part, gathered->second.dim));
  const at::Storage& memory = gathered->second.whole.storage();
  const std::size_t bytes = again.storage().nbytes();
  memory.set_data_ptr_noswap(again.storage().set_data_ptr(memory.allocator()->allocate(0)));
  memory.set_nbytes(bytes);
  gathered->second.isGone = false;
  return {};
}

Result<void> Tape::passOperator(Entry& entry, Collectives& collectives) {
  torch::autograd::edge_list from, to;
  torch::autograd::variable_list gradients;
  for (auto& [value, edge] : entry.results) {
    at::Tensor gradient = take(value);
    if (!gradient.defined()) continue;
    from.push_back(std::move(edge));
    gradients.push_back(std::move(gradient));
  }
  if (from.empty()) return {};
  for (const auto& [value, end] : entry.operands) to.emplace_back(end, 0);
  CLEAVE_TRY_VOID(gatherAgain(entry.node, collectives));
  auto given = torch::autograd::Engine::get_default_engine().execute(
      from, gradients, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false, to);
  gradients.clear();
  for (std::size_t i = 0; i < given.size(); ++i) give(entry.operands[i].first, std::move(given[i]));
  return {};
}

/// A part of a sum: of a parameter added up at the end of the step, of a gathered input only as much as is this rank's.
Result<void> Tape::passSum(const graph::Node& node, at::Tensor gradient, Collectives& collectives) {
  const ValueId operand = graph::operandAt(node, 0);
  const graph::Node& producer = m_program.node(m_program.value(operand).producer);
  if (producer.kind == graph::NodeKind::Parameter) {
    m_parameters.add(operand, std::move(gradient), true);
    return {};
  }
  if (graph::parallelOp(m_program.opName(producer)) == ParallelOp::GatherInput) {
    CLEAVE_TRY(at::Tensor part, collectives.reduceScatter(gradient, graph::integerAt(producer, 1).value_or(0)));
    give(graph::operandAt(producer, 0), std::move(part));
    return {};
  }
  CLEAVE_TRY(at::Tensor sum, collectives.allReduce(std::move(gradient), Reduction::Sum));
  give(operand, std::move(sum));
  return {};
}

Result<void> Tape::passOwn(Entry& entry, ParallelOp op, Collectives& collectives) {
  const graph::Node& node = m_program.node(entry.node);
  const ValueId operand = graph::operandAt(node, 0);
  at::Tensor gradient = take(node.results[0]);
  if (!gradient.defined()) return {};
  const std::int64_t dim = graph::integerAt(node, 1).value_or(0);
  switch (op) {
    case ParallelOp::AllReduce: give(operand, std::move(gradient)); return {};
    case ParallelOp::AllGather:
    case ParallelOp::GatherInput: {
      const std::int64_t length = gradient.size(dim) / collectives.worldSize();
      // A view would keep the whole.
      give(operand, gradient.narrow(dim, collectives.rank() * length, length).clone(at::MemoryFormat::Contiguous));
      return {};
    }
    case ParallelOp::ReduceScatter:
    case ParallelOp::Shard: {
      CLEAVE_TRY(at::Tensor whole, collectives.allGather(gradient, dim));
      give(operand, std::move(whole));
      return {};
    }
    case ParallelOp::GradAllReduce: return passSum(node, std::move(gradient), collectives);
    case ParallelOp::Same: give(operand, gradient.div(collectives.worldSize())); return {};
    case ParallelOp::VocabCrossEntropy: give(operand, vocabLossGradient(*std::move(entry.loss), gradient)); return {};
    case ParallelOp::VocabEmbedding:
    case ParallelOp::MoeExperts:
    case ParallelOp::LocalExperts:
    case ParallelOp::GroupedProduct: break;
  }
  return {};
}

Result<void> Tape::pass(Entry& entry, Collectives& collectives) {
  const auto own = graph::parallelOp(m_program.opName(m_program.node(entry.node)));
  return own && !isMadeOfOperators(*own) ? passOwn(entry, *own, collectives) : passOperator(entry, collectives);
}

Result<void> Tape::backward(double scale, Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const graph::TensorType& type = m_program.value(m_backward.gradients.loss).type;
  give(m_backward.gradients.loss,
       at::full(type.shape, scale, at::TensorOptions(bridge::toScalarType(type.dtype)).device(m_device)));
  Throttle reports(kBetweenReports, std::chrono::steady_clock::now());
  const auto count = static_cast<std::int64_t>(m_entries.size());
  while (!m_entries.empty()) {
    if (progress.cancelled()) return progress.cancelledError("running the backward pass");
    const std::unique_ptr<Entry> entry = std::move(m_entries.back());
    m_entries.pop_back();
    memory.setCurrentNode(static_cast<std::int32_t>(entry->node.index()));
    auto passed = bridge::translated(
        [&] {
          const StepRecorder::Scope recorded(m_recorder, SpanKind::Backward, entry->node);
          return pass(*entry, collectives);
        },
        ErrorCode::BadInput);
    if (!passed) {
      return fail(passed.error().code, "The backward pass of {} failed: {}", nameOfNode(m_program, entry->node),
                  passed.error().message);
    }
    if (reports.isDue(std::chrono::steady_clock::now()))
      progress.report("backward", count - static_cast<std::int64_t>(m_entries.size()), count);
  }
  memory.setCurrentNode(-1);
  clear();
  return {};
}

}  // namespace cleave::torch_rank
