#include "solve/candidates/memo.h"

#include "solve/problem/structure.h"

#include <algorithm>

namespace cleave::solve {

Memo::Memo(const Problem& problem, const Variables& variables, TraceSink& sink)
    : m_problem(problem), m_variables(variables), m_sink(sink), m_placed(problem.graph->values.size(), 0) {
  intern(Placement());
  classify();
}

/// The full menu shapes a layer's options by what comes behind it, which is no part of the step's structure.
bool Memo::mayShare(NodeId node) const {
  const bool looksBehind = m_problem.context.menu == rules::Menu::Full && m_variables.layer(node);
  return m_variables.pins(node).empty() && !m_variables.redistributes(node) && !looksBehind;
}

void Memo::classify() {
  const Graph& graph = *m_problem.graph;
  struct Representative {
    NodeId node;
    std::uint32_t classIndex;
  };
  std::unordered_map<std::size_t, std::vector<Representative>> byHash;
  m_steps.reserve(m_variables.steps().size());
  for (NodeId node : m_variables.steps()) {
    Step step{node, static_cast<std::uint32_t>(m_classes.size())};
    if (mayShare(node)) {
      auto& bucket = byHash[structureHash(graph, m_variables, node)];
      const auto known = std::find_if(bucket.begin(), bucket.end(), [&](const Representative& r) {
        return sameStructure(graph, m_variables, r.node, node);
      });
      if (known == bucket.end()) {
        bucket.push_back({node, step.classIndex});
      } else {
        step.classIndex = known->classIndex;
      }
    }
    if (step.classIndex == m_classes.size()) {
      m_classes.push_back({.arity = static_cast<std::uint32_t>(m_variables.reads(node).size())});
    }
    m_steps.push_back(step);
  }
}

std::uint32_t Memo::intern(const Placement& placement) {
  const auto [found, isNew] = m_placementIds.try_emplace(placement, static_cast<std::uint32_t>(m_placements.size()));
  if (isNew) m_placements.push_back(placement);
  return found->second;
}

std::uint32_t Memo::keep(const std::vector<Demand>& demands) {
  const auto first = static_cast<std::uint32_t>(m_demands.size());
  m_demands.insert(m_demands.end(), demands.begin(), demands.end());
  return first;
}

std::vector<Placement> Memo::operandPlacements(NodeId node) const {
  std::vector<Placement> placements;
  for (const Read& read : m_variables.reads(node)) placements.push_back(placementOf(read.value));
  return placements;
}

Memo::Outcome Memo::look(std::uint32_t index) {
  Step& step = m_steps[index];
  Class& shared = m_classes[step.classIndex];
  const auto reads = m_variables.reads(step.node);
  const auto isKey = [&](std::uint32_t key) {
    const std::uint32_t* ids = shared.keys.data() + static_cast<std::size_t>(key) * shared.arity;
    for (std::uint32_t i = 0; i < shared.arity; ++i) {
      if (ids[i] != m_placed[reads[i].value.index()]) return false;
    }
    return true;
  };
  const auto known = static_cast<std::uint32_t>(shared.outcomes.size());
  if (step.lastKey < known && isKey(step.lastKey)) return shared.outcomes[step.lastKey];
  for (std::uint32_t key = 0; key < known; ++key) {
    if (!isKey(key)) continue;
    step.lastKey = key;
    return shared.outcomes[key];
  }
  step.lastKey = known;
  return ask(step, shared);
}

Memo::Outcome Memo::ask(const Step& step, Class& shared) {
  for (const Read& read : m_variables.reads(step.node)) shared.keys.push_back(m_placed[read.value.index()]);
  Candidates found = candidatesOf(m_problem, m_variables, step.node, operandPlacements(step.node));
  Outcome outcome{static_cast<std::uint32_t>(shared.outcomes.size()), static_cast<std::uint32_t>(m_candidates.size()),
                  static_cast<std::uint32_t>(found.open.size()),      keep(found.demands),
                  static_cast<std::uint32_t>(found.demands.size()),   found.decider};
  for (Choice& choice : found.open) {
    const auto firstWrite = static_cast<std::uint32_t>(m_writes.size());
    for (const Placement& placement : placementsOf(choice)) m_writes.push_back(intern(placement));
    m_candidates.push_back({m_sink.internChoice(choice), firstWrite});
    m_choices.push_back(std::move(choice));
  }
  shared.outcomes.push_back(outcome);
  return outcome;
}

void Memo::place(std::uint32_t step, const Outcome& outcome, std::uint32_t ordinal) {
  const std::uint32_t* ids = m_writes.data() + m_candidates[outcome.firstCandidate + ordinal].firstPlacement;
  for (ValueId value : m_variables.writes(m_steps[step].node)) {
    if (value.isValid()) m_placed[value.index()] = *ids;
    ++ids;
  }
}

Memo::KnownConflict Memo::conflict(std::uint32_t step, const Outcome& outcome) {
  if (m_conflicts.empty()) m_conflicts.resize(m_steps.size());
  for (const KnownConflict& known : m_conflicts[step]) {
    if (known.key == outcome.key) return known;
  }
  const NodeId node = m_steps[step].node;
  Candidates none = candidatesOf(m_problem, m_variables, node, operandPlacements(node));
  CLEAVE_CHECK(none.open.empty(), "equal steps have equal candidates: {}",
               m_problem.graph->value(m_problem.graph->node(node).results[0]).name);
  const KnownConflict known{outcome.key,
                            none.isFixed,
                            m_sink.internConflict(none.conflict),
                            keep(none.demands),
                            static_cast<std::uint32_t>(none.demands.size()),
                            static_cast<std::uint32_t>(m_further.size()),
                            static_cast<std::uint32_t>(none.furtherCulprits.size())};
  std::move(none.furtherCulprits.begin(), none.furtherCulprits.end(), std::back_inserter(m_further));
  m_records.emplace(known.id.raw(), std::move(none.conflict));
  m_conflicts[step].push_back(known);
  return known;
}

}  // namespace cleave::solve
