#pragma once
/// One rank of a calibration: how fast it computes, passes over memory and communicates while all ranks do the same. No
/// LibTorch in this header.
///
/// Products of matrices as layers have them (tokens × features by features × features) in bfloat16, float32 and
/// float64; one element-wise operator on tensors larger than caches; all-reduce, all-gather and reduce-scatter in
/// float32 through `Collectives`, from 1 KiB to 16 MiB. Each is called once for nothing and then repeated for about a
/// tenth of a second, equally often on all ranks; what is too slow for that at one size is not tried at a larger one.
/// So all takes a few seconds.
#include "libtorch/rank/rank.h"

namespace cleave::torch_rank {

/// Of the request only what says who the rank is and where it meets the others. Each Measurement goes to the sink as it
/// is made; the result has peak memory and no more. Errors, threads and the last message of a rank that fails: as
/// runRank.
Result<protocol::RankResult> calibrateRank(const RankRequest& request, const EventSink& sink,
                                           const Progress& progress = {});

}  // namespace cleave::torch_rank
