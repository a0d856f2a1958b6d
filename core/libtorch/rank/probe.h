#pragma once
/// What CUDA offers on this machine, found by running a kernel on each GPU. No LibTorch in this header.
#include "libtorch/rank/rank.h"

namespace cleave::torch_rank {

/// Loads the library and sends one CudaFound and a GpuFound for each GPU; the result has no figures. A machine without
/// a usable GPU is an answer, not an error: the messages say why. Environment when the library cannot be loaded.
/// Threads and the last message of a failure: as runRank.
Result<protocol::RankResult> probeGpus(const std::string& ncclLibrary, const EventSink& sink);

}  // namespace cleave::torch_rank
