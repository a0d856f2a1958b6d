#pragma once
/// Probes CUDA on this machine by running a kernel on each GPU. This header does not use LibTorch.
#include "libtorch/rank/process/event_sink.h"

namespace cleave::torch_rank {

/// Loads the library and sends one CudaFound, and a GpuFound for each GPU. The result is empty. A machine without a
/// usable GPU is not an error; the messages contain the reason. Returns Environment if the library cannot be loaded.
/// Threads and the last message of a failure are as in runRank.
Result<protocol::RankResult> probeGpus(const std::string& ncclLibrary, const EventSink& sink);

}  // namespace cleave::torch_rank
