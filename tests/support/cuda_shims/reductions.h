#pragma once
/// NCCL's reductions of host memory.
#include <nccl.h>

#include <cstddef>
#include <vector>

namespace cleave::shims {

/// Bytes of an element; 0: the type is not supported.
std::size_t sizeOf(ncclDataType_t type);

/// Reduces `bytes` bytes of all `inputs` into `out`. False: the operation or the type is not supported.
bool reduce(ncclRedOp_t operation, ncclDataType_t type, const std::vector<const char*>& inputs, std::size_t bytes,
            void* out);

}  // namespace cleave::shims
