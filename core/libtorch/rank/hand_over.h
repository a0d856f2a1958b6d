#pragma once
/// Several programs of one model in one process: what one has loaded serves the next. LibTorch inside.
///
///     loadWeights(first, ...);
///     CLEAVE_TRY_VOID(handOver(first, firstProgram.parameters, second, secondProgram.parameters));
///     // both run on the same storages; nothing was read or allocated for the second
#include "libtorch/rank/interpreter.h"
#include "program/shard_map.h"

#include <cstdint>

namespace cleave::torch_rank {

/// Gives every parameter of `to` the very tensor that `from` has under its name. BadInput names the first that `from`
/// lacks, or that lies otherwise there: plans for it are made with pipeline::planOnSameWeights. `fromParameters` and
/// `toParameters` are the programs' shard maps.
Result<void> handOver(const Program& from, const program::ShardMap& fromParameters, Program& to,
                      const program::ShardMap& toParameters);

/// Of the names of a program's parameters and of where in memory they lie: equal for programs on the same storages.
std::uint64_t digestOfStorages(const Program& program, const program::ShardMap& parameters);

}  // namespace cleave::torch_rank
