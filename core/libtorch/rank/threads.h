#pragma once
/// Work that several threads share for a moment. No LibTorch in this header.
///
///     CLEAVE_TRY_VOID(onThreads(at::get_num_threads(), parts, [&](std::int64_t part) { return read(part); }));
#include "base/result.h"

#include <cstdint>
#include <functional>

namespace cleave::torch_rank {

/// Does every part of [0, parts), each once, on up to `threads` threads: the caller's and as many more as there are
/// parts for and as the system gives. Whoever is done with one takes the next. No part begins behind one that failed,
/// and the first that did is the answer. No thread is left when it returns.
Result<void> onThreads(int threads, std::int64_t parts, const std::function<Result<void>(std::int64_t part)>& work);

}  // namespace cleave::torch_rank
