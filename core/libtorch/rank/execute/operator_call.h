#pragma once
/// Binds the nodes of a program to LibTorch's dispatcher, before any allocation. Each operator is looked up once, and
/// each argument becomes an IValue of its schema's type, with slots for tensors. This header uses LibTorch.
#include "graph/graph.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/rank/execute/parallel_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <variant>
#include <vector>

namespace cleave::torch_rank {

/// One node, ready to be called.
struct BoundCall {
  std::variant<c10::OperatorHandle, ParallelOp> target;
  bridge::BoundArguments arguments;
};

/// Binds all calls of a graph; other nodes get nullopt. Returns BadInput for the first node whose operator LibTorch
/// does not have, that has side effects, or whose arguments do not fit its schema. The message names the node.
Result<std::vector<std::optional<BoundCall>>> bindCalls(const graph::Graph& graph, at::Device device);

/// The name of a node in errors: "node 17 (aten::mm of mm_3, in model.layers.0.mlp)".
std::string nameOfNode(const graph::Graph& graph, graph::NodeId node);

/// Runs a call and consumes its arguments. `draws` as in runParallelOp.
Result<std::vector<at::Tensor>> runCall(const BoundCall& call, std::vector<c10::IValue>& arguments,
                                        Collectives& collectives, const PassDraws& draws);

}  // namespace cleave::torch_rank
