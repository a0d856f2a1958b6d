#pragma once
/// Several programs of one model in one process share the loaded weights. This header uses LibTorch.
///
///     loadWeights(first, ...);
///     CLEAVE_TRY_VOID(handOver(first, firstProgram.parameters, second, secondProgram.parameters));
///     // both use the same storages; the second reads and allocates nothing
#include "libtorch/rank/execute/interpreter.h"
#include "program/shard_map.h"

#include <cstdint>

namespace cleave::torch_rank {

/// Gives every parameter of `to` the tensor of the same name in `from`. Returns BadInput if `from` lacks a parameter or
/// has it with another placement. pipeline::planOnSameWeights makes suitable plans. `fromParameters` and `toParameters`
/// are the programs' shard maps.
Result<void> handOver(const Program& from, const program::ShardMap& fromParameters, Program& to,
                      const program::ShardMap& toParameters);

/// A digest of the names and addresses of a program's parameters. Equal for programs on the same storages.
std::uint64_t digestOfStorages(const Program& program, const program::ShardMap& parameters);

}  // namespace cleave::torch_rank
