#pragma once
/// Parts of weights that several ranks hold: whole weights, and heads that ranks share. Each rank reads its own files,
/// on a host of its own perhaps: they must be the same bytes, or the ranks compute something that no model says.
/// LibTorch inside.
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/interpreter.h"
#include "program/shard_map.h"

namespace cleave::torch_rank {

/// Every rank calls it with its loaded program. Where a part differs, the ranks that hold it otherwise than most fail
/// with BadInput and all others with RankFailed; the sentence names the weight and the ranks.
Result<void> checkSharedWeights(const Program& program, const program::ShardMap& parameters, Collectives& collectives);

}  // namespace cleave::torch_rank
