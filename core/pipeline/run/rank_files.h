#pragma once
/// The files of a run that its ranks read and write.
#include "base/files.h"

#include <optional>

namespace cleave::pipeline {

/// The files that the ranks of one plan read and write.
struct RankFiles {
  fs::path plan, output;
  fs::path deviation;  ///< rank r writes "FILE.r" if its outputs differ from rank 0's
  std::optional<fs::path> input;
  fs::path step;  ///< plan of a decode step after the prompt, if the run generates
};

}  // namespace cleave::pipeline
