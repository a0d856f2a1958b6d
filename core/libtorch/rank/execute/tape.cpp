#include "libtorch/rank/execute/tape.h"

#include "base/throttle.h"
#include "graph/arguments.h"
#include "graph/operators.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
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

/// The leaf of autograd's record of one call. Stores an operand's gradient, but not the operand. Gradients returned by
/// the engine are not used, because its thread shares them for a short time and they must not be overwritten then.
struct OperandEnd final : torch::autograd::Node {
  explicit OperandEnd(const at::Tensor& operand) { add_input_metadata(operand); }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    gradient = std::move(gradients[0]);
    return {};
  }
  at::Tensor gradient;
};

/// True for Cleave's operators that consist of ATen operators.
bool isMadeOfOperators(ParallelOp op) {
  return op == ParallelOp::VocabEmbedding || op == ParallelOp::MoeExperts || op == ParallelOp::LocalExperts ||
         op == ParallelOp::GroupedProduct || op == ParallelOp::Dropout;
}

/// True if the memory has no other owner, so it may be overwritten.
bool isOwn(const at::Tensor& x) {
  return x.use_count() == 1 && x.storage().use_count() == 1 && x.is_non_overlapping_and_dense() &&
         x.storage().nbytes() == x.nbytes();
}

}  // namespace

// ---- gradients of parameters

void ParameterGradients::reserve(ValueId parameter, const at::Tensor& like, bool isPart) {
  Sums& sums = m_sums[parameter.raw()];
  (isPart ? sums.part : sums.complete).memory = at::empty_like(like, {}, at::MemoryFormat::Contiguous);
}

void ParameterGradients::makeRoom(ValueId parameter, bool isPart) {
  Sums& sums = m_sums[parameter.raw()];
  Sum& sum = isPart ? sums.part : sums.complete;
  if (!sum.isAny) sum.memory.reset();
}

void ParameterGradients::add(ValueId parameter, at::Tensor gradient, bool isPart) {
  Sums& sums = m_sums[parameter.raw()];
  Sum& sum = isPart ? sums.part : sums.complete;
  sum.isPart = isPart;
  if (!sum.memory.defined()) {
    sum.memory = isOwn(gradient) && gradient.is_contiguous() ? std::move(gradient)
                                                             : gradient.clone(at::MemoryFormat::Contiguous);
  } else if (sum.isAny) {
    sum.memory.add_(gradient);
  } else {
    sum.memory.copy_(gradient);
  }
  sum.isAny = true;
}

at::Tensor ParameterGradients::of(ValueId parameter, bool isPart) const {
  const auto sums = m_sums.find(parameter.raw());
  if (sums == m_sums.end()) return {};
  const Sum& complete = sums->second.complete;
  const Sum& part = sums->second.part;
  if (isPart) return part.isAny && part.isPart ? part.memory : at::Tensor();
  if (complete.isAny) return complete.memory;
  return part.isAny && !part.isPart ? part.memory : at::Tensor();
}

void ParameterGradients::completeParts() {
  for (auto& [parameter, sums] : m_sums) {
    if (!sums.part.isAny || !sums.part.isPart) continue;
    sums.part.isPart = false;
    if (sums.complete.isAny) sums.complete.memory.add_(sums.part.memory);
  }
}

void ParameterGradients::clear() {
  for (auto& [parameter, sums] : m_sums) sums.complete.isAny = sums.part.isAny = false;
}

// ---- forward

/// The saved data of one node.
struct Tape::Entry {
  NodeId node;
  std::vector<std::pair<ValueId, std::shared_ptr<OperandEnd>>> operands;  ///< operands with a gradient
  std::vector<std::pair<ValueId, Edge>> results;                          ///< results that depend on them
  std::optional<VocabLoss> loss;
};

Tape::Tape(const graph::Graph& program, const program::Backward& backward, at::Device device, Calls calls)
    : m_program(program),
      m_backward(backward),
      m_device(device),
      m_calls(calls),
      m_entries(program.nodes.size()),
      m_gradients(program.values.size()),
      m_isKept(program.values.size(), false),
      m_deadAfter(program.nodes.size()),
      m_keptUntil(program.nodes.size()),
      m_beginsWith(program.nodes.size(), 0) {
  const auto& blocks = backward.checkpoints.blocks;
  std::unordered_map<ValueId, NodeId> keptUntil;
  for (std::uint32_t index = 0; index < blocks.size(); ++index) {
    const graph::CheckpointedBlock& block = blocks[index];
    for (const ValueId value : block.kept) {
      // A value that will be gathered again is not kept.
      const ValueId source = program::withoutGradientSum(program, value);
      m_isKept[value.index()] = !program::isGatheredAgain(program, backward.gradients, source);
      NodeId& until = keptUntil.try_emplace(value, block.again.front()).first->second;
      until = std::min(until, block.again.front());
    }
    std::unordered_map<ValueId, NodeId> last;
    for (const NodeId id : block.again) {
      for (const ValueId result : program.node(id).results) last[result] = id;
      for (const ValueId operand : graph::operandsOf(program.node(id))) {
        if (backward.checkpoints.isNeeded(operand)) last[operand] = id;
      }
    }
    for (const auto& [value, id] : last) m_deadAfter[id.index()].push_back(value);
    m_beginsWith[block.last.index()] = index + 1;
  }
  for (const auto& [value, node] : keptUntil) m_keptUntil[node.index()].push_back(value);
}
Tape::~Tape() = default;

