#include "solve/trace/cursor.h"

#include "graph/op_names.h"
#include "solve/problem/variables.h"
#include "solve/trace/time_index.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// The node of an event; for a Backtrack it is the target.
std::uint32_t subjectOf(const Event& event) { return event.type == EventType::Backtrack ? event.target : event.node; }
bool hasSubject(EventType type) { return !isEnd(type); }

bool scopeCovers(std::string_view prefix, std::string_view path) {
  if (!path.starts_with(prefix)) return false;
  return path.size() == prefix.size() || path[prefix.size()] == '.';
}

bool opMatches(std::string_view wanted, std::string_view op) {
  if (op == wanted) return true;
  return graph::withoutNamespace(op) == wanted || graph::shortName(op) == wanted;
}

/// A breakpoint prepared for millions of events: it finds its nodes once, and compares its placement once per choice.
class Matcher {
 public:
  Matcher(const Trace& trace, const Breakpoint& breakpoint)
      : m_trace(trace), m_breakpoint(breakpoint), m_left(breakpoint.skipHits) {
    const Graph& graph = *trace.problem()->graph;
    m_isFiltered = breakpoint.node.isValid() || !breakpoint.op.empty() || !breakpoint.scopePrefix.empty();
    if (!m_isFiltered) return;
    m_isSubject.assign(graph.nodes.size(), false);
    const NodeId decider = breakpoint.node.isValid() && breakpoint.node.index() < graph.nodes.size()
                               ? trace.variables().decider(breakpoint.node)
                               : breakpoint.node;
    for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
      const graph::Node& node = graph.node(n);
      const bool isNode = !decider.isValid() || n == decider;
      const bool isOp = breakpoint.op.empty() || opMatches(breakpoint.op, graph.opName(node));
      const bool isInScope =
          breakpoint.scopePrefix.empty() || scopeCovers(breakpoint.scopePrefix, graph.scope(node.scope).path);
      m_isSubject[n.index()] = isNode && isOp && isInScope;
    }
  }

  /// True at the event where the breakpoint stops. Counts the hits that it skips.
  bool hits(const Event& event) {
    if (!m_breakpoint.enabled || !matchesEvent(event)) return false;
    if (m_left == 0) return true;
    --m_left;
    return false;
  }

 private:
  bool matchesEvent(const Event& event) {
    if (m_breakpoint.type && event.type != *m_breakpoint.type) return false;
    if (m_breakpoint.minUndone > 0 && (event.type != EventType::Backtrack || event.detail < m_breakpoint.minUndone))
      return false;
    if (m_isFiltered) {
      const std::uint32_t subject = subjectOf(event);
      if (!hasSubject(event.type) || subject >= m_isSubject.size() || !m_isSubject[subject]) return false;
    }
    return !m_breakpoint.placement || (event.type == EventType::Try && givesPlacement(event.detail));
  }

  bool givesPlacement(std::uint32_t choice) {
    while (m_gives.size() <= choice) {
      if (m_gives.size() >= m_trace.choiceCount()) return false;
      const Choice& known = m_trace.choice(ChoiceId(m_gives.size()));
      m_gives.push_back(!known.results.empty() && known.results.front() == *m_breakpoint.placement);
    }
    return m_gives[choice];
  }

  const Trace& m_trace;
  const Breakpoint& m_breakpoint;
  std::uint64_t m_left;
  bool m_isFiltered = false;
  std::vector<bool> m_isSubject;  ///< by NodeId
  std::vector<bool> m_gives;      ///< by ChoiceId
};

/// The index + 1 of the first event from `from` on for which `test(event)` is true.
template <class Test>
std::optional<StepId> searchForward(const Trace& trace, StepId from, const Progress& progress, Test test) {
  std::vector<Event> buffer(kReadEvents);
  for (StepId at = from; !progress.cancelled();) {
    const std::size_t got = trace.read(at, buffer);
    if (got == 0) return std::nullopt;
    for (std::size_t i = 0; i < got; ++i) {
      if (test(buffer[i])) return at + i + 1;
    }
    at += got;
  }
  return std::nullopt;
}

