#pragma once
/// Data that a rank shares with its counterparts in the other replicas of its plan (program/mesh.h): the rows of a
/// micro-batch, the mean loss, the outputs. This header uses LibTorch.
///
/// The loss of a micro-batch is the mean over all its counted labels, in all replicas. So each replica scales its loss
/// and gradients by its share of the labels, and then they are summed.
///
///     CLEAVE_TRY(replicas.lossShares, lossShares(program, batches, replicas.own));
///     CLEAVE_TRY(outputs, wholeOutputs(std::move(outputs), replicas));
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/execute/interpreter.h"

namespace cleave::torch_rank {

/// One replica of several.
struct Replicas {
  int own = 0;
  Collectives* counterparts = nullptr;  ///< null if there is only one replica
  std::vector<double> lossShares;       ///< by micro-batch, repeated after the last one; empty: all shares are 1
  double lossShare(std::int64_t microBatch) const;
};

/// The replica's share of the mean loss, by micro-batch. The shares of all replicas sum to 1. Overwrites the program's
/// inputs. Returns BadInput if the loss is not a mean over labels, because then the shares are unknown. Empty for a
/// program without a loss, or one replica.
Result<std::vector<double>> lossShares(Program& program, const Batches& batches, int replica);

/// Combines the replicas' outputs of a forward pass: concatenates the rows and averages the loss. All ranks call it.
Result<NamedTensors> wholeOutputs(NamedTensors outputs, const Replicas& replicas);

}  // namespace cleave::torch_rank
