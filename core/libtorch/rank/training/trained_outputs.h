#pragma once
/// The outputs of training: losses and parameters, gathered over the ranks of a replica. This header uses LibTorch.
#include "libtorch/rank/execute/interpreter.h"
#include "program/shard_map.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace cleave::torch_rank {

using ByParameter = std::map<graph::ValueId, at::Tensor>;

/// Gathers all parameters one by one and returns a digest of all written tensors. All ranks call it. Ranks with a file
/// write it atomically: the losses of all steps as "losses", each parameter as "param.NAME", and each mask in
/// `undetermined` (training.h) as "undetermined.param.NAME".
Result<std::uint64_t> gatherTrained(const Program& program, const program::ShardMap& parameters,
                                    const std::vector<double>& losses, const ByParameter& undetermined,
                                    Collectives& collectives, const std::optional<std::filesystem::path>& file);

}  // namespace cleave::torch_rank
