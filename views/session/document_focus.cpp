// Focus with its history, breakpoints with their undo, and the search box.
#include <QUndoCommand>

#include "views/base/text.h"
#include "views/session/document.h"

namespace cleave::views {

namespace {
constexpr std::size_t kHistoryLimit = 200;

class BreakpointsCommand : public QUndoCommand {
 public:
  BreakpointsCommand(Document& document, std::vector<solve::Breakpoint> after, const QString& text)
      : QUndoCommand(text), m_document(document), m_before(document.breakpoints()), m_after(std::move(after)) {}
  void undo() override { m_document.applyBreakpoints(m_before); }
  void redo() override { m_document.applyBreakpoints(m_after); }

 private:
  Document& m_document;
  std::vector<solve::Breakpoint> m_before, m_after;
};

bool isPlainNodeBreakpoint(const solve::Breakpoint& breakpoint, NodeId node) {
  return breakpoint.node == node && !breakpoint.type && !breakpoint.placement && breakpoint.op.empty() &&
         breakpoint.scopePrefix.empty();
}
}  // namespace

/// The present place stands in the history too. A jump puts the next one behind it, and so does the first of several
/// single steps; the others only move that one.
void Document::keepPlace(const Focus& focus, bool isJump) {
  if (!focus.node.isValid() && !focus.scope.isValid()) return;  // nothing is in focus
  const bool isSame = !m_history.empty() && m_history[m_historyAt].node == focus.node;
  if (!isJump && !m_history.empty() && (isSame || m_placeIsStep)) {
    m_history[m_historyAt] = focus;
    return;
  }
  m_placeIsStep = !isJump && !m_history.empty();
  if (!m_history.empty()) m_history.resize(m_historyAt + 1);
  m_history.push_back(focus);
  if (m_history.size() > kHistoryLimit) m_history.erase(m_history.begin());
  m_historyAt = m_history.size() - 1;
  emit historyChanged();
}

void Document::setFocus(const Focus& focus, bool remember) {
  const bool isNew = !(focus == m_focus);
  m_focus = focus;
  if (isNew) keepPlace(focus, remember);
  if (isNew) {
    emit focusChanged();
    askForDecision();
    m_answers.analyse(m_focus.node, m_focus.value);
  }
  if (remember) emit revealRequested();
}

void Document::focusNode(NodeId node) {
  const graph::Graph* g = graph();
  if (!g || !node.isValid() || node.index() >= g->nodes.size()) return;
  const graph::Node& n = g->node(node);
  setFocus({node, n.results.empty() ? ValueId() : n.results.front(), n.scope, m_wantedStep}, true);
}

void Document::focusValue(ValueId value) {
  const graph::Graph* g = graph();
  if (!g || !value.isValid() || value.index() >= g->values.size()) return;
  const NodeId node = g->value(value).producer;
  setFocus({node, value, g->node(node).scope, m_wantedStep}, true);
}

void Document::focusScope(ScopeId scope) {
  const graph::Graph* g = graph();
  if (!g || !scope.isValid() || scope.index() >= g->scopes.size()) return;
  setFocus({NodeId(), ValueId(), scope, m_wantedStep}, true);
}

void Document::clearFocus() { setFocus({NodeId(), ValueId(), ScopeId(), m_wantedStep}, false); }

void Document::goBack() {
  if (canGoBack()) revisit(m_history[--m_historyAt]);
}

void Document::goForward() {
  if (canGoForward()) revisit(m_history[++m_historyAt]);
}

void Document::revisit(const Focus& focus) {
  if (m_trace && focus.step != m_wantedStep) {
    m_followsEnd = false;
    m_stepMovesFocus = false;
    postSeek(focus.step);
  }
  m_placeIsStep = false;
  setFocus(focus, false);
  emit revealRequested();
  emit historyChanged();
}

bool Document::follow(const QString& target) {
  const graph::Graph* g = graph();
  const qsizetype colon = target.indexOf(QLatin1Char(':'));
  if (!g || colon < 0) return false;
  const QString kind = target.left(colon), rest = target.mid(colon + 1);
  bool isNumber = false;
  const qulonglong number = rest.toULongLong(&isNumber);
  if (kind == QLatin1String("node") && isNumber && number < g->nodes.size()) {
    focusNode(NodeId(number));
  } else if (kind == QLatin1String("step") && isNumber && m_trace) {
    m_stepJumps = true;
    seek(number);
  } else if (kind == QLatin1String("value")) {
    const ValueId value = g->findValue(toStd(rest));
    if (!value.isValid()) return false;
    focusValue(value);
  } else if (kind == QLatin1String("scope")) {
    const ScopeId scope = g->findScope(toStd(rest));
    if (!scope.isValid()) return false;
    focusScope(scope);
  } else {
    return false;
  }
  return true;
}

void Document::applyBreakpoints(std::vector<solve::Breakpoint> breakpoints) {
  m_breakpoints = std::move(breakpoints);
  emit breakpointsChanged();
}

void Document::addBreakpoint(const solve::Breakpoint& breakpoint) {
  auto after = m_breakpoints;
  after.push_back(breakpoint);
  m_undo.push(new BreakpointsCommand(*this, std::move(after), tr("add a breakpoint")));
}

void Document::removeBreakpoint(int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= m_breakpoints.size()) return;
  auto after = m_breakpoints;
  after.erase(after.begin() + index);
  m_undo.push(new BreakpointsCommand(*this, std::move(after), tr("remove a breakpoint")));
}

