#pragma once
/// Checks the parts of an untrusted plan that a rank acts on; each error is BadInput.
#include "base/result.h"
#include "program/shard_map.h"

namespace cleave::program {

/// Operators must be well formed and in the namespaces aten and cleave, where cleave is limited to operators.h.
Result<void> checkOperators(const graph::Graph& graph);
/// Arguments and shapes of Cleave's own operators must match their table for this number of ranks.
Result<void> checkCollectives(const graph::Graph& program, int ranks);
/// All values together must fit 64-bit sizes with room for work space.
Result<void> checkTotalBytes(const graph::Graph& graph);
/// The pieces of a rank must make up its part of the parameter, except for padding.
Result<void> checkPieces(const ParameterShards& parameter, const std::vector<ShardPiece>& pieces, int ranks, int rank);

}  // namespace cleave::program
