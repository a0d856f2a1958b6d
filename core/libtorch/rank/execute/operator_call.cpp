#include "libtorch/rank/execute/operator_call.h"

#include "graph/states.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/operators.h"

namespace cleave::torch_rank {
namespace {

Result<BoundCall> bindParallel(ParallelOp op, const graph::Node& node) {
  CLEAVE_TRY_VOID(checkCall(op, node));
  BoundCall call{op, bridge::BoundArguments(node.args.size())};
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    c10::IValue& bound = call.arguments.values[i];
    if (const auto* value = std::get_if<graph::ValueId>(&node.args[i])) call.arguments.tensors.emplace_back(i, *value);
    if (const auto* integer = std::get_if<std::int64_t>(&node.args[i])) bound = *integer;
    if (const auto* real = std::get_if<double>(&node.args[i])) bound = *real;
    if (const auto* text = std::get_if<std::string>(&node.args[i])) bound = *text;
    if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&node.args[i])) bound = *sizes;
  }
  return call;
}

using Target = std::variant<c10::OperatorHandle, ParallelOp>;

Result<Target> findTarget(const std::string& name) {
  if (const auto parallel = graph::parallelOp(name)) return Target(*parallel);
  if (!name.starts_with("aten::")) {
    return fail(ErrorCode::BadInput, "neither ATen nor this version of Cleave has this operator.");
  }
  CLEAVE_TRY(const c10::OperatorHandle handle, bridge::findForProgram(name));
  return Target(handle);
}

}  // namespace

std::string nameOfNode(const graph::Graph& graph, graph::NodeId id) {
  const graph::Node& node = graph.node(id);
  const std::string& result = node.results.empty() ? graph.name : graph.value(node.results[0]).name;
  const std::string& scope = graph.scope(node.scope).path;
  return fmt::format("node {} ({} of {}{}{})", id.index(), graph.opName(node), result, scope.empty() ? "" : ", in ",
                     scope);
}

Result<std::vector<std::optional<BoundCall>>> bindCalls(const graph::Graph& graph, at::Device device) {
  std::vector<std::optional<BoundCall>> calls(graph.nodes.size());
  std::vector<std::optional<Result<Target>>> targets(graph.ops.size());
  for (auto id : idRange<graph::NodeId>(graph.nodes.size())) {
    const graph::Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call) continue;
    auto& target = targets[node.op.index()];
    if (!target) target = findTarget(graph.opName(node));
    auto bound = bridge::translated(
        [&]() -> Result<BoundCall> {
          if (!*target) return tl::unexpected(target->error());
          if (const auto* parallel = std::get_if<ParallelOp>(&**target)) return bindParallel(*parallel, node);
          // A cache is an input and an output of the step. Its memory is written in place, without a copy.
          const c10::OperatorHandle handle = graph::writesInPlace(graph, id)
                                                 ? bridge::findOperator("aten::index_put_").value()
                                                 : std::get<c10::OperatorHandle>(**target);
          CLEAVE_TRY(bridge::BoundArguments arguments, bridge::bindArguments(node.args, handle.schema(), device));
          return BoundCall{handle, std::move(arguments)};
        },
        ErrorCode::BadInput);
    if (!bound)
      return fail(bound.error().code, "The program cannot be run: {}: {}", nameOfNode(graph, id),
                  bound.error().message);
    calls[id.index()] = std::move(*bound);
  }
  return calls;
}

Result<std::vector<at::Tensor>> runCall(const BoundCall& call, std::vector<c10::IValue>& arguments,
                                        Collectives& collectives, const PassDraws& draws) {
  if (const auto* parallel = std::get_if<ParallelOp>(&call.target)) {
    CLEAVE_TRY(at::Tensor result, runParallelOp(*parallel, arguments, collectives, draws));
    return std::vector<at::Tensor>{std::move(result)};
  }
  return bridge::call(std::get<c10::OperatorHandle>(call.target), arguments);
}

}  // namespace cleave::torch_rank