void Tape::clear() {
  for (std::unique_ptr<Entry>& entry : m_entries) entry.reset();
  m_gathered.clear();
  m_kept.clear();
  m_madeAgain.clear();
  std::fill(m_gradients.begin(), m_gradients.end(), at::Tensor());
}

Result<std::vector<at::Tensor>> Tape::record(NodeId node, const BoundCall& call, Collectives& collectives,
                                             const CollectArguments& take) {
  auto entry = std::make_unique<Entry>();
  entry->node = node;
  const auto* own = std::get_if<ParallelOp>(&call.target);
  std::vector<at::Tensor> results;
  if (!own || isMadeOfOperators(*own)) {
    CLEAVE_TRY(results, recordOperator(*entry, call, collectives, take));
  } else {
    CLEAVE_TRY(results.emplace_back(), recordOwn(*entry, *own, collectives, take));
  }
  m_entries[node.index()] = std::move(entry);
  return results;
}

Result<std::vector<at::Tensor>> Tape::recordOperator(Entry& entry, const BoundCall& call, Collectives& collectives,
                                                     const CollectArguments& take) {
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
  const c10::AutoGradMode gradients(true);
  CLEAVE_TRY(std::vector<at::Tensor> results, runCall(call, stack, collectives, m_draws));
  const graph::Node& node = m_program.node(entry.node);
  for (std::size_t i = 0; i < results.size() && i < node.results.size(); ++i) {
    if (!results[i].defined()) continue;
    if (results[i].requires_grad())
      entry.results.emplace_back(node.results[i], torch::autograd::impl::gradient_edge(results[i]));
    results[i] = results[i].detach();
  }
  return results;
}

Result<at::Tensor> Tape::recordOwn(Entry& entry, ParallelOp op, Collectives& collectives,
                                   const CollectArguments& take) {
  std::vector<c10::IValue> stack = take([](ValueId, const at::Tensor& tensor) { return tensor; });
  if (op == ParallelOp::VocabCrossEntropy) {
    CLEAVE_TRY(entry.loss, vocabLoss(stack, collectives));
    return std::exchange(entry.loss->loss, at::Tensor());
  }
  const graph::Node& node = m_program.node(entry.node);
  const ValueId operand = graph::operandAt(node, 0);
  Gathered gathered;
  const bool isAgain = op == ParallelOp::GatherInput && !m_backward.checkpoints.isAgain(entry.node) &&
                       program::isGatheredAgain(m_program, m_backward.gradients, node.results[0]);
  if (isAgain) gathered = {.part = stack[0].toTensor(), .dim = stack[1].toInt(), .readers = 1};
  CLEAVE_TRY(at::Tensor result, runParallelOp(op, stack, collectives, m_draws));
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
  if (gathered == m_gathered.end()) gathered = m_gathered.find(program::withoutGradientSum(m_program, value).raw());
  if (gathered == m_gathered.end() || --gathered->second.readers > 0) return;
  // The layers' views of this memory are not read before it is gathered again.
  const at::Storage& memory = gathered->second.whole.storage();
  memory.set_data_ptr_noswap(memory.allocator()->allocate(0));
  memory.set_nbytes(0);
  gathered->second.isGone = true;
}

// ---- backward

void Tape::give(ValueId value, at::Tensor gradient) {
  if (!gradient.defined() || !m_backward.gradients.of(value)) return;
  // A view owns its base tensor. Without this reference, the gradient may be the only owner of its memory.
  if (gradient.is_view()) gradient = gradient.variable_data();
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
  return fill(program::gatheredAgain(m_program, m_backward.gradients, node), collectives);
}

Result<void> Tape::fill(ValueId value, Collectives& collectives) {
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

/// Frees memory for the gradients of the parameters that the node reads.
void Tape::makeRoom(const Entry& entry) {
  for (const auto& [value, end] : entry.operands) {
    const ValueId parameter = program::withoutGradientSum(m_program, value);
    if (m_program.node(m_program.value(parameter).producer).kind == graph::NodeKind::Parameter)
      m_parameters.makeRoom(parameter, parameter != value);
  }
}

Result<void> Tape::passOperator(Entry& entry, Collectives& collectives) {
  torch::autograd::edge_list from;
  torch::autograd::variable_list gradients;
  for (auto& [value, edge] : entry.results) {
    at::Tensor gradient = take(value);
    if (!gradient.defined()) continue;
    from.push_back(std::move(edge));
    gradients.push_back(std::move(gradient));
  }
  if (from.empty()) return {};
  CLEAVE_TRY_VOID(gatherAgain(entry.node, collectives));
  makeRoom(entry);
  torch::autograd::Engine::get_default_engine().execute(from, gradients, /*keep_graph=*/false, /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
  gradients.clear();
  for (const auto& [value, end] : entry.operands) give(value, std::exchange(end->gradient, at::Tensor()));
  return {};
}

/// A partial gradient. A parameter's is summed at the end of the step. A gathered input's is reduce-scattered. All
/// others are all-reduced.
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
      // A view would keep the full tensor alive.
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
    case ParallelOp::Dropout:
    case ParallelOp::GroupedProduct: break;
  }
  return {};
}

