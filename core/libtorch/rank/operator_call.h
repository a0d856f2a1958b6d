#pragma once
/// The nodes of a program, bound to LibTorch's dispatcher before anything is allocated: each operator is looked up
/// once, each argument turned into an IValue of its schema's type, tensors left as slots. LibTorch inside.
#include "graph/graph.h"
#include "libtorch/bridge/arguments.h"
#include "libtorch/rank/parallel_ops.h"

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

/// Binds all calls of a graph; other nodes get nullopt. BadInput names the first node whose operator LibTorch does not
/// know, that has side effects, or whose arguments do not fit its schema.
Result<std::vector<std::optional<BoundCall>>> bindCalls(const graph::Graph& graph, at::Device device);

/// "node 17 (aten::mm of mm_3, in model.layers.0.mlp)": how errors name a node.
std::string nameOfNode(const graph::Graph& graph, graph::NodeId node);

/// Runs it on its arguments, which it uses up; `draws` as for runParallelOp.
Result<std::vector<at::Tensor>> runCall(const BoundCall& call, std::vector<c10::IValue>& arguments,
                                        Collectives& collectives, const PassDraws& draws);

}  // namespace cleave::torch_rank
