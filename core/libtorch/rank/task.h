#pragma once
/// One program of a rank's run with all that it computes on but the weights: read, checked and bound before anybody
/// connects. A rank may have several, which run one after the other on the same weights (hand_over.h). LibTorch inside.
#include "libtorch/rank/generator.h"
#include "libtorch/rank/inputs.h"
#include "libtorch/rank/interpreter.h"
#include "libtorch/rank/rank.h"
#include "program/backward.h"
#include "program/mesh.h"
#include "program/rank_program.h"

#include <memory>

namespace cleave::torch_rank {

struct Task {
  program::RankProgram program;
  std::uint64_t digest = 0;  ///< program::digestOf
  std::unique_ptr<Program> bound;
  program::Backward backward;  ///< of a program that is trained
  Batches batches;
  std::uint64_t digestOfInputs = 0;
  std::vector<double> lossShares;  ///< of the rank's replica; see replicas.h
  Rows rows;                       ///< that count in what it computes
  bool hasWeights = false;
  program::RankProgram decode;           ///< of a run that generates: a step behind the prompt
  std::unique_ptr<Generator> generator;  ///< runs both; null: nothing is generated

  /// Of all that it runs.
  std::string digestText() const;
  program::Mesh mesh(const RankRequest& request) const { return {.dp = request.replicas, .tp = program.ranks}; }
};

/// From a plan file; the program has its inputs then. BadUsage where so many ranks do not run it, BadInput for what is
/// wrong with program or inputs.
Result<std::unique_ptr<Task>> readTask(const RankRequest& request, const RankRequest::Plan& plan, at::Device device);

}  // namespace cleave::torch_rank
