#pragma once
/// A cursor on a recorded search, and what the debugger reads through it. Belongs to requests on the worker of reads,
/// one after the other; making one looks at every node once.
#include <functional>

#include "base/progress.h"
#include "pipeline/solve.h"
#include "solve/explain/live_domain.h"
#include "views/session/step_state.h"

namespace cleave::views {

/// The node that a step is about; nothing at the search's end, which shows the whole solution.
NodeId nodeToFollow(const StepState& state);

/// The live domains of a node's results at one step.
struct DomainsAt {
  StepId step = 0;
  NodeId node;
  std::vector<solve::LiveDomain> domains;
};

struct TraceReader {
  explicit TraceReader(std::shared_ptr<const solve::Trace> trace);
  /// At the end of the search that `solved` came from, its solution: it places parameters too. `solved` may be null.
  std::shared_ptr<const StepState> stateAt(StepId step, const pipeline::Solved* solved);
  std::optional<StepId> nextDecision() const;
  std::optional<StepId> previousDecision() const;
  /// At a conflict: the newest of the decisions it names. Elsewhere: the decision before.
  std::optional<StepId> decisionBehind() const;
  std::shared_ptr<const solve::Decision> decisionAbout(NodeId node) const;  ///< null for an invalid node
  /// Of the results of a node, at the cursor; null for an invalid node, and when it was cancelled.
  std::shared_ptr<const DomainsAt> domainsOf(NodeId node, const Progress& progress);

  solve::Cursor cursor;
  std::shared_ptr<const solve::Problem> problem;

 private:
  bool isDecision(const solve::Event& event) const;
  solve::LiveDomains m_domains;
  std::vector<bool> m_isLayer;  ///< by NodeId
};

/// A plan without the search that led to it: its one state is the solution.
std::shared_ptr<const StepState> solutionState(const pipeline::Solved& solved);

/// What a walk looks for, from the wanted step on.
struct Walk {
  std::function<std::optional<StepId>(TraceReader&, const Progress&)> find;
  QString nothing;                              ///< said when `find` answers nullopt
  std::function<QString(StepId, StepId)> note;  ///< said of the way it went, when not empty; may be null
};
Walk walkTo(StepId step);
/// The next conflict, or the first one again after the last (backwards likewise).
Walk walkToConflict(bool forward);
Walk walkToFirstConflict();  ///< forward; to the end where there is none
Walk walkToNextDecision();
Walk walkToDecisionBehind();
Walk walkToBreakpoint(bool forward, std::vector<solve::Breakpoint> breakpoints);  ///< or to the end (the beginning)
Walk walkToChange(NodeId node, bool forward);

}  // namespace cleave::views
