#pragma once
/// Training steps of a rank program on this rank's part of the parameters. LibTorch inside.
///
/// A step runs `accumulate` micro-batches forward and backward (tape.h), adds up the gradients that are still parts,
/// those of all parameters in one all-reduce for each number of ranks that share them, then all of them over the
/// replicas where there are several (replicas.h), scales them down to a norm where asked, and lets `torch::optim`
/// change the parameters in place. Half-precision parameters are changed through a float32 copy. All ranks do the same,
/// so that whatever they share stays the same. A parameter that no gradient comes to stays as it is, as torch.optim
/// leaves one whose `grad` is None.
///
///     CLEAVE_TRY(Trainer trainer, Trainer::make(bound, program, backward, training));
///     for (int step = 0; step < training.steps; ++step) { CLEAVE_TRY(auto done, trainer.step(...)); }
#include "libtorch/rank/inputs.h"
#include "libtorch/rank/interpreter.h"
#include "libtorch/rank/replicas.h"
#include "program/gradient_buckets.h"
#include "program/rank_program.h"
#include "program/training.h"

#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace cleave::torch_rank {

struct StepDone {
  double loss = 0;                     ///< mean over the micro-batches of all replicas, before the parameters change
  std::optional<double> gradientNorm;  ///< of all gradients over all ranks, before they are scaled down; where clipped
};

inline constexpr double kMostByChance = 1e-5;

class Trainer {
 public:
  /// All that is handed over must outlive it; the parameters have their tensors. `recorder` is told of all parts of a
  /// step; null: nobody is.
  Trainer(Program& bound, const program::Backward& backward, const program::Training& training, const Batches& batches,
          StepRecorder* recorder = nullptr, Replicas replicas = {});
  /// Goes on with what the optimizer knows of the same parameters (hand_over.h) in another program, whose trainer is of
  /// no use behind it. BadInput names a parameter that only one of them trains.
  Result<void> continueFrom(Trainer& before);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// The next step; `collectives` are those of one replica's ranks. An error names the node, or says what the ranks'
  /// gradients lack.
  Result<StepDone> step(Collectives& collectives, LiveMemory& memory, const Progress& progress = {});

  /// AdamW divides a gradient by its own size, and so moves a parameter whose gradient is nothing but rounding (a key's
  /// bias: softmax does not see it) as far as any other, in a direction of chance: that says nothing about a split.
  /// After a step, where somebody wants to know, this notes the elements that 2^-20 of their module's largest gradient
  /// (of the model's, where that is nothing beside it) has moved by more than kMostByChance. An element counts where
  /// both sides of a comparison find it so, or have no gradient there: the other side finds `slack` times as much.
  void noteChance(double slack = 1);
  /// These elements of this rank's parts, for the parameters that have any on some rank. All ranks call it.
  Result<ByParameter> undetermined(Collectives& collectives) const;

 private:
  at::Tensor chanceOf(std::size_t index) const;  ///< a mask of a parameter's part
  /// As AdamW averages it; undefined: it has none.
  at::Tensor sizeOfGradient(std::size_t index) const;
  Result<double> passes(Collectives& collectives, LiveMemory& memory, const Progress& progress);
  Result<void> sumGradients(Collectives& collectives);
  Result<void> sumOf(std::span<const program::GradientSum> sums, Collectives& collectives);
  /// Adds up the loss and all gradients of the replicas.
  Result<void> sumOverReplicas(double& loss);
  Result<void> sumBucket(const program::GradientBucket& bucket);
  /// Squares of this rank's share of all gradients: what several ranks hold counts once.
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
  std::vector<at::Tensor> m_changed;      ///< what the optimizer changes: these parameters, or float32 copies of them
  std::unique_ptr<torch::optim::Optimizer> m_optimizer;
  std::vector<at::Tensor> m_byChance;  ///< by index in m_trained: places in the flat part, or a mask; see noteChance
  std::int64_t m_microBatch = 0;
};

}  // namespace cleave::torch_rank
