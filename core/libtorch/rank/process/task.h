#pragma once
/// One program of a rank's run and its inputs, without weights. It is read, checked and bound before the ranks connect.
/// A rank may have several tasks, which run one after the other on the same weights (hand_over.h). This header uses
/// LibTorch.
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/process/generator.h"
#include "libtorch/rank/process/rank_request.h"
#include "program/backward.h"
#include "program/mesh.h"
#include "program/rank_program.h"

#include <memory>

namespace cleave::torch_rank {

struct Task {
  program::RankProgram program;
  std::uint64_t digest = 0;  ///< program::digestOf
  std::unique_ptr<Program> bound;
  program::Backward backward;  ///< for training
  Batches batches;
  std::uint64_t digestOfInputs = 0;
  std::vector<double> lossShares;  ///< shares of the rank's replica (replicas.h)
  Rows rows;                       ///< the part of the outputs that is not padding
  bool hasWeights = false;
  program::RankProgram decode;           ///< for generation: the decode step
  std::unique_ptr<Generator> generator;  ///< runs both programs; null without generation

  /// Digest of all programs of the task.
  std::string digestText() const;
  program::Mesh mesh(const RankRequest& request) const { return {.dp = request.replicas, .tp = program.ranks}; }
};

/// Reads a plan file and gives the program its inputs. Returns BadUsage if the number of ranks differs from the plan's,
/// and BadInput for an invalid program or invalid inputs.
Result<std::unique_ptr<Task>> readTask(const RankRequest& request, const RankRequest::Plan& plan, at::Device device);

}  // namespace cleave::torch_rank