/// The index + 1 of the last event before `end` for which `test(event)` is true.
template <class Test>
std::optional<StepId> searchBackward(const Trace& trace, StepId end, const Progress& progress, Test test) {
  std::vector<Event> buffer(kReadEvents);
  for (StepId at = end; at > 0 && !progress.cancelled();) {
    const std::size_t wanted = std::min<StepId>(buffer.size(), at);
    const std::size_t got = trace.read(at - wanted, std::span(buffer).first(wanted));
    if (got < wanted) return std::nullopt;
    for (std::size_t i = wanted; i-- > 0;) {
      if (test(buffer[i])) return at - wanted + i + 1;
    }
    at -= wanted;
  }
  return std::nullopt;
}

}  // namespace

struct Cursor::Impl {
  std::shared_ptr<const Trace> trace;
  std::shared_ptr<const Graph> graph;  ///< cached, because Trace::problem() counts references at each call
  SearchState state;
  StepId step = 0;

  explicit Impl(std::shared_ptr<const Trace> t)
      : trace(std::move(t)), graph(trace->problem()->graph), state(graph->nodes.size()) {}

  void replayTo(StepId target) {
    std::vector<Event> buffer(std::min<StepId>(kReadEvents, target - step));
    while (step < target) {
      const std::size_t wanted = std::min<StepId>(buffer.size(), target - step);
      const std::size_t got = trace->read(step, std::span(buffer).first(wanted));
      if (got == 0) return;
      for (std::size_t i = 0; i < got; ++i) state.apply(step + i, buffer[i]);
      step += got;
    }
  }

  bool knows(NodeId node) const { return node.index() < graph->nodes.size(); }
  const SearchState::Assigned* find(NodeId node) const {
    return knows(node) ? state.find(trace->variables().decider(node)) : nullptr;
  }

  /// True for events that assign or undo the step `node`. All steps before a Backtrack's own node were assigned.
  static bool changes(const Event& event, std::uint32_t node) {
    if (event.type == EventType::Try) return event.node == node;
    return event.type == EventType::Backtrack && event.target <= node && node < event.node;
  }
};

Cursor::Cursor(std::shared_ptr<const Trace> trace) : m_impl(std::make_unique<Impl>(std::move(trace))) {}
Cursor::~Cursor() = default;
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor& Cursor::operator=(Cursor&&) noexcept = default;

const Trace& Cursor::trace() const { return *m_impl->trace; }
std::shared_ptr<const Trace> Cursor::sharedTrace() const { return m_impl->trace; }
StepId Cursor::step() const { return m_impl->step; }

void Cursor::seek(StepId step) {
  constexpr StepId kNear = 1 << 10;  // up to this number of events, a replay is cheaper than a copy of a snapshot
  const StepId target = std::min(step, m_impl->trace->size());
  if (target < m_impl->step || target - m_impl->step > kNear) {
    const auto snapshot = m_impl->trace->timeIndex().snapshotBefore(target);
    if (target < m_impl->step || snapshot->step > m_impl->step) {
      m_impl->state.restore(snapshot->stack);
      m_impl->step = snapshot->step;
    }
  }
  m_impl->replayTo(target);
}

std::optional<Event> Cursor::lastEvent() const {
  Event event;
  if (m_impl->step == 0 || m_impl->trace->read(m_impl->step - 1, {&event, 1}) == 0) return std::nullopt;
  return event;
}

std::optional<Placement> Cursor::placementOf(ValueId value) const {
  const Trace& trace = *m_impl->trace;
  const Graph& graph = *m_impl->graph;
  if (value.index() >= graph.values.size()) return std::nullopt;
  const NodeId producer = graph.value(value).producer;
  const NodeId decider = trace.variables().decider(producer);
  const auto* assigned = m_impl->state.find(decider);
  if (!assigned) return std::nullopt;
  const Choice& choice = trace.choice(ChoiceId(assigned->choice));
  if (decider == producer) {
    const std::uint32_t index = graph.value(value).resultIndex;
    return index < choice.results.size() ? std::optional(choice.results[index]) : std::nullopt;
  }
  if (!choice.strategy) return std::nullopt;
  const auto& layer = *trace.variables().layer(decider);
  if (layer.down == value) return choice.strategy->down;
  return layer.weight == value ? choice.strategy->weight : choice.strategy->bias;
}

