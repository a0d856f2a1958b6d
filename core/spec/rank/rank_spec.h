#pragma once
/// The options that a launcher passes to each rank of a run: files, mode and limits; the same for all ranks. Plain
/// data, comparable. The table of its flags is rank_settings.h. A rank's number and its peers come from the
/// environment.
#include "program/generation.h"
#include "program/training.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cleave::spec {

/// The limit of one collective. It covers a step of the largest model and is c10d's default.
inline constexpr std::chrono::seconds kCallTimeout{600};

/// The part of a program's batch and sequence that is not padding. 0 and 0 mean all of it.
struct Rows {
  std::int64_t batch = 0, sequence = 0;
  bool areAll() const { return batch == 0; }
  bool operator==(const Rows&) const = default;
};

/// A plan of several that run one after the other.
struct RankPlan {
  std::filesystem::path file;
  Rows rows = {};
  bool operator==(const RankPlan&) const = default;
};

struct RankSpec {
  /// Plans that run after the first, one after the other, on the loaded weights. A plan may occur several times. The
  /// n-th plan writes its outputs to `outputFile` with the suffix "-n", for n > 1.
  std::vector<RankPlan> then;
  std::string backend = "gloo";                     ///< "gloo" or "nccl"
  int replicas = 1;                                 ///< number of data-parallel replicas (program/mesh.h)
  std::optional<std::filesystem::path> inputFile;   ///< safetensors with input_ids, labels, attention_mask, ...
  std::optional<std::filesystem::path> outputFile;  ///< safetensors for the gathered outputs of rank 0
  /// Rank r writes its outputs to this file with the suffix ".r" if they differ from those of rank 0 in any bit.
  std::optional<std::filesystem::path> deviationFile;
  /// Values of the forward pass to record, and the file for the records, with the suffix ".r" (program/watch.h).
  std::optional<std::filesystem::path> watchFile, watchedFile;
  std::chrono::seconds collectiveTimeout = kCallTimeout;  ///< limit of one collective
  std::chrono::seconds connectTimeout{60};                ///< limit until the first collective has completed
  bool skipWeights = false;                               ///< fill every parameter from the seed instead of reading it
  bool initMissing = false;                               ///< fill parameters that the checkpoint lacks from the seed
  int passes = 1;                    ///< forward passes; outputs are those of the last, and the time is the median
  bool isQuiet = false;              ///< do not sample memory or report collectives and progress during the run
  bool recordsTimes = false;         ///< warm up, then record a timeline of the last step
  program::Training training;        ///< if it has steps, the outputs are the losses and the trained parameters
  program::Generation generation;    ///< if it has tokens, the plan is the prefill plan, and the output is the tokens
  std::filesystem::path decodeFile;  ///< the plan of a decode step, on the same weights
  bool operator==(const RankSpec&) const = default;
};

}  // namespace cleave::spec
