// Time travel: every seek and walk runs on the reads worker, on one cursor that belongs to it.
#include <algorithm>

#include "views/base/text.h"
#include "views/session/document.h"

namespace cleave::views {

namespace {
const QString kSeekTag = QStringLiteral("seek");
constexpr std::size_t kScanEvents = 4096;

/// What the search does at this step; nothing at its end, which shows the whole solution.
NodeId nodeToFollow(const StepState& state) {
  const NodeId node = state.event && state.step != state.size ? nodeOf(*state.event) : NodeId();
  return node.isValid() && node.index() < state.assignedAt.size() ? node : NodeId();
}

/// What the graph looks like in the end: the solution itself, which places parameters too.
struct FinalState {
  std::shared_ptr<const pipeline::Solved> solved;
  bool appliesTo(const solve::Trace& trace, StepId step) const {
    return solved && solved->trace.get() == &trace && solved->result.solution && step == trace.size();
  }
};
}  // namespace

/// What a walk looks for from the wanted step on.
struct Document::Walk {
  std::function<std::optional<StepId>(Reader&, const Progress&)> find;
  QString nothing;                              ///< said when `find` answers nullopt
  std::function<QString(StepId, StepId)> note;  ///< said of the way it went, when not empty; may be null
};

/// The cursor. Touched by requests on the reads worker only, one after the other.
struct Document::Reader {
  explicit Reader(std::shared_ptr<const solve::Trace> trace) : cursor(trace), problem(trace->problem()) {
    const graph::Graph& graph = *problem->graph;
    isLayer.resize(graph.nodes.size());
    for (const NodeId node : idRange<NodeId>(graph.nodes.size()))
      isLayer[node.index()] = graph::layerShape(graph, node).has_value();
  }

  std::shared_ptr<const StepState> stateAt(StepId step, const FinalState& final);
  std::optional<StepId> nextDecision() const;
  std::optional<StepId> previousDecision() const;
  std::optional<StepId> decisionBehind() const;
  std::shared_ptr<const solve::Decision> decisionAbout(NodeId node) const {
    return node.isValid() ? std::make_shared<const solve::Decision>(solve::decisionAt(cursor, node)) : nullptr;
  }
  bool isDecision(const solve::Event& event) const {
    return event.type == solve::EventType::Try && event.node < isLayer.size() && isLayer[event.node];
  }

  solve::Cursor cursor;
  std::shared_ptr<const solve::Problem> problem;
  std::vector<bool> isLayer;
};

std::shared_ptr<const StepState> Document::Reader::stateAt(StepId step, const FinalState& final) {
  cursor.seek(step);
  const graph::Graph& graph = *problem->graph;
  const solve::Trace& trace = cursor.trace();
  auto state = std::make_shared<StepState>();
  state->step = cursor.step();
  state->size = trace.size();
  state->ranks = problem->context.worldSize;
  state->assigned = cursor.assignedCount();
  state->strategies.resize(graph.nodes.size());
  state->assignedAt.assign(graph.nodes.size(), kNoStep);
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto choice = cursor.choiceOf(node);
    if (!choice) continue;
    state->assignedAt[node.index()] = cursor.assignedAt(node).value_or(kNoStep);
    if (!isLayer[node.index()]) continue;
    if (const auto taken = trace.choice(*choice); taken.strategy)
      state->strategies[node.index()] = taken.strategy->strategy;
  }
  state->placements.resize(graph.values.size());
  if (final.appliesTo(trace, state->step)) {
    const auto& placements = final.solved->result.solution->placements;
    for (std::size_t i = 0; i < graph.values.size(); ++i) state->placements[i] = placements[i];
  } else {
    for (const ValueId value : idRange<ValueId>(graph.values.size()))
      state->placements[value.index()] = cursor.placementOf(value);
  }
  state->event = cursor.lastEvent();
  if (state->event) state->eventText = prose(solve::describe(trace, *state->event));
  state->conflict = solve::conflictAt(cursor);
  return state;
}

std::optional<StepId> Document::Reader::nextDecision() const {
  std::vector<solve::Event> events(kScanEvents);
  for (StepId first = cursor.step();;) {
    const std::size_t count = cursor.trace().read(first, events);
    if (count == 0) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i)
      if (isDecision(events[i])) return first + i + 1;
    first += count;
  }
}

