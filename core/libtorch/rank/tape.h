#pragma once
/// The backward pass of a rank program: node by node, against the order in which they ran. LibTorch inside.
///
/// While a program runs forward, a tape keeps of each node whose results have a gradient what its derivative needs:
/// of ATen's operators autograd's own record of that one call, of the collectives nothing but their place
/// (program/backward.h says what each does backwards). Nodes are gone through in the same order on all ranks, so that
/// their collectives meet; what a node kept is freed as soon as it has been passed.
///
///     Tape tape(graph, backward);
///     CLEAVE_TRY(auto outputs, program.run(collectives, memory, progress, &tape));
///     CLEAVE_TRY_VOID(tape.backward(1.0, collectives, memory, progress));
///     tape.gradients().complete(weight);
#include "base/progress.h"
#include "graph/graph.h"
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/live_memory.h"
#include "libtorch/rank/operator_call.h"
#include "libtorch/rank/step_recorder.h"
#include "program/backward.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace cleave::torch_rank {

/// Gradients of parameters: added up over as many passes as there are. Their memory is held from step to step, as the
/// cost model has it, but for the moment in which another tensor is made to take its place.
class ParameterGradients {
 public:
  /// Memory for it from here on; there is none since `clear`.
  void reserve(graph::ValueId parameter, const at::Tensor& like, bool isPart);
  /// A gradient is about to be made: where there is none yet, it may have the memory.
  void makeRoom(graph::ValueId parameter, bool isPart);
  /// Takes the tensor over where nobody else sees its memory.
  void add(graph::ValueId parameter, at::Tensor gradient, bool isPart);
  /// Of this rank's part of the parameter; undefined: none since `clear`. With `isPart`: what still has to be added up
  /// over the ranks that hold the same.
  at::Tensor of(graph::ValueId parameter, bool isPart) const;
  /// Parts are added up: they are the gradient now, or are added to it.
  void completeParts();
  void clear();

 private:
  struct Sum {
    at::Tensor memory;
    bool isAny = false;  ///< since `clear`
    bool isPart = false;
  };
  struct Sums {
    Sum complete, part;
  };
  std::unordered_map<std::uint32_t, Sums> m_sums;  ///< by raw ValueId
};

class Tape {
 public:
  /// What a block needs to run again: the program's calls by NodeId, and its parameters, inputs and constants by
  /// ValueId.
  struct Calls {
    const std::vector<std::optional<BoundCall>>& bound;
    const std::vector<at::Tensor>& given;
  };
  /// All must outlive it.
  Tape(const graph::Graph& program, const program::Backward& backward, at::Device device, Calls calls);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  bool records(graph::NodeId node) const {
    return m_backward.gradients.of(node) && !m_backward.checkpoints.keeps(node);
  }
  /// What an operator gets for an operand.
  using Seen = std::function<at::Tensor(graph::ValueId, const at::Tensor&)>;
  /// The arguments of a call, each operand as `Seen` says; what dies with the call is nobody else's any more.
  using TakeArguments = std::function<std::vector<c10::IValue>(const Seen&)>;
  /// Runs the call and keeps what its backward pass needs; the results are outside autograd.
  Result<std::vector<at::Tensor>> record(graph::NodeId node, const BoundCall& call, Collectives& collectives,
                                         const TakeArguments& take);
  /// Of the pass that is recorded.
  void setDraws(const PassDraws& draws) { m_draws = draws; }
  /// A call has made the value.
  void see(graph::ValueId value, const at::Tensor& tensor) {
    if (m_isKept[value.index()]) m_kept[value.raw()] = tensor;
  }
  /// No later node of the forward pass reads the value.
  void release(graph::ValueId value);

  /// From the loss, whose gradient is `scale`. An error names the node.
  Result<void> backward(double scale, Collectives& collectives, LiveMemory& memory, const Progress& progress);
  /// Is told of every node of the backward pass; null: nobody is. It must outlive this.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  ParameterGradients& gradients() { return m_parameters; }
  /// Forgets what a forward pass kept; gradients of parameters stay.
  void clear();

 private:
  struct Entry;
  Result<std::vector<at::Tensor>> recordOperator(Entry& entry, const BoundCall& call, Collectives& collectives,
                                                 const TakeArguments& take);
  Result<at::Tensor> recordOwn(Entry& entry, ParallelOp op, Collectives& collectives, const TakeArguments& take);
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

  /// A layer's input that was gathered: its memory is let go behind the last layer that reads it, and filled again.
  struct Gathered {
    at::Tensor whole, part;
    std::int64_t dim = 0;
    int readers = 0;  ///< values that look at it and are still read by the forward pass
    bool isGone = false;
  };

  const graph::Graph& m_program;
  const program::Backward& m_backward;
  const at::Device m_device;
  const Calls m_calls;
  PassDraws m_draws;
  StepRecorder* m_recorder = nullptr;
  std::vector<std::unique_ptr<Entry>> m_entries;  ///< by NodeId
  std::vector<at::Tensor> m_gradients;            ///< by ValueId: of values, while the backward pass needs them
  std::unordered_map<std::uint32_t, Gathered> m_gathered;  ///< by raw ValueId
  // Of blocks that run again.
  std::vector<bool> m_isKept;                            ///< by ValueId: comes into such a block
  std::vector<std::vector<graph::ValueId>> m_deadAfter;  ///< by NodeId: what no later node of its block reads again
  std::vector<std::vector<graph::ValueId>> m_keptUntil;  ///< by NodeId: behind whose backward pass no block needs them
  std::vector<std::uint32_t> m_beginsWith;               ///< by NodeId: 1 + the block that runs again before; 0: none
  std::unordered_map<std::uint32_t, at::Tensor> m_kept, m_madeAgain;  ///< by raw ValueId
  ParameterGradients m_parameters;
};

}  // namespace cleave::torch_rank
