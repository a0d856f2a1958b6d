#pragma once
/// The state of the search after a number of events, for the views. Immutable once made.
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "solve/explain/conflict_card.h"
#include "solve/explain/decision.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;
using solve::StepId;

inline constexpr StepId kNoStep = ~StepId(0);

struct StepState {
  StepId step = 0;
  StepId size = 0;                                          ///< number of events when the state was read
  int ranks = 0;                                            ///< rank count of the search; 0: unknown
  std::vector<std::optional<rules::Placement>> placements;  ///< by ValueId
  std::vector<std::optional<rules::Strategy>> strategies;   ///< by NodeId: layers with a choice
  std::optional<solve::Event> event;                        ///< the last applied event
  QString eventText;                                        ///< as a sentence
  std::optional<solve::ConflictCard> conflict;  ///< the conflict just met, or the one that the search goes back from
  std::size_t assigned = 0;                     ///< nodes with a choice
  std::vector<StepId> assignedAt;               ///< by NodeId; kNoStep: not assigned
};

/// The node of an event; for a backtrack, the node it returns to. Invalid for events without a node.
NodeId nodeOf(const solve::Event& event);

/// Nodes whose placements or strategy differ between two states of one graph, ascending. Views compare with their own
/// state, because states in between may have been dropped. `before` null: nothing is assigned.
std::vector<NodeId> changedNodes(const graph::Graph& graph, const StepState* before, const StepState& after);

}  // namespace cleave::views
