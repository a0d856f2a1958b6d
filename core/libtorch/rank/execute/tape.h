#pragma once
/// The backward pass of a rank program, node by node in reverse order. This header uses LibTorch.
///
/// During the forward pass, a tape saves what the derivative of each node needs. For an ATen operator this is
/// autograd's record of the call; a collective needs nothing (program/backward.h defines its derivative). All ranks use
/// the same order of nodes, so their collectives match. A node's saved data is freed after its backward pass.
///
///     Tape tape(graph, backward);
///     CLEAVE_TRY(auto outputs, program.run(collectives, memory, progress, &tape));
///     CLEAVE_TRY_VOID(tape.backward(1.0, collectives, memory, progress));
///     tape.gradients().complete(weight);
#include "base/progress.h"
#include "graph/graph.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/collectives/step_recorder.h"
#include "libtorch/rank/execute/operator_call.h"
#include "libtorch/rank/memory/live_memory.h"
#include "program/backward.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace cleave::torch_rank {

/// Gradients of parameters, accumulated over the passes of a step. Their memory is kept between steps, as the cost
/// model assumes. It is freed only while a replacement is computed.
class ParameterGradients {
 public:
  /// Allocates memory for a gradient without a value.
  void reserve(graph::ValueId parameter, const at::Tensor& like, bool isPart);
  /// Frees the memory of a gradient without a value. Call this before the gradient is computed.
  void makeRoom(graph::ValueId parameter, bool isPart);
  /// Adds a gradient. Uses the tensor's own memory if it has no other owner.
  void add(graph::ValueId parameter, at::Tensor gradient, bool isPart);
  /// The gradient of this rank's part of the parameter; undefined without a gradient since `clear`. With `isPart`: the
  /// partial gradient, which must be summed over the ranks with the same part.
  at::Tensor of(graph::ValueId parameter, bool isPart) const;
  /// Call this after partial gradients have been summed over the ranks. Adds them to the complete ones.
  void completeParts();
  void clear();

 private:
  struct Sum {
    at::Tensor memory;
    bool isAny = false;   ///< a gradient was added since `clear`
    bool isPart = false;  ///< it must still be summed over ranks
  };
  struct Sums {
    Sum complete, part;
  };
  std::unordered_map<std::uint32_t, Sums> m_sums;  ///< by raw ValueId
};

class Tape {
 public:
  /// Data for the recomputation of a block: the program's calls by NodeId, and its parameters, inputs and constants by
  /// ValueId.
  struct Calls {
    const std::vector<std::optional<BoundCall>>& bound;
    const std::vector<at::Tensor>& given;
  };
  /// The arguments must outlive the tape.
  Tape(const graph::Graph& program, const program::Backward& backward, at::Device device, Calls calls);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  bool records(graph::NodeId node) const {
    return m_backward.gradients.of(node) && !m_backward.checkpoints.keeps(node);
  }
  /// Maps an operand to the tensor that the operator receives.
  using Seen = std::function<at::Tensor(graph::ValueId, const at::Tensor&)>;
  /// Collects the arguments of a call, with operands mapped by `Seen`. Releases operands that the call uses last.
  using CollectArguments = std::function<std::vector<c10::IValue>(const Seen&)>;
  /// Runs the call and saves what its backward pass needs. The results are detached from autograd.
  Result<std::vector<at::Tensor>> record(graph::NodeId node, const BoundCall& call, Collectives& collectives,
                                         const CollectArguments& take);
  /// The source of randomness of the recorded pass.
  void setDraws(const PassDraws& draws) { m_draws = draws; }
  /// Call this for every result of a call.
  void see(graph::ValueId value, const at::Tensor& tensor) {
    if (m_isKept[value.index()]) m_kept[value.raw()] = tensor;
  }
  /// Call this when no later node of the forward pass reads the value.
  void release(graph::ValueId value);

  /// Runs the backward pass from the loss, whose gradient is `scale`. An error names the node.
  Result<void> backward(double scale, Collectives& collectives, LiveMemory& memory, const Progress& progress);
  /// Records every node of the backward pass. May be null. It must outlive the tape.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  ParameterGradients& gradients() { return m_parameters; }
  /// Discards the data of a forward pass, but not the gradients of parameters.
  void clear();

 private:
  struct Entry;
  Result<std::vector<at::Tensor>> recordOperator(Entry& entry, const BoundCall& call, Collectives& collectives,
                                                 const CollectArguments& take);
  Result<at::Tensor> recordOwn(Entry& entry, ParallelOp op, Collectives& collectives, const CollectArguments& take);
  Result<void> pass(Entry& entry, Collectives& collectives);
  Result<void> passOperator(Entry& entry, Collectives& collectives);
  Result<void> passOwn(Entry& entry, ParallelOp op, Collectives& collectives);
  Result<void> passSum(const graph::Node& node, at::Tensor gradient, Collectives& collectives);
  void makeRoom(const Entry& entry);
  Result<void> gatherAgain(graph::NodeId node, Collectives& collectives);
  Result<void> fill(graph::ValueId gathered, Collectives& collectives);
  Result<void> runAgain(std::uint32_t block, Collectives& collectives);
  Result<void> runNodeAgain(graph::NodeId node, Collectives& collectives);
  at::Tensor valueAgain(graph::ValueId value) const;
  Result<void> passNode(graph::NodeId node, Collectives& collectives);
  void give(graph::ValueId value, at::Tensor gradient);
  at::Tensor take(graph::ValueId value);

  /// A layer's gathered input. Its memory is freed after the last layer that reads it, and gathered again later.
  struct Gathered {
    at::Tensor whole, part;
    std::int64_t dim = 0;
    int readers = 0;      ///< values that use this memory and are still needed by the forward pass
    bool isGone = false;  ///< the memory is freed
  };

  const graph::Graph& m_program;
  const program::Backward& m_backward;
  const at::Device m_device;
  const Calls m_calls;
  PassDraws m_draws;
  StepRecorder* m_recorder = nullptr;
  std::vector<std::unique_ptr<Entry>> m_entries;           ///< by NodeId
  std::vector<at::Tensor> m_gradients;                     ///< by ValueId: gradients that the backward pass still needs
  std::unordered_map<std::uint32_t, Gathered> m_gathered;  ///< by raw ValueId
  // Activation checkpointing: blocks that are recomputed.
  std::vector<bool> m_isKept;                            ///< by ValueId: input of such a block
  std::vector<std::vector<graph::ValueId>> m_deadAfter;  ///< by NodeId: values without later use in the recomputation
  std::vector<std::vector<graph::ValueId>> m_keptUntil;  ///< by NodeId: values to free after its backward pass
  std::vector<std::uint32_t> m_beginsWith;               ///< by NodeId: 1 + block to recompute before it; 0: no block
  std::unordered_map<std::uint32_t, at::Tensor> m_kept, m_madeAgain;  ///< by raw ValueId
  ParameterGradients m_parameters;
};

}  // namespace cleave::torch_rank
