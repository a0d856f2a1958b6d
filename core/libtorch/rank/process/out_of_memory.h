#pragma once
/// The text that an out-of-memory error adds about a rank's memory. This header uses LibTorch.
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/memory/memory_ledger.h"

namespace cleave::torch_rank {

/// True for errors that report a lack of memory on the host or on a device.
bool isOutOfMemory(const Error& error);

/// " 3.10 GiB are allocated on this rank. Largest: `lm_head.weight` f32[...] 1.00 GiB, ...": the largest tensors, the
/// largest kind of memory, and how to reduce it. Starts with a space. Empty if nothing is known.
std::string liveMemoryText(const MemoryLedger& ledger, const Program& program, bool isTraining);

}  // namespace cleave::torch_rank
