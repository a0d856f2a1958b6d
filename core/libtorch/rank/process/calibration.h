#pragma once
/// One rank of a calibration: measures computation, memory bandwidth and communication while all ranks do the same.
/// This header does not use LibTorch.
///
/// Measures matrix products of layers (tokens × features by features × features) in bfloat16, float32 and float64, one
/// element-wise operator on tensors larger than caches, and all-reduce, all-gather and reduce-scatter in float32
/// through `Collectives`, from 1 KiB to 16 MiB. Each is warmed up and then repeated for about 0.1 s, equally often on
/// all ranks. If one size is too slow, larger sizes are skipped. The whole calibration takes a few seconds.
#include "base/progress.h"
#include "libtorch/rank/process/event_sink.h"
#include "libtorch/rank/process/rank_request.h"

namespace cleave::torch_rank {

/// Uses only the rank, the backend and the address in the request. Sends each Measurement to the sink. The result
/// contains only peak memory. Errors, threads and the last message of a failed rank are as in runRank.
Result<protocol::RankResult> calibrateRank(const RankRequest& request, const EventSink& sink,
                                           const Progress& progress = {});

}  // namespace cleave::torch_rank
