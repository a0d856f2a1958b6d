#pragma once
/// The settings of one rank: plan, rank numbers, files and mode. This header does not use LibTorch.
#include "libtorch/rank/collectives/limits.h"
#include "libtorch/rank/execute/rows.h"
#include "program/generation.h"
#include "program/training.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cleave::torch_rank {

struct RankRequest {
  struct Plan {
    std::filesystem::path file;
    Rows rows = {};
    bool operator==(const Plan&) const = default;
  };
  std::filesystem::path planFile;
  /// Plans that run after `planFile`, one after the other, on the loaded weights. A plan may occur several times. The
  /// n-th plan writes its outputs to `outputFile` with the suffix "-n", for n > 1.
  std::vector<Plan> then;
  std::string backend = "gloo";  ///< "gloo" or "nccl"
  int rank = 0, localRank = 0, worldSize = 1;
  int replicas = 1;  ///< number of data-parallel replicas (program/mesh.h)
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;       ///< rank 0: an inherited socket that listens on masterPort; -1: no socket
  std::string agentStore;  ///< as in protocol::RankEnvironment
  std::chrono::seconds collectiveTimeout = kCallTimeout;  ///< limit of one collective
  std::chrono::seconds connectTimeout{60};                ///< limit until the first collective has completed
  std::optional<std::filesystem::path> inputFile;         ///< safetensors with input_ids, labels, attention_mask, ...
  std::optional<std::filesystem::path> outputFile;        ///< safetensors for the gathered outputs of rank 0
  /// Rank r writes its outputs to this file with the suffix ".r" if they differ from those of rank 0 in any bit.
  std::optional<std::filesystem::path> deviationFile;
  /// Values of the forward pass to record, and the file for the records (program/watch.h).
  std::optional<std::filesystem::path> watchFile, watchedFile;
  bool skipWeights = false;          ///< fill every parameter from the seed instead of reading it
  int passes = 1;                    ///< forward passes; outputs are those of the last, and the time is the median
  bool isQuiet = false;              ///< do not sample memory or report collectives and progress during the run
  bool recordsTimes = false;         ///< warm up, then record a timeline of the last step
  bool initMissing = false;          ///< fill parameters that the checkpoint lacks from the seed
  program::Training training;        ///< if it has steps, the outputs are the losses and the trained parameters
  program::Generation generation;    ///< if it has tokens, `planFile` is the prefill plan, and the output is the tokens
  std::filesystem::path decodeFile;  ///< the plan of a decode step, on the same weights
  std::string ncclLibrary;           ///< path of libcleave_nccl.so, for the backend "nccl"
};

}  // namespace cleave::torch_rank
