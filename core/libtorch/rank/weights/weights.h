#pragma once
/// Loads this rank's slices of the checkpoint, and nothing else. This header uses LibTorch.
///
/// On a CPU, a large read-only tensor that is contiguous in its file is mapped (FileMapping). All other tensors are
/// read with positioned reads directly into the final tensors, large ones by several threads. If the stored type
/// differs from the program's, or the tensor is on a GPU, a staging buffer of at most 1 MiB is used. The payload bytes
/// read are exactly those of the shard map (program::shardBytes), so the launcher can check them.
#include "base/progress.h"
#include "formats/weight_files.h"
#include "libtorch/rank/execute/interpreter.h"
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
  bool initMissing = false;  ///< fill the parameters without a file
  bool areWritten = false;   ///< the program trains, so no tensor is mapped from a file
};

struct WeightReport {
  std::int64_t bytesRead = 0;            ///< payload bytes read, without headers
  std::int64_t parameterBytes = 0;       ///< bytes of all parameter tensors
  std::vector<std::string> initialised;  ///< names of the parameters filled from the seed
  std::vector<RandomAccessFile> inUse;   ///< files that are mapped as parameters
};

/// Returns BadInput if a mapped file was written to since it was opened, because then the outputs are wrong.
Result<void> checkUnwritten(const WeightReport& report);

/// Gives every parameter of the program its tensor. Updates `loadedBytes`, which other threads may read. Returns
/// BadInput if parameters have no file, a file differs from the plan, or a plan's pieces do not fit. Returns
/// Environment for lack of memory and read errors.
Result<WeightReport> loadWeights(Program& bound, const program::RankProgram& program, const WeightOptions& options,
                                 std::atomic<std::int64_t>& loadedBytes, const Progress& progress = {});

}  // namespace cleave::torch_rank
