#pragma once
/// Time travel through a recorded search: the trace, the present step, the decision about the node looked at, and the
/// breakpoints. No widgets, GUI thread only.
///
/// Every seek and walk runs on a worker of reads, on one cursor that belongs to it, so that a trace can be looked at
/// while its search still runs. The newest request counts: states in between may never come. A walk says through
/// Notices what it did not find, and when it began anew.
///
///     connect(&debugger, &Debugger::stepChanged, ...);
///     debugger.seek(0);  debugger.stepBy(+1);  debugger.nextConflict();
#include <QTimer>
#include <QUndoStack>

#include "views/base/worker.h"
#include "views/session/notices.h"
#include "views/session/trace_reader.h"

namespace cleave::views {

class Debugger : public QObject {
  Q_OBJECT
 public:
  Debugger(QUndoStack& undo, Notices& notices, QObject* parent = nullptr);

  // What there is to see; null before the first search.
  const std::shared_ptr<const solve::Trace>& trace() const { return m_trace; }
  const std::shared_ptr<const StepState>& state() const { return m_state; }
  /// About the node looked at, at the present step; null while it is being read, and without a trace.
  const std::shared_ptr<const solve::Decision>& decision() const { return m_decision; }
  /// Live domains of the node looked at, at the present step; null while they are being worked out, and without a
  /// trace.
  std::shared_ptr<const DomainsAt> domains() const;
  std::optional<rules::Placement> placementOf(ValueId value) const;
  std::optional<rules::Strategy> strategyOf(NodeId node) const;
  /// The trace is still growing.
  bool isLive() const { return m_isLive; }
  /// The worker of reads, for others who read what is shown.
  Worker& reads() { return m_reads; }
  const Worker& reads() const { return m_reads; }

  // Moving. The wanted step is known at once, its state comes with stepChanged.
  StepId stepCount() const { return m_trace ? m_trace->size() : 0; }
  StepId wantedStep() const { return m_wantedStep; }
  void seek(StepId step);
  void jump(StepId step);   ///< as seek, and the history of places leads back
  void visit(StepId step);  ///< as seek, for one who knows what to look at there: `arrived` names no node
  void stepBy(std::int64_t delta);
  void nextConflict() { toConflict(true); }
  void previousConflict() { toConflict(false); }
  void stepInto();  ///< the next decision (a Try)
  void stepOut();   ///< back to the decision this one hangs on
  void runToBreakpoint(bool forward);
  void toNextChange(NodeId node, bool forward = true);
  /// Reads the decision about this node, here and at all further steps.
  void lookAt(NodeId node);

  // Breakpoints; each change is undoable.
  const std::vector<solve::Breakpoint>& breakpoints() const { return m_breakpoints; }
  void addBreakpoint(const solve::Breakpoint& breakpoint);
  void removeBreakpoint(int index);
  void setBreakpointEnabled(int index, bool isEnabled);
  void toggleBreakpoint(NodeId node);  ///< sets it, or takes it away
  bool hasBreakpoint(NodeId node) const;
  void applyBreakpoints(std::vector<solve::Breakpoint> breakpoints);  ///< not undoable

  // For the session and its plans.
  /// The search that led to a solve, and the solve itself; either may be null. A trace that is shown stays where it is.
  void show(std::shared_ptr<const solve::Trace> trace, std::shared_ptr<const pipeline::Solved> solved);
  void showLive(std::shared_ptr<const solve::Trace> trace);  ///< of a search under way, until `endLive`
  void endLive();
  void tellGrowth() { emit traceGrew(); }    ///< the last events of a search are there
  void followEnd() { m_followsEnd = true; }  ///< until the user moves: the newest step is shown
  bool followsEnd() const { return m_followsEnd; }
  void showFirstConflict();
  void forget();  ///< another model is open; breakpoints are told of by `announce`
  void announce() { emit breakpointsChanged(); }

 signals:
  void traceChanged();
  void traceGrew();
  void stepChanged();
  void decisionChanged();
  void domainsChanged();
  void breakpointsChanged();
  /// After stepChanged: what the step is about (invalid: nothing, or it is not to be looked at), and whether the way
  /// back leads over the place before.
  void arrived(cleave::graph::NodeId node, bool isJump);

 private:
  void toConflict(bool forward);
  void setTrace(std::shared_ptr<const solve::Trace> trace);
  void post(Walk walk);
  void postSeek(StepId step);
  void take(std::shared_ptr<const StepState> state, std::shared_ptr<const solve::Decision> decision);
  void askForDecision();
  void askForDomains();
  void changeBreakpoints(std::vector<solve::Breakpoint> after, const QString& what);

  QUndoStack& m_undo;
  Notices& m_notices;
  std::shared_ptr<const solve::Trace> m_trace;
  std::shared_ptr<const pipeline::Solved> m_solved;
  std::shared_ptr<const StepState> m_state;
  std::shared_ptr<const solve::Decision> m_decision;
  StepId m_decidedAt = kNoStep;                ///< the step that m_decision is of
  std::shared_ptr<const DomainsAt> m_domains;  ///< of the newest answer, which may be of a step before
  NodeId m_lookedAt;
  std::shared_ptr<std::shared_ptr<TraceReader>> m_readerSlot;  ///< filled and used by requests on m_reads only
  StepId m_wantedStep = 0;
  bool m_isLive = false;
  bool m_jumps = false;      ///< the step under way is a jump
  bool m_followsEnd = true;  ///< a search shows its newest step
  bool m_namesNode = true;   ///< false while the step under way is a visit
  std::vector<solve::Breakpoint> m_breakpoints;
  QTimer m_growTimer;
  Worker m_reads;
};

}  // namespace cleave::views
