#pragma once
/// Questions about one moment of a search, for the decision panel and the conflict card. Only this room includes it.
#include "solve/trace/cursor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::solve {

/// Placements of a node's operands at the cursor; nullopt if one is not assigned yet.
std::optional<std::vector<Placement>> readsAt(const Cursor& cursor, NodeId node);

/// One try of a node since the search last arrived at it.
struct PastTry {
  std::uint32_t ordinal = 0;
  StepId index = 0;                     ///< of the Try event
  std::optional<StepId> conflictIndex;  ///< of the Conflict event that ended it; nullopt: in force
};
/// The tries in the order of time. Empty if the node has no choice and the search did not just go back to it.
std::vector<PastTry> pastTries(const Cursor& cursor, NodeId node);

}  // namespace cleave::solve
