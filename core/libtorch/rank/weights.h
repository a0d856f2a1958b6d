#pragma once
/// Loads this rank's slices of the checkpoint, and nothing else. LibTorch inside.
///
/// On a CPU a large tensor that lies in one stretch of its file, and is not written to, is that part of the file
/// (FileMapping). The bytes of all others go by positioned reads straight into the final tensors, those of a large one
/// by several threads; where the stored type differs from the program's, or the tensor lives on a GPU, through at most
/// 1 MiB of staging. The payload bytes read are exactly those of the shard map (program::shardBytes), which whoever
/// runs the rank can check.
#include "base/progress.h"
#include "formats/weight_files.h"
#include "libtorch/rank/interpreter.h"
#include "program/rank_program.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace cleave::torch_rank {

struct WeightOptions {
  formats::WeightPlaces places;
  int rank = 0;
  bool skipWeights = false;  ///< fill every parameter from the program's seed
  bool initMissing = false;  ///< fill those without a file
  bool areWritten = false;   ///< the program trains: each tensor has memory of its own
};

struct WeightReport {
  std::int64_t bytesRead = 0;            ///< payload bytes that the system has handed over; headers do not count
  std::int64_t parameterBytes = 0;       ///< bytes of all parameter tensors
  std::vector<std::string> initialised;  ///< names of the parameters filled from the seed
  std::vector<RandomAccessFile> inUse;   ///< whose pages are parameters
};

/// BadInput names a file in use that was written to since it was opened: what was computed is of no model.
Result<void> checkUnwritten(const WeightReport& report);

/// Gives every parameter of the program its tensor. `loadedBytes` follows along for other threads to read.
/// BadInput: parameters without a file (all of them named), a file that is not as the plan says, a plan whose pieces do
/// not fit; Environment: no memory, read errors.
Result<WeightReport> loadWeights(Program& bound, const program::RankProgram& program, const WeightOptions& options,
                                 std::atomic<std::int64_t>& loadedBytes, const Progress& progress = {});

}  // namespace cleave::torch_rank
