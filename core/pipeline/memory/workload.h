#pragma once
/// The properties of a run that determine its memory.
///
/// This room predicts the memory that the processes of a run need, and checks whether this machine has it.
#include "plan/plan.h"

namespace cleave::pipeline {

struct Workload {
  bool isTraining = false;           ///< training steps of a plan for training; otherwise forward passes
  int replicas = 1;                  ///< see RunRequest
  const plan::Plan* step = nullptr;  ///< plan of the decode steps after a prompt, on the same weights
};

}  // namespace cleave::pipeline
