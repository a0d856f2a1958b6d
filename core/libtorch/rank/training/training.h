#pragma once
/// Training steps of a rank program on this rank's part of the parameters. This header uses LibTorch.
///
/// A step runs `accumulate` micro-batches forward and backward (tape.h). It sums partial gradients with one all-reduce
/// for each number of sharing ranks and type, and then all gradients over the replicas (replicas.h). If requested, it
/// clips the gradients to a norm. Then `torch::optim` updates the parameters in place, half-precision ones through a
/// float32 copy. All ranks do the same, so shared parameters stay equal. As in torch.optim, a parameter without a
/// gradient does not change.
///
///     CLEAVE_TRY(Trainer trainer, Trainer::make(bound, program, backward, training));
///     for (int step = 0; step < training.steps; ++step) { CLEAVE_TRY(auto done, trainer.step(...)); }
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/training/replicas.h"
#include "libtorch/rank/training/trained_outputs.h"
#include "program/gradient_buckets.h"
#include "program/rank_program.h"
#include "program/training.h"

#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace cleave::torch_rank {

struct StepDone {
  double loss = 0;                     ///< mean over the micro-batches of all replicas, before the update
  std::optional<double> gradientNorm;  ///< norm of all gradients over all ranks before clipping; nullopt if not clipped
};

/// A larger change of an element whose gradient is only rounding makes the element undetermined.
inline constexpr double kMaxUndeterminedChange = 1e-5;

class Trainer {
 public:
  /// The arguments must outlive the trainer, and the program must have its parameters. `recorder` records all parts of
  /// a step; it may be null.
  Trainer(Program& bound, const program::Backward& backward, const program::Training& training, const Batches& batches,
          StepRecorder* recorder = nullptr, Replicas replicas = {});
  /// Takes the optimizer's states from the trainer of another program with the same parameters (hand_over.h). Do not
  /// use that trainer afterwards. Returns BadInput if only one of them trains a parameter.
  Result<void> continueFrom(Trainer& before);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Runs the next step. `collectives` connects the ranks of one replica. An error in a node names the node.
  Result<StepDone> step(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});

  /// Call this after a step to find elements that a comparison must ignore. AdamW divides a gradient by its size. So an
  /// element whose gradient is only rounding (such as a key's bias, which softmax cancels) changes as much as any
  /// other, in an arbitrary direction. An element is undetermined if a gradient error of 2^-20 of the largest in its
  /// module changes it by more than kMaxUndeterminedChange. If the module's gradients are negligible, the largest of
  /// the model is used. The comparison ignores elements that both sides find undetermined or without a gradient. The
  /// unsplit run uses a `slack` times higher limit.
  void noteUndetermined(double slack = 1);
  /// Masks of the undetermined elements in this rank's parts, for parameters with any on some rank. All ranks call it.
  Result<ByParameter> undetermined(Collectives& collectives) const;

 private:
  at::Tensor undeterminedMask(std::size_t index) const;
  /// AdamW's average size of the gradient, by element. Undefined without a gradient.
  at::Tensor sizeOfGradient(std::size_t index) const;
  Result<double> passes(Collectives& collectives, LiveMemory& memory, const Progress& progress);
  Result<void> sumGradients(Collectives& collectives);
  Result<void> sumOf(std::span<const program::GradientSum> sums, Collectives& collectives);
  /// Sums the loss and all gradients over the replicas.
  Result<void> sumOverReplicas(double& loss);
  Result<void> sumBucket(const program::GradientBucket& bucket);
  /// The sum of squares of this rank's gradients. Gradients on several ranks are weighted so that they count once.
  at::Tensor squares(const Collectives& collectives);
  Result<double> clip(Collectives& collectives);
  void change();
  void change(std::size_t first, std::size_t end);
  void reserveGradients();
  void makeOptimizer();

  Program& m_bound;
  const program::Backward& m_backward;
  const program::Training& m_training;
  const Batches& m_batches;
  StepRecorder* m_recorder;
  const Replicas m_replicas;
  Tape m_tape;
  std::vector<graph::ValueId> m_trained;  ///< parameters that get a gradient
  std::vector<at::Tensor> m_changed;      ///< tensors of the optimizer: these parameters, or float32 copies of them
  std::unique_ptr<torch::optim::Optimizer> m_optimizer;
  std::vector<at::Tensor> m_undetermined;  ///< by index in m_trained: places in the flat part, or a mask; see
                                           ///< noteUndetermined
  std::int64_t m_microBatch = 0;
};

}  // namespace cleave::torch_rank