Result<void> Tape::pass(Entry& entry, Collectives& collectives) {
  const auto own = graph::parallelOp(m_program.opName(m_program.node(entry.node)));
  return own && !isMadeOfOperators(*own) ? passOwn(entry, *own, collectives) : passOperator(entry, collectives);
}

// ---- blocks that run again

at::Tensor Tape::valueAgain(ValueId value) const {
  for (const auto* values : {&m_madeAgain, &m_kept}) {
    if (const auto at = values->find(value.raw()); at != values->end()) return at->second;
  }
  const auto gathered = m_gathered.find(program::withoutGradientSum(m_program, value).raw());
  return gathered == m_gathered.end() ? m_calls.given[value.index()] : gathered->second.whole;
}

Result<void> Tape::runNodeAgain(NodeId id, Collectives& collectives) {
  const graph::Node& node = m_program.node(id);
  for (const ValueId operand : graph::operandsOf(node))
    CLEAVE_TRY_VOID(fill(program::withoutGradientSum(m_program, operand), collectives));
  const BoundCall& call = *m_calls.bound[id.index()];
  const auto take = [&](const Seen& seen) {
    std::vector<c10::IValue> stack = call.arguments.with([&](ValueId value) { return seen(value, valueAgain(value)); });
    for (const ValueId dead : m_deadAfter[id.index()]) m_madeAgain.erase(dead.raw());
    return stack;
  };
  std::vector<at::Tensor> results;
  if (m_backward.checkpoints.keeps(id)) {
    CLEAVE_TRY(results, record(id, call, collectives, take));
  } else {
    std::vector<c10::IValue> stack = take([](ValueId, const at::Tensor& tensor) { return tensor; });
    CLEAVE_TRY(results, runCall(call, stack, collectives, m_draws));
  }
  for (std::size_t i = 0; i < results.size() && i < node.results.size(); ++i) {
    if (m_backward.checkpoints.isNeeded(node.results[i])) m_madeAgain[node.results[i].raw()] = std::move(results[i]);
  }
  return {};
}

Result<void> Tape::runAgain(std::uint32_t block, Collectives& collectives) {
  for (const NodeId id : m_backward.checkpoints.blocks[block].again) {
    const StepRecorder::Scope recorded(m_recorder, SpanKind::Again, id);
    auto ran = bridge::translated([&] { return runNodeAgain(id, collectives); }, ErrorCode::BadInput);
    if (!ran)
      return fail(ran.error().code, "Recomputation of {} failed: {}", nameOfNode(m_program, id), ran.error().message);
  }
  m_madeAgain.clear();
  return {};
}

Result<void> Tape::passNode(NodeId id, Collectives& collectives) {
  if (const std::uint32_t block = m_beginsWith[id.index()]) CLEAVE_TRY_VOID(runAgain(block - 1, collectives));
  if (const std::unique_ptr<Entry> entry = std::exchange(m_entries[id.index()], nullptr)) {
    const StepRecorder::Scope recorded(m_recorder, SpanKind::Backward, id);
    CLEAVE_TRY_VOID(pass(*entry, collectives));
  }
  // The backward pass is complete for all readers of a gathered value.
  for (const ValueId result : m_program.node(id).results) m_gathered.erase(result.raw());
  for (const ValueId value : m_keptUntil[id.index()]) m_kept.erase(value.raw());
  return {};
}

Result<void> Tape::backward(double scale, Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const graph::TensorType& type = m_program.value(m_backward.gradients.loss).type;
  give(m_backward.gradients.loss,
       at::full(type.shape, scale, at::TensorOptions(bridge::toScalarType(type.dtype)).device(m_device)));
  Throttle reports(kBetweenReports, std::chrono::steady_clock::now());
  const auto count = static_cast<std::int64_t>(m_entries.size());
  for (std::int64_t left = count; left-- > 0;) {
    if (progress.cancelled()) return progress.cancelledError("running the backward pass");
    const NodeId id(static_cast<std::uint32_t>(left));
    memory.setCurrentNode(static_cast<std::int32_t>(left));
    auto passed = bridge::translated([&] { return passNode(id, collectives); }, ErrorCode::BadInput);
    if (!passed) {
      return fail(passed.error().code, "The backward pass of {} failed: {}", nameOfNode(m_program, id),
                  passed.error().message);
    }
    if (reports.isDue(std::chrono::steady_clock::now())) progress.report("backward", count - left, count);
  }
  memory.setCurrentNode(-1);
  clear();
  return {};
}

}  // namespace cleave::torch_rank
