#include "views/session/selection.h"

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kHistoryLimit = 200;
}

Selection::Selection(const OpenedModel& opened, Debugger& debugger, QObject* parent)
    : QObject(parent), m_opened(opened), m_debugger(debugger) {
  connect(&debugger, &Debugger::stepChanged, this, &Selection::findHitsOfStep);
  connect(&debugger, &Debugger::arrived, this, &Selection::arrive);
}

void Selection::forget() {
  m_hits.clear();
  m_query = {};
  m_history.clear();
  m_historyAt = 0;
  m_focus = {};
}

void Selection::announce() {
  emit focusChanged();
  emit historyChanged();
  emit hitsChanged();
}

void Selection::arrive(NodeId node, bool isJump) {
  Focus focus = m_focus;
  focus.step = m_debugger.state()->step;
  if (node.isValid()) {
    const graph::Node& at = m_debugger.trace()->problem()->graph->node(node);
    focus.node = node;
    focus.value = at.results.empty() ? ValueId() : at.results.front();
    focus.scope = at.scope;
  }
  if (isJump && focus != m_focus) keepPlace(focus, true);
  setFocus(focus, false);
  if (node.isValid()) emit followRequested();
}

/// The history contains the current place too. A jump adds a new place, and so does the first of several single steps.
/// The later single steps only update that place.
void Selection::keepPlace(const Focus& focus, bool isJump) {
  if (!focus.node.isValid() && !focus.scope.isValid()) return;  // no focus
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

void Selection::setFocus(const Focus& focus, bool remember) {
  const bool isNew = !(focus == m_focus);
  m_focus = focus;
  if (isNew) {
    keepPlace(focus, remember);
    emit focusChanged();
    m_debugger.lookAt(m_focus.node);
  }
  if (remember) emit revealRequested();
}

bool Selection::focusNode(NodeId node) {
  const graph::Graph* g = m_opened.graph();
  if (!g || !node.isValid() || node.index() >= g->nodes.size()) return false;
  const graph::Node& n = g->node(node);
  setFocus({node, n.results.empty() ? ValueId() : n.results.front(), n.scope, m_debugger.wantedStep()}, true);
  return true;
}

bool Selection::focusValue(ValueId value) {
  const graph::Graph* g = m_opened.graph();
  if (!g || !value.isValid() || value.index() >= g->values.size()) return false;
  const NodeId node = g->value(value).producer;
  setFocus({node, value, g->node(node).scope, m_debugger.wantedStep()}, true);
  return true;
}

bool Selection::focusScope(ScopeId scope) {
  const graph::Graph* g = m_opened.graph();
  if (!g || !scope.isValid() || scope.index() >= g->scopes.size()) return false;
  setFocus({NodeId(), ValueId(), scope, m_debugger.wantedStep()}, true);
  return true;
}

void Selection::clearFocus() { setFocus({NodeId(), ValueId(), ScopeId(), m_debugger.wantedStep()}, false); }

void Selection::goBack() {
  if (canGoBack()) revisit(m_history[--m_historyAt]);
}

void Selection::goForward() {
  if (canGoForward()) revisit(m_history[++m_historyAt]);
}

void Selection::revisit(const Focus& focus) {
  m_debugger.visit(focus.step);
  m_placeIsStep = false;
  setFocus(focus, false);
  emit revealRequested();
  emit historyChanged();
}

bool Selection::follow(const Target& target) {
  if (const auto* node = std::get_if<NodeId>(&target)) return focusNode(*node);
  if (const auto* value = std::get_if<ValueId>(&target)) return focusValue(*value);
  if (const auto* scope = std::get_if<ScopeId>(&target)) return focusScope(*scope);
  const auto* step = std::get_if<StepTarget>(&target);
  if (!step || !m_debugger.trace()) return false;
  m_debugger.jump(step->step);
  return true;
}

Result<std::size_t> Selection::find(const QString& text) {
  m_hits.clear();
  m_hitAt = 0;
  const auto query = SearchQuery::parse(text);
  m_query = query.value_or(SearchQuery());
  if (query && m_opened.model()) {
    findHits();
    m_hitAt = m_hits.size();  // the first walk goes to the first hit
  }
  emit hitsChanged();
  if (!query) return tl::unexpected<Error>(query.error());
  return m_hits.size();
}

void Selection::findHits() {
  m_hits = m_query.hits(*m_opened.graph(), {[this](ValueId v) { return m_debugger.placementOf(v); },
                                            [this](NodeId n) { return m_debugger.strategyOf(n); }});
}

/// Hits that depend on placements change with the step.
void Selection::findHitsOfStep() {
  if (!m_opened.model() || !m_query.asksForFacts()) return;
  const std::vector<NodeId> before = std::exchange(m_hits, {});
  findHits();
  if (m_hits == before) return;
  m_hitAt = m_hits.size();
  emit hitsChanged();
}

void Selection::walkHits(bool forward) {
  if (m_hits.empty()) return;
  if (m_hitAt >= m_hits.size())
    m_hitAt = forward ? 0 : m_hits.size() - 1;
  else
    m_hitAt = (m_hitAt + (forward ? 1 : m_hits.size() - 1)) % m_hits.size();
  focusNode(m_hits[m_hitAt]);
}

}  // namespace cleave::views