void Document::setBreakpointEnabled(int index, bool enabled) {
  if (index < 0 || static_cast<std::size_t>(index) >= m_breakpoints.size()) return;
  auto after = m_breakpoints;
  after[static_cast<std::size_t>(index)].enabled = enabled;
  m_undo.push(new BreakpointsCommand(*this, std::move(after),
                                     enabled ? tr("enable a breakpoint") : tr("disable a breakpoint")));
}

bool Document::hasBreakpoint(NodeId node) const {
  return std::any_of(m_breakpoints.begin(), m_breakpoints.end(),
                     [&](const auto& b) { return isPlainNodeBreakpoint(b, node); });
}

void Document::toggleBreakpoint(NodeId node) {
  if (!node.isValid()) return;
  for (std::size_t i = 0; i < m_breakpoints.size(); ++i)
    if (isPlainNodeBreakpoint(m_breakpoints[i], node)) return removeBreakpoint(static_cast<int>(i));
  solve::Breakpoint breakpoint;
  breakpoint.node = node;
  addBreakpoint(breakpoint);
}

std::optional<rules::Placement> Document::placementOf(ValueId value) const {
  if (!m_step || !value.isValid() || value.index() >= m_step->placements.size()) return std::nullopt;
  return m_step->placements[value.index()];
}

std::optional<rules::Strategy> Document::strategyOf(NodeId node) const {
  if (!m_step || !node.isValid() || node.index() >= m_step->strategies.size()) return std::nullopt;
  return m_step->strategies[node.index()];
}

Result<std::size_t> Document::search(const QString& text) {
  m_hits.clear();
  m_hitAt = 0;
  const auto query = SearchQuery::parse(text);
  m_query = query.value_or(SearchQuery());
  if (query && m_model) {
    findHits();
    m_hitAt = m_hits.size();  // the first walk goes to the first hit
  }
  emit searchChanged();
  if (!query) return tl::unexpected<Error>(query.error());
  return m_hits.size();
}

void Document::findHits() {
  m_hits = m_query.hits(*graph(),
                        {[this](ValueId v) { return placementOf(v); }, [this](NodeId n) { return strategyOf(n); }});
}

/// What lies otherwise at another step is found otherwise there.
void Document::findHitsOfStep() {
  if (!m_model || !m_query.asksForFacts()) return;
  const std::vector<NodeId> before = std::exchange(m_hits, {});
  findHits();
  if (m_hits == before) return;
  m_hitAt = m_hits.size();
  emit searchChanged();
}

void Document::walkHits(bool forward) {
  if (m_hits.empty()) return;
  if (m_hitAt >= m_hits.size())
    m_hitAt = forward ? 0 : m_hits.size() - 1;
  else
    m_hitAt = (m_hitAt + (forward ? 1 : m_hits.size() - 1)) % m_hits.size();
  focusNode(m_hits[m_hitAt]);
}

}  // namespace cleave::views
