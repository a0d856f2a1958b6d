#pragma once
/// Checks on the parts of a foreign plan that a rank acts on. Internal to this room; each error is BadInput.
#include "plan/plan.h"

namespace cleave::plan {

/// Operators only of the namespaces aten and cleave, well formed, Cleave's own from the table in plan.h.
Result<void> checkOperators(const Graph& graph);
/// Arguments and shapes of Cleave's own operators, as their table says, on so many ranks.
Result<void> checkCollectives(const Graph& program, int ranks);
/// All values together fit 64-bit sizes with room for work space.
Result<void> checkTotalBytes(const Graph& graph);
/// The pieces of one rank together fill its part of the parameter, but for padding.
Result<void> checkPieces(const ParameterPlan& parameter, const std::vector<Piece>& pieces, int ranks, int rank);

}  // namespace cleave::plan
