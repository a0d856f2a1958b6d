#pragma once
/// Work that is shared by several threads. This header does not use LibTorch.
///
///     CLEAVE_TRY_VOID(onThreads(at::get_num_threads(), parts, [&](std::int64_t part) { return read(part); }));
#include "base/result.h"

#include <cstdint>
#include <functional>

namespace cleave::torch_rank {

/// Calls `work` once for every part of [0, parts), on up to `threads` threads including the caller's. Uses fewer
/// threads if there are fewer parts, or if the system cannot start more. A thread that is done begins the next part.
/// After a failure no part begins, and the first error is returned. All threads have ended when it returns.
Result<void> onThreads(int threads, std::int64_t parts, const std::function<Result<void>(std::int64_t part)>& work);

}  // namespace cleave::torch_rank
