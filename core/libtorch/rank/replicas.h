#pragma once
/// What a rank shares with its counterparts in the other replicas of its plan (program/mesh.h): the rows of a
/// micro-batch, the mean of its loss, its outputs. LibTorch inside.
///
/// The loss of a micro-batch is the mean over all labels that count in it, wherever their rows are computed, so that
/// a replica with more of them weighs more: its loss and gradients are scaled by its share, and then added up.
///
///     CLEAVE_TRY(replicas.lossShares, lossShares(program, batches, replicas.own));
///     CLEAVE_TRY(outputs, wholeOutputs(std::move(outputs), replicas));
#include "libtorch/rank/inputs.h"
#include "libtorch/rank/interpreter.h"

namespace cleave::torch_rank {

/// One replica among all.
struct Replicas {
  int own = 0;
  Collectives* counterparts = nullptr;  ///< null: there is one replica
  std::vector<double> lossShares;       ///< by micro-batch, gone through again and again; empty: it has all of each
  double lossShare(std::int64_t microBatch) const;
};

/// By micro-batch: how much of its mean loss is that of the replica's rows. The same on all ranks of a replica; all of
/// them together have 1. Gives the program inputs. BadInput where the loss is no mean over labels, so that nobody can
/// tell. Empty for a program without a loss, or one replica.
Result<std::vector<double>> lossShares(Program& program, const Batches& batches, int replica);

/// Of a forward pass, from each replica's: their rows one behind the other, and the loss of all. All ranks call it.
Result<NamedTensors> wholeOutputs(NamedTensors outputs, const Replicas& replicas);

}  // namespace cleave::torch_rank