std::optional<ChoiceId> Cursor::choiceOf(NodeId node) const {
  const auto* assigned = m_impl->find(node);
  return assigned ? std::optional(ChoiceId(assigned->choice)) : std::nullopt;
}

std::optional<StepId> Cursor::assignedAt(NodeId node) const {
  const auto* assigned = m_impl->find(node);
  return assigned ? std::optional(assigned->step) : std::nullopt;
}

std::size_t Cursor::assignedCount() const { return m_impl->state.stack().size(); }

std::vector<NodeId> Cursor::changedSince(const Cursor& other) const {
  const auto& here = m_impl->state.stack();
  const auto& there = other.m_impl->state.stack();
  std::vector<NodeId> changed;
  std::size_t i = 0, j = 0;
  while (i < here.size() || j < there.size()) {
    const bool isHere = i < here.size() && (j >= there.size() || here[i].node <= there[j].node);
    const bool isThere = j < there.size() && (i >= here.size() || there[j].node <= here[i].node);
    const std::uint32_t node = isHere ? here[i].node : there[j].node;
    if (!isHere || !isThere || here[i].choice != there[j].choice) changed.emplace_back(node);
    i += isHere;
    j += isThere;
  }
  return changed;
}

std::optional<StepId> Cursor::next(const std::vector<Breakpoint>& breakpoints, const Progress& progress) const {
  std::vector<Matcher> matchers;
  for (const Breakpoint& b : breakpoints) matchers.emplace_back(trace(), b);
  return searchForward(trace(), step(), progress, [&](const Event& event) {
    bool isHit = false;
    for (Matcher& m : matchers) isHit |= m.hits(event);
    return isHit;
  });
}

std::optional<StepId> Cursor::previous(const std::vector<Breakpoint>& breakpoints, const Progress& progress) const {
  std::vector<Matcher> matchers;
  for (const Breakpoint& b : breakpoints) matchers.emplace_back(trace(), b);
  return searchBackward(trace(), step() > 0 ? step() - 1 : 0, progress, [&](const Event& event) {
    bool isHit = false;
    for (Matcher& m : matchers) isHit |= m.hits(event);
    return isHit;
  });
}

std::optional<StepId> Cursor::next(const Breakpoint& breakpoint, const Progress& progress) const {
  return next(std::vector{breakpoint}, progress);
}
std::optional<StepId> Cursor::previous(const Breakpoint& breakpoint, const Progress& progress) const {
  return previous(std::vector{breakpoint}, progress);
}

std::optional<StepId> Cursor::next(EventType type) const {
  return searchForward(trace(), step(), {}, [&](const Event& event) { return event.type == type; });
}
std::optional<StepId> Cursor::previous(EventType type) const {
  return searchBackward(trace(), step() > 0 ? step() - 1 : 0, {},
                        [&](const Event& event) { return event.type == type; });
}

std::optional<StepId> Cursor::nextChangeOf(NodeId node) const {
  if (!m_impl->knows(node)) return std::nullopt;
  const std::uint32_t subject = trace().variables().decider(node).raw();
  return searchForward(trace(), step(), {}, [&](const Event& event) { return Impl::changes(event, subject); });
}
std::optional<StepId> Cursor::previousChangeOf(NodeId node) const {
  if (!m_impl->knows(node)) return std::nullopt;
  const std::uint32_t subject = trace().variables().decider(node).raw();
  return searchBackward(trace(), step() > 0 ? step() - 1 : 0, {},
                        [&](const Event& event) { return Impl::changes(event, subject); });
}

}  // namespace cleave::solve
