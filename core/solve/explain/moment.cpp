#include "solve/explain/moment.h"

#include "solve/problem/variables.h"

#include <algorithm>

namespace cleave::solve {

std::optional<std::vector<Placement>> readsAt(const Cursor& cursor, NodeId node) {
  std::vector<Placement> placements;
  for (const Read& read : cursor.trace().variables().reads(node)) {
    auto placement = cursor.placementOf(read.value);
    if (!placement) return std::nullopt;
    placements.push_back(std::move(*placement));
  }
  return placements;
}

std::vector<PastTry> pastTries(const Cursor& cursor, NodeId node) {
  const auto trace = cursor.sharedTrace();
  std::vector<PastTry> tries;
  Cursor past(trace);
  past.seek(cursor.step());
  std::optional<StepId> at = past.assignedAt(node);
  std::optional<StepId> conflictIndex;
  if (!at) {
    // The search just went back to this node: the event before the Backtrack is the conflict that ended the last try.
    const auto last = cursor.lastEvent();
    if (!last || last->type != EventType::Backtrack || last->target != node.raw() || cursor.step() < 2) return tries;
    conflictIndex = cursor.step() - 2;
    past.seek(cursor.step() - 1);
    at = past.assignedAt(node);
  }
  while (at) {
    Event event;
    if (trace->read(*at, {&event, 1}) != 1 || event.type != EventType::Try) break;
    tries.push_back({event.ordinal, *at, conflictIndex});
    // Every try but the first follows a Conflict and a Backtrack. The earlier candidate was in force before that
    // Backtrack.
    if (*at < 2 || trace->read(*at - 1, {&event, 1}) != 1 || event.type != EventType::Backtrack) break;
    conflictIndex = *at - 2;
    past.seek(*at - 1);
    const auto earlier = past.assignedAt(node);
    if (earlier && *earlier >= *at) break;
    at = earlier;
  }
  std::reverse(tries.begin(), tries.end());
  return tries;
}

}  // namespace cleave::solve
