#pragma once
/// What is left for programs beside LibTorch.
#include <cstdint>

namespace cleave::pipeline {

/// Bytes that the program of each of `ranks` processes on CPUs may hold where `available` are free for all of them: a
/// plan that holds no more passes `checkMemory` (run.h). 0: nothing is left.
std::int64_t roomForProgram(std::int64_t available, int ranks);

}  // namespace cleave::pipeline