std::optional<StepId> Document::Reader::previousDecision() const {
  std::vector<solve::Event> events(kScanEvents);
  for (StepId end = cursor.step() == 0 ? 0 : cursor.step() - 1; end > 0;) {
    const StepId first = end > kScanEvents ? end - kScanEvents : 0;
    const std::size_t count =
        cursor.trace().read(first, std::span(events).first(static_cast<std::size_t>(end - first)));
    for (std::size_t i = count; i-- > 0;)
      if (isDecision(events[i])) return first + i + 1;
    end = first;
  }
  return std::nullopt;
}

/// At a conflict: the newest of the decisions it names. Elsewhere: the decision before.
std::optional<StepId> Document::Reader::decisionBehind() const {
  const auto event = cursor.lastEvent();
  if (!event || event->type != solve::EventType::Conflict) return previousDecision();
  std::optional<StepId> newest;
  for (const ValueId culprit : cursor.trace().conflict(solve::ConflictId(event->detail)).culprits)
    if (const auto at = cursor.assignedAt(problem->graph->value(culprit).producer))
      newest = std::max(newest.value_or(0), *at + 1);
  return newest ? newest : previousDecision();
}

StepId Document::stepCount() const { return m_trace ? m_trace->size() : 0; }

void Document::setTrace(std::shared_ptr<const solve::Trace> trace) {
  m_trace = std::move(trace);
  m_readerSlot.reset();
  m_step.reset();
  m_decision.reset();
  m_wantedStep = 0;
  if (m_trace) {
    // Made on the worker: it looks at every node once.
    auto slot = std::make_shared<std::shared_ptr<Reader>>();
    m_readerSlot = slot;
    m_reads.post(QStringLiteral("reader"), {}, [slot, shared = m_trace](const Progress&) -> Worker::Completion {
      *slot = std::make_shared<Reader>(shared);
      return {};
    });
  }
  emit traceChanged();
  emit stepChanged();
}

void Document::seek(StepId step) {
  if (!m_trace) return;
  m_followsEnd = isLive() && step >= m_trace->size();
  postSeek(step);
}

void Document::postSeek(StepId step) {
  if (!m_trace) return;
  m_wantedStep = std::min<StepId>(step, m_trace->size());
  postWalk({[wanted = m_wantedStep](Reader&, const Progress&) { return std::optional<StepId>(wanted); }, {}, {}});
}

void Document::stepBy(std::int64_t delta) {
  const auto wanted = static_cast<std::int64_t>(m_wantedStep) + delta;
  seek(static_cast<StepId>(std::max<std::int64_t>(0, wanted)));
}

void Document::postWalk(Walk walk) {
  if (!m_trace) return;
  const auto slot = m_readerSlot;
  // The decision is read with the step, so that no panel is behind another.
  m_reads.post(kSeekTag, {},
               [=, this, base = m_wantedStep, final = FinalState{m_solved}, trace = m_trace, focus = m_focus.node,
                follows = m_stepMovesFocus && !m_followsEnd](const Progress& progress) -> Worker::Completion {
                 Reader* reader = slot->get();
                 if (!reader || progress.cancelled()) return {};
                 reader->cursor.seek(base);
                 const auto found = walk.find(*reader, progress);
                 if (!found) {
                   return [this, nothing = walk.nothing, trace, wasCancelled = progress.cancelled()] {
                     if (trace == m_trace && !wasCancelled) emit message(nothing, Severity::Info, About::Step);
                   };
                 }
                 const auto state = reader->stateAt(*found, final);
                 const NodeId moved = follows ? nodeToFollow(*state) : NodeId();
                 const auto decision = reader->decisionAbout(moved.isValid() ? moved : focus);
                 return [=, this] {
                   if (trace != m_trace) return;
                   takeStep(state, decision);
                   const QString note = walk.note ? walk.note(base, state->step) : QString();
                   if (!note.isEmpty()) emit message(note, Severity::Info, About::Step);
                 };
               });
}

void Document::takeStep(std::shared_ptr<const StepState> state, std::shared_ptr<const solve::Decision> decision) {
  m_step = std::move(state);
  m_wantedStep = m_step->step;
  m_decision = std::move(decision);
  m_decidedAt = m_step->step;
  Focus focus = m_focus;
  focus.step = m_step->step;
  const graph::Graph& graph = *m_trace->problem()->graph;
  const NodeId node = nodeToFollow(*m_step);
  const bool movesFocus = std::exchange(m_stepMovesFocus, true) && !m_followsEnd && node.isValid();
  if (movesFocus) {
    focus.node = node;
    focus.value = graph.node(node).results.empty() ? ValueId() : graph.node(node).results.front();
    focus.scope = graph.node(node).scope;
  }
  emit stepChanged();
  if (std::exchange(m_stepJumps, false) && focus != m_focus) keepPlace(focus, true);
  setFocus(focus, false);
  askForDecision();
  followConflict();
  if (movesFocus) emit followRequested();
}

