#pragma once
/// The device of the unsplit run: one GPU if the ranks run on GPUs and the full model fits on one; otherwise CPUs.
#include "launch/launcher.h"
#include "pipeline/memory/workload.h"
#include "plan/plan.h"

#include <string>

namespace cleave::pipeline {

struct UnsplitPlace {
  launch::Backend backend = launch::Backend::Gloo;  ///< Nccl: one rank on GPU 0
  std::string text = "an unsplit run";  ///< for RunReport::comparedWith: "an unsplit run on GPU 0 (NVIDIA H100)"
  std::string note = {};                ///< why it does not use the device of the ranks; empty: it does
};

/// `ofRanks`: the backend of the ranks. The free memory is from launch::lastGpuProbe.
UnsplitPlace unsplitPlace(const plan::Plan& split, const Workload& workload, launch::Backend ofRanks);

}  // namespace cleave::pipeline
