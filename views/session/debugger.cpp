#include "views/session/debugger.h"

#include <QUndoCommand>
#include <algorithm>

namespace cleave::views {

namespace {
constexpr int kGrowMs = 200;
const QString kSeekTag = QStringLiteral("seek");
const QString kDomainsTag = QStringLiteral("domains");

class BreakpointsCommand : public QUndoCommand {
 public:
  BreakpointsCommand(Debugger& debugger, std::vector<solve::Breakpoint> after, const QString& what)
      : QUndoCommand(what), m_debugger(debugger), m_before(debugger.breakpoints()), m_after(std::move(after)) {}
  void undo() override { m_debugger.applyBreakpoints(m_before); }
  void redo() override { m_debugger.applyBreakpoints(m_after); }

 private:
  Debugger& m_debugger;
  std::vector<solve::Breakpoint> m_before, m_after;
};

bool isPlainNodeBreakpoint(const solve::Breakpoint& breakpoint, NodeId node) {
  return breakpoint.node == node && !breakpoint.type && !breakpoint.placement && breakpoint.op.empty() &&
         breakpoint.scopePrefix.empty();
}
}  // namespace

Debugger::Debugger(QUndoStack& undo, Notices& notices, QObject* parent)
    : QObject(parent), m_undo(undo), m_notices(notices), m_reads(this) {
  m_growTimer.setInterval(kGrowMs);
  connect(&m_growTimer, &QTimer::timeout, this, [this] {
    emit traceGrew();
    if (m_followsEnd) postSeek(m_trace->size());
  });
}

std::optional<rules::Placement> Debugger::placementOf(ValueId value) const {
  if (!m_state || !value.isValid() || value.index() >= m_state->placements.size()) return std::nullopt;
  return m_state->placements[value.index()];
}

std::optional<rules::Strategy> Debugger::strategyOf(NodeId node) const {
  if (!m_state || !node.isValid() || node.index() >= m_state->strategies.size()) return std::nullopt;
  return m_state->strategies[node.index()];
}

void Debugger::show(std::shared_ptr<const solve::Trace> trace, std::shared_ptr<const pipeline::Solved> solved) {
  m_solved = std::move(solved);
  if (trace != m_trace) setTrace(std::move(trace));
  if (m_trace || !m_solved || !m_solved->result.solution) return;
  m_state = solutionState(*m_solved);
  m_wantedStep = 0;
  emit stepChanged();
}

void Debugger::showLive(std::shared_ptr<const solve::Trace> trace) {
  m_solved.reset();
  m_isLive = true;
  setTrace(std::move(trace));
  m_growTimer.start();
  postSeek(m_trace->size());
}

void Debugger::endLive() {
  m_isLive = false;
  m_growTimer.stop();
}

void Debugger::forget() {
  endLive();
  m_solved.reset();
  m_breakpoints.clear();
  m_lookedAt = {};
  setTrace(nullptr);
}

void Debugger::setTrace(std::shared_ptr<const solve::Trace> trace) {
  m_trace = std::move(trace);
  m_readerSlot.reset();
  m_state.reset();
  m_decision.reset();
  m_domains.reset();
  m_wantedStep = 0;
  if (m_trace) {
    auto slot = std::make_shared<std::shared_ptr<TraceReader>>();
    m_readerSlot = slot;
    m_reads.post(QStringLiteral("reader"), {}, [slot, shared = m_trace](const Progress&) -> Worker::Completion {
      *slot = std::make_shared<TraceReader>(shared);
      return {};
    });
  }
  emit traceChanged();
  emit stepChanged();
}

void Debugger::seek(StepId step) {
  if (!m_trace) return;
  m_followsEnd = isLive() && step >= m_trace->size();
  postSeek(step);
}

void Debugger::jump(StepId step) {
  m_jumps = true;
  seek(step);
}

void Debugger::visit(StepId step) {
  if (!m_trace || step == m_wantedStep) return;
  m_followsEnd = false;
  m_namesNode = false;
  postSeek(step);
}

void Debugger::postSeek(StepId step) {
  if (!m_trace) return;
  m_wantedStep = std::min<StepId>(step, m_trace->size());
  post(walkTo(m_wantedStep));
}

void Debugger::stepBy(std::int64_t delta) {
  const auto wanted = static_cast<std::int64_t>(m_wantedStep) + delta;
  seek(static_cast<StepId>(std::max<std::int64_t>(0, wanted)));
}

void Debugger::post(Walk walk) {
  if (!m_trace) return;
  m_reads.cancel(kDomainsTag);  // their step is no longer current
  // Reads the decision together with the step, so that all panels update together.
  m_reads.post(
      kSeekTag, {},
      [=, this, slot = m_readerSlot, base = m_wantedStep, solved = m_solved, trace = m_trace, lookedAt = m_lookedAt,
       follows = m_namesNode && !m_followsEnd](const Progress& progress) -> Worker::Completion {
        TraceReader* reader = slot->get();
        if (!reader || progress.cancelled()) return {};
        reader->cursor.seek(base);
        const auto found = walk.find(*reader, progress);
        if (!found) {
          return [this, nothing = walk.nothing, trace, wasCancelled = progress.cancelled()] {
            if (trace == m_trace && !wasCancelled) m_notices.say(nothing, Severity::Info, About::Step);
          };
        }
        const auto state = reader->stateAt(*found, solved.get());
        const NodeId moved = follows ? nodeToFollow(*state) : NodeId();
        const auto decision = reader->decisionAbout(moved.isValid() ? moved : lookedAt);
        return [=, this] {
          if (trace != m_trace) return;
          take(state, decision);
          const QString note = walk.note ? walk.note(base, state->step) : QString();
          if (!note.isEmpty()) m_notices.say(note, Severity::Info, About::Step);
        };
      });
}

void Debugger::take(std::shared_ptr<const StepState> state, std::shared_ptr<const solve::Decision> decision) {
  m_state = std::move(state);
  m_wantedStep = m_state->step;
  m_decision = std::move(decision);
  m_decidedAt = m_state->step;
  const bool namesNode = std::exchange(m_namesNode, true) && !m_followsEnd;
  const NodeId node = namesNode ? nodeToFollow(*m_state) : NodeId();
  emit stepChanged();
  emit arrived(node, std::exchange(m_jumps, false));
  askForDecision();
}

void Debugger::lookAt(NodeId node) {
  m_lookedAt = node;
  askForDecision();
}

/// Reads the decision for each new step and node, unless it came with the step. The newest request counts.
void Debugger::askForDecision() {
  if (!m_trace || !m_state || !m_lookedAt.isValid()) {
    if (std::exchange(m_decision, nullptr)) emit decisionChanged();
    return;
  }
  if (m_decision && m_decision->node == m_lookedAt && m_decidedAt == m_state->step) {
    emit decisionChanged();
    return askForDomains();
  }
  m_reads.post(QStringLiteral("decision"), {},
               [this, slot = m_readerSlot, trace = m_trace, step = m_state->step,
                node = m_lookedAt](const Progress&) -> Worker::Completion {
                 TraceReader* reader = slot->get();
                 if (!reader) return {};
                 reader->cursor.seek(step);
                 return [this, trace, step, decision = reader->decisionAbout(node)] {
                   if (trace != m_trace || !m_state || step != m_state->step) return;
                   m_decision = decision;
                   m_decidedAt = step;
                   emit decisionChanged();
                   askForDomains();
                 };
               });
}

std::shared_ptr<const DomainsAt> Debugger::domains() const {
  const bool isOfNow = m_domains && m_state && m_domains->step == m_state->step && m_domains->node == m_lookedAt;
  return isOfNow ? m_domains : nullptr;
}

/// Domains come after the decision: they take longer, and stepping on does not wait for them.
void Debugger::askForDomains() {
  if (!m_trace || !m_state || !m_lookedAt.isValid() || domains()) return;
  m_reads.post(kDomainsTag, {},
               [this, slot = m_readerSlot, trace = m_trace, step = m_state->step,
                node = m_lookedAt](const Progress& progress) -> Worker::Completion {
                 TraceReader* reader = slot->get();
                 if (!reader) return {};
                 reader->cursor.seek(step);
                 auto found = reader->domainsOf(node, progress);
                 if (!found) return {};
                 return [this, trace, found = std::move(found)] {
                   if (trace != m_trace) return;
                   m_domains = found;
                   emit domainsChanged();
                 };
               });
}

void Debugger::toConflict(bool forward) {
  m_followsEnd = false;
  m_jumps = true;
  post(walkToConflict(forward));
}

void Debugger::showFirstConflict() {
  m_wantedStep = 0;
  m_followsEnd = false;
  post(walkToFirstConflict());
}

void Debugger::stepInto() {
  m_followsEnd = false;
  post(walkToNextDecision());
}

void Debugger::stepOut() {
  m_followsEnd = false;
  post(walkToCausingDecision());
}

void Debugger::runToBreakpoint(bool forward) {
  m_followsEnd = false;
  m_jumps = true;
  post(walkToBreakpoint(forward, m_breakpoints));
}

void Debugger::toNextChange(NodeId node, bool forward) {
  if (!node.isValid()) return;
  m_followsEnd = false;
  m_jumps = true;
  post(walkToChange(node, forward));
}

void Debugger::applyBreakpoints(std::vector<solve::Breakpoint> breakpoints) {
  m_breakpoints = std::move(breakpoints);
  emit breakpointsChanged();
}

void Debugger::changeBreakpoints(std::vector<solve::Breakpoint> after, const QString& what) {
  m_undo.push(new BreakpointsCommand(*this, std::move(after), what));
}

void Debugger::addBreakpoint(const solve::Breakpoint& breakpoint) {
  auto after = m_breakpoints;
  after.push_back(breakpoint);
  changeBreakpoints(std::move(after), QStringLiteral("add a breakpoint"));
}

void Debugger::removeBreakpoint(int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= m_breakpoints.size()) return;
  auto after = m_breakpoints;
  after.erase(after.begin() + index);
  changeBreakpoints(std::move(after), QStringLiteral("remove a breakpoint"));
}

void Debugger::setBreakpointEnabled(int index, bool isEnabled) {
  if (index < 0 || static_cast<std::size_t>(index) >= m_breakpoints.size()) return;
  auto after = m_breakpoints;
  after[static_cast<std::size_t>(index)].enabled = isEnabled;
  changeBreakpoints(std::move(after),
                    isEnabled ? QStringLiteral("enable a breakpoint") : QStringLiteral("disable a breakpoint"));
}

bool Debugger::hasBreakpoint(NodeId node) const {
  return std::any_of(m_breakpoints.begin(), m_breakpoints.end(),
                     [&](const auto& breakpoint) { return isPlainNodeBreakpoint(breakpoint, node); });
}

void Debugger::toggleBreakpoint(NodeId node) {
  if (!node.isValid()) return;
  for (std::size_t i = 0; i < m_breakpoints.size(); ++i)
    if (isPlainNodeBreakpoint(m_breakpoints[i], node)) return removeBreakpoint(static_cast<int>(i));
  solve::Breakpoint breakpoint;
  breakpoint.node = node;
  addBreakpoint(breakpoint);
}

}  // namespace cleave::views
