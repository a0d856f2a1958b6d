#pragma once
/// Weights that several ranks have in part or in full: replicated weights, and shared heads. Each rank reads its own
/// files, possibly on another host. If their bytes differ, the outputs are wrong. This header uses LibTorch.
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/execute/interpreter.h"
#include "program/shard_map.h"

namespace cleave::torch_rank {

/// Every rank calls it with its loaded program. If a part differs, the ranks that differ from the majority return
/// BadInput, and all others RankFailed. The message names the weight and the ranks.
Result<void> checkSharedWeights(const Program& program, const program::ShardMap& parameters, Collectives& collectives);

}  // namespace cleave::torch_rank
