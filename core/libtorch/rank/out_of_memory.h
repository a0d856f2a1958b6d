#pragma once
/// What a rank holds at the moment at which it gets no more memory, in words. LibTorch inside.
#include "libtorch/rank/interpreter.h"
#include "libtorch/rank/memory_ledger.h"

namespace cleave::torch_rank {

/// Whether an error says that there is no memory left, on the host or on a device.
bool isOutOfMemory(const Error& error);

/// " It holds 3.10 GiB: `lm_head.weight` 1.00 GiB, ... Most of it are saved activations: ...": the largest tensors by
/// name, and what makes the largest kind of them less. With a blank in front; empty where nothing is known.
std::string heldText(const MemoryLedger& ledger, const Program& program, bool isTraining);

}  // namespace cleave::torch_rank
