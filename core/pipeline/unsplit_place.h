#pragma once
/// Where the unsplit run computes that ranks are compared with: on one GPU where the ranks run on GPUs and the whole
/// model fits on one, else on CPUs.
#include "pipeline/run.h"

namespace cleave::pipeline {

struct UnsplitPlace {
  launch::Backend backend = launch::Backend::Gloo;  ///< Nccl: one rank on GPU 0
  std::string text = "an unsplit run";  ///< for RunReport::comparedWith: "an unsplit run on GPU 0 (NVIDIA H100)"
  std::string note = {};                ///< why it is not where the ranks are; empty: it is
};

/// `ofRanks`: the backend of the ranks. Free memory is as launch::lastGpuProbe found it.
UnsplitPlace unsplitPlace(const plan::Plan& split, const Workload& workload, launch::Backend ofRanks);

}  // namespace cleave::pipeline
