#pragma once
/// Time travel through a recorded search: the trace, the current step, the decision about the focused node, and the
/// breakpoints. No widgets, GUI thread only.
///
/// Every seek and walk runs on the reads worker, on a cursor that belongs to it, so that a trace can be viewed while
/// its search is running. The newest request counts, and states in between may never arrive. A walk reports through
/// Notices if it found nothing or started again from the other end.
///
///     connect(&debugger, &Debugger::stepChanged, ...);
///     debugger.seek(0);  debugger.stepBy(+1);  debugger.nextConflict();
#include <QTimer>
#include <QUndoStack>

#include "views/session/notices.h"
#include "views/session/trace_reader.h"
#include "views/worker/worker.h"

namespace cleave::views {

class Debugger : public QObject {
  Q_OBJECT
 public:
  Debugger(QUndoStack& undo, Notices& notices, QObject* parent = nullptr);

  // The data to view; null before the first search.
  const std::shared_ptr<const solve::Trace>& trace() const { return m_trace; }
  const std::shared_ptr<const StepState>& state() const { return m_state; }
  /// About the focused node at the current step. Null while it is being read, and without a trace.
  const std::shared_ptr<const solve::Decision>& decision() const { return m_decision; }
  /// Live domains of the focused node at the current step. Null while they are being computed, and without a trace.
  std::shared_ptr<const DomainsAt> domains() const;
  std::optional<rules::Placement> placementOf(ValueId value) const;
  std::optional<rules::Strategy> strategyOf(NodeId node) const;
  /// The trace is still growing.
  bool isLive() const { return m_isLive; }
  /// The reads worker, for other readers of the shown trace.
  Worker& reads() { return m_reads; }
  const Worker& reads() const { return m_reads; }

  // Moving. The wanted step is known at once, its state comes with stepChanged.
  StepId stepCount() const { return m_trace ? m_trace->size() : 0; }
  StepId wantedStep() const { return m_wantedStep; }
  void seek(StepId step);
  void jump(StepId step);   ///< like seek, and adds a place to the history
  void visit(StepId step);  ///< like seek, without moving the focus: `arrived` names no node
  void stepBy(std::int64_t delta);
  void nextConflict() { toConflict(true); }
  void previousConflict() { toConflict(false); }
  void stepInto();  ///< the next decision (a Try)
  void stepOut();   ///< back to the decision that caused this one
  void runToBreakpoint(bool forward);
  void toNextChange(NodeId node, bool forward = true);
  /// Reads the decision about this node, now and at all later steps.
  void lookAt(NodeId node);

  // Breakpoints; each change is undoable.
  const std::vector<solve::Breakpoint>& breakpoints() const { return m_breakpoints; }
  void addBreakpoint(const solve::Breakpoint& breakpoint);
  void removeBreakpoint(int index);
  void setBreakpointEnabled(int index, bool isEnabled);
  void toggleBreakpoint(NodeId node);  ///< sets or removes it
  bool hasBreakpoint(NodeId node) const;
  void applyBreakpoints(std::vector<solve::Breakpoint> breakpoints);  ///< not undoable

 signals:
  void traceChanged();
  void traceGrew();
  void stepChanged();
  void decisionChanged();
  void domainsChanged();
  void breakpointsChanged();
  /// After stepChanged: the node of the step (invalid: none, or keep the focus), and whether the history gets a new
  /// place.
  void arrived(cleave::graph::NodeId node, bool isJump);

 private:
  friend class Session;  // opens models and runs searches
  friend class Plans;    // shows the search of a branch
  /// The search that led to a solve, and the solve itself. Either may be null. A trace that is already shown keeps its
  /// step.
  void show(std::shared_ptr<const solve::Trace> trace, std::shared_ptr<const pipeline::Solved> solved);
  void showLive(std::shared_ptr<const solve::Trace> trace);  ///< a running search, until `endLive`
  void endLive();
  void reportGrowth() { emit traceGrew(); }  ///< the last events of a search have been recorded
  void followEnd() { m_followsEnd = true; }  ///< shows the newest step until the user moves
  bool followsEnd() const { return m_followsEnd; }
  void showFirstConflict();
  void forget();  ///< another model is open; `announce` reports the cleared breakpoints
  void announce() { emit breakpointsChanged(); }
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
  StepId m_decidedAt = kNoStep;                ///< the step of m_decision
  std::shared_ptr<const DomainsAt> m_domains;  ///< of the newest answer, possibly for an earlier step
  NodeId m_lookedAt;
  std::shared_ptr<std::shared_ptr<TraceReader>> m_readerSlot;  ///< filled and used only by requests on m_reads
  StepId m_wantedStep = 0;
  bool m_isLive = false;
  bool m_jumps = false;      ///< the pending step is a jump
  bool m_followsEnd = true;  ///< a running search shows its newest step
  bool m_namesNode = true;   ///< false while the pending step is a visit
  std::vector<solve::Breakpoint> m_breakpoints;
  QTimer m_growTimer;
  Worker m_reads;
};

}  // namespace cleave::views
