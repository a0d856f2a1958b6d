#pragma once
/// The plain data that a document hands to its views: what they look at together, how the search stands, how a run
/// went, and the solves that can be compared.
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/pipeline.h"
#include "solve/explain/decision.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;
using solve::StepId;

class RunMonitor;

/// What all views look at together. Invalid ids: nothing of that kind.
struct Focus {
  NodeId node;
  ValueId value;
  ScopeId scope;
  StepId step = 0;
  bool operator==(const Focus&) const = default;
};

/// The search after `step` events, as the views draw it.
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
inline constexpr StepId kNoStep = ~StepId(0);

/// The node an event is about: of a backtrack the one gone back to. Invalid where there is none.
NodeId nodeOf(const solve::Event& event);

/// Nodes whose results lie otherwise, or whose strategy is another one, ascending. Of any two states of one graph:
/// views compare with what they show, because states in between may have been dropped. `before` null: nothing is
/// assigned.
std::vector<NodeId> changedNodes(const graph::Graph& graph, const StepState* before, const StepState& after);

enum class Activity { Idle, Opening, Solving, Running };
enum class Severity { Info, Good, Warning, Failure };
/// What a message speaks of: it goes with it.
enum class About {
  Moment,  ///< what the user has just asked for: a file that cannot be read, a pin that matches nothing
  Model,   ///< the open model
  Plan,    ///< the branch shown
  Step,    ///< the present step of the search
  Run,     ///< the run shown
};

/// What was run and how it ended; `report` is null while it runs or when it could not start.
struct RunState {
  int ranks = 0;
  launch::Backend backend = launch::Backend::Auto;
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<RunMonitor> monitor;
  std::optional<pipeline::RunReport> report;
  QString failure;  ///< one sentence, when it could not start or was stopped
  bool isActive = false;

  bool hasRanks() const;  ///< ranks were started, or still may be: there is something to see of them
};

/// One solve of the open model, kept so that it can be compared with another: A is the one before a change, B the one
/// after it.
struct Branch {
  QString name;                                    ///< "A", "B"
  QString label;                                   ///< A: "learning, 2 ranks"; B: what changed, "lm_head=row"
  pipeline::SolveOptions options;                  ///< what it was solved with
  std::shared_ptr<const pipeline::Solved> solved;  ///< null: the search was stopped
  std::shared_ptr<const plan::Plan> plan;          ///< null: there is no solution
  std::shared_ptr<const solve::Trace> trace;
  QString said;  ///< what there is to know about it: a warning, or why there is no plan; empty: nothing
  Severity severity = Severity::Info;
};

}  // namespace cleave::views
