#include "views/session/trace_reader.h"

#include <algorithm>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kScanEvents = 4096;

bool isFinalState(const pipeline::Solved* solved, const solve::Trace& trace, StepId step) {
  return solved && solved->trace.get() == &trace && solved->result.solution && step == trace.size();
}
}  // namespace

NodeId nodeToFollow(const StepState& state) {
  const NodeId node = state.event && state.step != state.size ? nodeOf(*state.event) : NodeId();
  return node.isValid() && node.index() < state.assignedAt.size() ? node : NodeId();
}

TraceReader::TraceReader(std::shared_ptr<const solve::Trace> trace)
    : cursor(trace), problem(trace->problem()), m_domains(trace) {
  const graph::Graph& graph = *problem->graph;
  m_isLayer.resize(graph.nodes.size());
  for (const NodeId node : idRange<NodeId>(graph.nodes.size()))
    m_isLayer[node.index()] = graph::layerShape(graph, node).has_value();
}

std::shared_ptr<const StepState> TraceReader::stateAt(StepId step, const pipeline::Solved* solved) {
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
    if (!m_isLayer[node.index()]) continue;
    if (const auto taken = trace.choice(*choice); taken.strategy)
      state->strategies[node.index()] = taken.strategy->strategy;
  }
  state->placements.resize(graph.values.size());
  if (isFinalState(solved, trace, state->step)) {
    const auto& placements = solved->result.solution->placements;
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

bool TraceReader::isDecision(const solve::Event& event) const {
  return event.type == solve::EventType::Try && event.node < m_isLayer.size() && m_isLayer[event.node];
}

std::optional<StepId> TraceReader::nextDecision() const {
  std::vector<solve::Event> events(kScanEvents);
  for (StepId first = cursor.step();;) {
    const std::size_t count = cursor.trace().read(first, events);
    if (count == 0) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i)
      if (isDecision(events[i])) return first + i + 1;
    first += count;
  }
}

std::optional<StepId> TraceReader::previousDecision() const {
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

std::optional<StepId> TraceReader::causingDecision() const {
  const auto event = cursor.lastEvent();
  if (!event || event->type != solve::EventType::Conflict) return previousDecision();
  std::optional<StepId> newest;
  for (const ValueId culprit : cursor.trace().conflict(solve::ConflictId(event->detail)).culprits)
    if (const auto at = cursor.assignedAt(problem->graph->value(culprit).producer))
      newest = std::max(newest.value_or(0), *at + 1);
  return newest ? newest : previousDecision();
}

std::shared_ptr<const solve::Decision> TraceReader::decisionAbout(NodeId node) const {
  return node.isValid() ? std::make_shared<const solve::Decision>(solve::decisionAt(cursor, node)) : nullptr;
}

std::shared_ptr<const DomainsAt> TraceReader::domainsOf(NodeId node, const Progress& progress) {
  if (!node.isValid()) return nullptr;
  auto found = std::make_shared<DomainsAt>(DomainsAt{cursor.step(), node, {}});
  for (const ValueId value : problem->graph->node(node).results) {
    found->domains.push_back(m_domains.at(cursor, value, progress));
    if (progress.cancelled()) return nullptr;
  }
  return found;
}

std::shared_ptr<const StepState> solutionState(const pipeline::Solved& solved) {
  const auto& solution = solved.result.solution;
  auto state = std::make_shared<StepState>();
  state->ranks = solved.problem->context.worldSize;
  state->placements.assign(solution->placements.begin(), solution->placements.end());
  state->strategies.resize(solved.problem->graph->nodes.size());
  for (std::size_t i = 0; i < solution->strategies.size(); ++i)
    if (const auto& option = solution->strategies[i]) state->strategies[i] = option->strategy;
  return state;
}

Walk walkTo(StepId step) {
  return {[step](TraceReader&, const Progress&) { return std::optional<StepId>(step); }, {}, {}};
}

Walk walkToConflict(bool forward) {
  const auto find = [forward](TraceReader& reader, const Progress&) {
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
    if (from == to) return QStringLiteral("This is the only conflict of the search.");
    if (forward && to < from)
      return QStringLiteral("No conflict after step %1. This is the first one again.").arg(countText(from));
    if (!forward && to > from)
      return QStringLiteral("No conflict before step %1. This is the last one again.").arg(countText(from));
    return QString();
  };
  return {find, QStringLiteral("This search met no conflict."), note};
}

Walk walkToFirstConflict() {
  return {[](TraceReader& reader, const Progress&) {
            const auto first = reader.cursor.next(solve::EventType::Conflict);
            return first ? first : std::optional<StepId>(reader.cursor.trace().size());
          },
          {},
          {}};
}

Walk walkToNextDecision() {
  return {[](TraceReader& reader, const Progress&) { return reader.nextDecision(); },
          QStringLiteral("No decision after this step."),
          {}};
}

Walk walkToCausingDecision() {
  return {[](TraceReader& reader, const Progress&) { return reader.causingDecision(); },
          QStringLiteral("No decision before this step."),
          {}};
}

Walk walkToBreakpoint(bool forward, std::vector<solve::Breakpoint> breakpoints) {
  const bool isAnySet = std::any_of(breakpoints.begin(), breakpoints.end(), [](const auto& b) { return b.enabled; });
  const auto wasHit = std::make_shared<bool>(false);
  const auto find = [=, breakpoints = std::move(breakpoints)](TraceReader& reader,
                                                              const Progress& progress) -> std::optional<StepId> {
    const auto hit =
        forward ? reader.cursor.next(breakpoints, progress) : reader.cursor.previous(breakpoints, progress);
    *wasHit = hit.has_value();
    if (hit || progress.cancelled()) return hit;
    return forward ? reader.cursor.trace().size() : 0;
  };
  // Without this note the end of the recording would look like a breakpoint.
  const auto note = [=](StepId from, StepId) {
    if (*wasHit) return QString();
    if (!isAnySet)
      return forward ? QStringLiteral("No breakpoint is set. This is the last step.")
                     : QStringLiteral("No breakpoint is set. This is the first step.");
    return (forward ? QStringLiteral("No breakpoint after step %1. This is the last step.")
                    : QStringLiteral("No breakpoint before step %1. This is the first step."))
        .arg(countText(from));
  };
  return {find, {}, note};
}

Walk walkToChange(NodeId node, bool forward) {
  return {[node, forward](TraceReader& reader, const Progress&) {
            return forward ? reader.cursor.nextChangeOf(node) : reader.cursor.previousChangeOf(node);
          },
          QStringLiteral("This value does not change after this step."),
          {}};
}

}  // namespace cleave::views
