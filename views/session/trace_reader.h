#pragma once
/// A cursor on a recorded search, and the debugger's reads through it. Belongs to the requests on the reads worker, one
/// after the other. Its construction visits every node once.
#include <functional>

#include "base/progress.h"
#include "pipeline/model/solved.h"
#include "solve/explain/live_domain.h"
#include "views/session/step_state.h"

namespace cleave::views {

/// The node of a step. Invalid at the end of the search, which shows the whole solution.
NodeId nodeToFollow(const StepState& state);

/// The live domains of a node's results at one step.
struct DomainsAt {
  StepId step = 0;
  NodeId node;
  std::vector<solve::LiveDomain> domains;
};

struct TraceReader {
  explicit TraceReader(std::shared_ptr<const solve::Trace> trace);
  /// At the end of the search that produced `solved`, the state is its solution, which places parameters too. `solved`
  /// may be null.
  std::shared_ptr<const StepState> stateAt(StepId step, const pipeline::Solved* solved);
  std::optional<StepId> nextDecision() const;
  std::optional<StepId> previousDecision() const;
  /// At a conflict: the newest decision that it names. At other steps: the previous decision.
  std::optional<StepId> causingDecision() const;
  std::shared_ptr<const solve::Decision> decisionAbout(NodeId node) const;  ///< null for an invalid node
  /// The domains of a node's results at the cursor. Null for an invalid node, and after a cancel.
  std::shared_ptr<const DomainsAt> domainsOf(NodeId node, const Progress& progress);

  solve::Cursor cursor;
  std::shared_ptr<const solve::Problem> problem;

 private:
  bool isDecision(const solve::Event& event) const;
  solve::LiveDomains m_domains;
  std::vector<bool> m_isLayer;  ///< by NodeId
};

/// The only state of a plan without its search: the solution.
std::shared_ptr<const StepState> solutionState(const pipeline::Solved& solved);

/// The target of a walk, from the wanted step on.
struct Walk {
  std::function<std::optional<StepId>(TraceReader&, const Progress&)> find;
  QString nothing;                              ///< message if `find` returns nullopt
  std::function<QString(StepId, StepId)> note;  ///< message about the way, if not empty; may be null
};
Walk walkTo(StepId step);
/// The next conflict. After the last one, the first one again (and the reverse for backward).
Walk walkToConflict(bool forward);
Walk walkToFirstConflict();  ///< forward; the end if there is no conflict
Walk walkToNextDecision();
Walk walkToCausingDecision();
Walk walkToBreakpoint(bool forward, std::vector<solve::Breakpoint> breakpoints);  ///< without a breakpoint: the end
                                                                                  ///< (the beginning)
Walk walkToChange(NodeId node, bool forward);

}  // namespace cleave::views