/// The remedies offered are those of the conflict at this step; elsewhere those of the whole search.
void Document::followConflict() {
  if (m_step->conflict)
    m_answers.seekRemedies(m_step->conflict);
  else
    seekRemedies();
}

/// Asked again at each step and focus, unless it came with the step: the newest request counts.
void Document::askForDecision() {
  if (!m_trace || !m_step || !m_focus.node.isValid()) {
    if (std::exchange(m_decision, nullptr)) emit decisionChanged();
    return;
  }
  if (m_decision && m_decision->node == m_focus.node && m_decidedAt == m_step->step)
    return void(emit decisionChanged());
  m_reads.post(QStringLiteral("decision"), {},
               [this, slot = m_readerSlot, trace = m_trace, step = m_step->step,
                node = m_focus.node](const Progress&) -> Worker::Completion {
                 Reader* reader = slot->get();
                 if (!reader) return {};
                 reader->cursor.seek(step);
                 return [this, trace, step, decision = reader->decisionAbout(node)] {
                   if (trace != m_trace || !m_step || step != m_step->step) return;
                   m_decision = decision;
                   m_decidedAt = step;
                   emit decisionChanged();
                 };
               });
}

/// The next conflict, or the first one again after the last (backwards likewise).
void Document::walkToConflict(bool forward) {
  m_followsEnd = false;
  m_stepJumps = true;
  const auto find = [forward](Reader& reader, const Progress&) {
    solve::Cursor& cursor = reader.cursor;
    const auto step = [&] {
      return forward ? cursor.next(solve::EventType::Conflict) : cursor.previous(solve::EventType::Conflict);
    };
    const auto found = step();
    if (found) return found;
    cursor.seek(forward ? 0 : cursor.trace().size());
    return step();
  };
  const auto note = [forward](StepId from, StepId to) {
    if (from == to) return tr("This is the only conflict of the search.");
    if (forward && to < from) return tr("No conflict after step %1: this is the first one again.").arg(countText(from));
    if (!forward && to > from)
      return tr("No conflict before step %1: this is the last one again.").arg(countText(from));
    return QString();
  };
  postWalk({find, tr("This search met no conflict."), note});
}

/// A plan without the search that led to it: its one state is the solution.
void Document::showSolution() {
  const auto& solution = m_solved->result.solution;
  auto state = std::make_shared<StepState>();
  state->ranks = m_solved->problem->context.worldSize;
  state->placements.assign(solution->placements.begin(), solution->placements.end());
  state->strategies.resize(m_model->aten->nodes.size());
  for (std::size_t i = 0; i < solution->strategies.size(); ++i)
    if (const auto& option = solution->strategies[i]) state->strategies[i] = option->strategy;
  m_step = std::move(state);
  m_wantedStep = 0;
  emit stepChanged();
}

void Document::showFirstConflict() {
  m_wantedStep = 0;
  m_followsEnd = false;
  postWalk({[](Reader& reader, const Progress&) {
              const auto first = reader.cursor.next(solve::EventType::Conflict);
              return first ? first : std::optional<StepId>(reader.cursor.trace().size());
            },
            {},
            {}});
}

void Document::stepInto() {
  m_followsEnd = false;
  postWalk(
      {[](Reader& reader, const Progress&) { return reader.nextDecision(); }, tr("No decision after this step."), {}});
}

void Document::stepOut() {
  m_followsEnd = false;
  postWalk({[](Reader& reader, const Progress&) { return reader.decisionBehind(); },
            tr("No decision before this step."),
            {}});
}

void Document::runToBreakpoint(bool forward) {
  m_followsEnd = false;
  m_stepJumps = true;
  postWalk({[forward, breakpoints = m_breakpoints](Reader& reader, const Progress& progress) -> std::optional<StepId> {
              const auto hit =
                  forward ? reader.cursor.next(breakpoints, progress) : reader.cursor.previous(breakpoints, progress);
              if (hit || progress.cancelled()) return hit;
              return forward ? reader.cursor.trace().size() : 0;
            },
            {},
            {}});
}

void Document::toNextChange(NodeId node, bool forward) {
  if (!node.isValid()) return;
  m_followsEnd = false;
  m_stepJumps = true;
  postWalk({[node, forward](Reader& reader, const Progress&) {
              return forward ? reader.cursor.nextChangeOf(node) : reader.cursor.previousChangeOf(node);
            },
            tr("This value does not change any more."),
            {}});
}

}  // namespace cleave::views
