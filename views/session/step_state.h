#pragma once
/// The search after so many events, as the views draw it. Immutable once made.
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "solve/explain/decision.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;
using solve::StepId;

inline constexpr StepId kNoStep = ~StepId(0);

struct StepState {
  StepId step = 0;
  StepId size = 0;                                          ///< events there were when this was read
  int ranks = 0;                                            ///< what the search is for; 0: not known
  std::vector<std::optional<rules::Placement>> placements;  ///< by ValueId
  std::vector<std::optional<rules::Strategy>> strategies;   ///< by NodeId: layers with a choice
  std::optional<solve::Event> event;                        ///< the one just applied
  QString eventText;                                        ///< as a sentence
  std::optional<solve::ConflictCard> conflict;  ///< the conflict just met, or the one the search goes back from
  std::size_t assigned = 0;                     ///< nodes with a choice
  std::vector<StepId> assignedAt;               ///< by NodeId; kNoStep: none
};

/// The node an event is about: of a backtrack the one gone back to. Invalid where there is none.
NodeId nodeOf(const solve::Event& event);

/// Nodes whose results are placed otherwise, or whose strategy is another one, ascending. Of any two states of one
/// graph: views compare with what they show, because states in between may have been dropped. `before` null: nothing is
/// assigned.
std::vector<NodeId> changedNodes(const graph::Graph& graph, const StepState* before, const StepState& after);

}  // namespace cleave::views
