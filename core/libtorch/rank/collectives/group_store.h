#pragma once
/// Connects a rank to the store of its run. This header uses LibTorch.
#include "base/result.h"
#include "libtorch/rank/collectives/group_address.h"

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Store;
}  // namespace c10d

namespace cleave::torch_rank {

/// The store through which the ranks exchange addresses. Returns Environment if it does not respond in time: no route,
/// a name that does not resolve, a port without an answer. If a rank's `alike` differs from that of rank 0, returns
/// BadInput on this rank and RankFailed on rank 0.
Result<c10::intrusive_ptr<c10d::Store>> connectStore(const GroupAddress& group);

}  // namespace cleave::torch_rank
