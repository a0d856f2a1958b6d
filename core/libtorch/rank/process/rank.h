#pragma once
/// One rank of a run, from the program in a plan file to its result. This header does not use LibTorch.
///
/// A rank loads only its slices of the weights. Then it runs one or more rank programs on them, node by node with ATen,
/// and frees values after their last use. All collectives use the `Collectives` interface (Gloo, NCCL, or one rank
/// without peers).
#include "base/progress.h"
#include "libtorch/rank/process/event_sink.h"
#include "libtorch/rank/process/rank_request.h"

namespace cleave::torch_rank {

/// Runs to the end or to the first error. This thread and the sampling thread send messages to the sink. The last
/// message of a failed rank is its RankError, sent before its objects are destroyed, because a process group's
/// destructor may wait for peers that have exited. RankFailed: a peer failed during a collective. BadInput: plan,
/// weights or inputs. Environment: no device, no memory or no peers. The function owns all LibTorch state of the
/// process (threads, seed) while it runs.
Result<protocol::RankResult> runRank(const RankRequest& request, const EventSink& sink, const Progress& progress = {});

}  // namespace cleave::torch_rank
