#include "views/session/splits.h"

namespace cleave::views {

Splits::Splits(const OpenedModel& opened, const Debugger& debugger, QObject* parent)
    : QObject(parent), m_opened(opened), m_debugger(debugger) {
  connect(&debugger, &Debugger::stepChanged, this, &Splits::follow);
}

void Splits::applyOpened() {
  m_state.reset();
  const auto& model = m_opened.model();
  m_counts = model ? std::make_shared<SplitCounts>(std::make_shared<const ModuleTree>(model->aten)) : nullptr;
  m_shared = m_counts;
}

/// Compares with the counted state, because states in between may never have arrived.
void Splits::follow() {
  const auto& state = m_debugger.state();
  if (!m_counts || state == m_state) return;
  static const StepState kNothing;
  const graph::Graph& graph = m_counts->graph();
  std::vector<NodeId> nodes = changedNodes(graph, m_state.get(), state ? *state : kNothing);
  const bool hasOtherRanks = (state ? state->ranks : 0) != m_counts->ranks();
  m_state = state;
  // A different rank count can change the counts without new placements. After a jump a full recount is faster than an
  // update.
  if (hasOtherRanks || nodes.size() > graph.nodes.size() / 2) {
    m_counts->reset(source());
    nodes.clear();
    for (const NodeId node : idRange<NodeId>(graph.nodes.size())) nodes.push_back(node);
  } else {
    nodes = m_counts->update(nodes);
  }
  if (!nodes.empty()) emit changed(nodes);
}

SplitSource Splits::source() const {
  if (!m_state) return {};
  return {[this](ValueId value) { return m_debugger.placementOf(value); },
          [this](NodeId node) { return m_debugger.strategyOf(node); }, m_state->ranks};
}

}  // namespace cleave::views
