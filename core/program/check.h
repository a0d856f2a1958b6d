#pragma once
/// Checks on the parts of a foreign plan that a rank acts on; each error is BadInput.
#include "base/result.h"
#include "program/shard_map.h"

namespace cleave::program {

/// Operators only of the namespaces aten and cleave, well formed, Cleave's own from operators.h.
Result<void> checkOperators(const graph::Graph& graph);
/// Arguments and shapes of Cleave's own operators, as their table says, on so many ranks.
Result<void> checkCollectives(const graph::Graph& program, int ranks);
/// All values together fit 64-bit sizes with room for work space.
Result<void> checkTotalBytes(const graph::Graph& graph);
/// The pieces of one rank together fill its part of the parameter, but for padding.
Result<void> checkPieces(const ParameterShards& parameter, const std::vector<ShardPiece>& pieces, int ranks, int rank);

}  // namespace cleave::program
