#include "solve/candidates/node_answers.h"

#include "solve/problem/structure.h"

#include <algorithm>

namespace cleave::solve {

NodeAnswers::NodeAnswers(const Problem& problem, const Variables& variables)
    : m_problem(problem), m_variables(variables) {
  intern(Placement());
  classify();
}

void NodeAnswers::classify() {
  const Graph& graph = *m_problem.graph;
  std::unordered_map<std::size_t, std::vector<NodeId>> byHash;
  m_classOf.resize(graph.nodes.size(), 0);
  for (NodeId n : m_variables.steps()) {
    m_classOf[n.index()] = static_cast<std::uint32_t>(m_byClass.size());
    // The full menu shapes a layer's options by what comes behind it; pins and redistributions speak of single nodes.
    const bool isOfItsOwn = !m_variables.pins(n).empty() || m_variables.redistributes(n) || m_variables.layer(n);
    if (!isOfItsOwn) {
      auto& bucket = byHash[structureHash(graph, m_variables, n)];
      const auto known = std::find_if(bucket.begin(), bucket.end(),
                                      [&](NodeId other) { return sameStructure(graph, m_variables, other, n); });
      if (known != bucket.end()) {
        m_classOf[n.index()] = m_classOf[known->index()];
        continue;
      }
      bucket.push_back(n);
    }
    m_byClass.emplace_back();
  }
}

NodeAnswers::PlacementId NodeAnswers::intern(const Placement& placement) {
  const auto [found, isNew] = m_ids.try_emplace(placement, static_cast<PlacementId>(m_placements.size()));
  if (isNew) m_placements.push_back(placement);
  return found->second;
}

const NodeAnswers::Answered& NodeAnswers::of(NodeId node, const std::u16string& reads) {
  auto& known = m_byClass[m_classOf[node.index()]];
  if (const auto found = known.find(reads); found != known.end()) return found->second;
  return known.emplace(reads, ask(node, reads)).first->second;
}

NodeAnswers::Answered NodeAnswers::ask(NodeId node, const std::u16string& reads) {
  std::vector<Placement> placements;
  for (const char16_t id : reads) placements.push_back(m_placements[id]);
  const Candidates found = candidatesOf(m_problem, m_variables, node, placements);
  Answered answered;
  for (const Choice& choice : found.open) {
    PlacementIds ids;
    for (const Placement& placement : placementsOf(choice)) ids.push_back(intern(placement));
    if (std::find(answered.writes.begin(), answered.writes.end(), ids) == answered.writes.end())
      answered.writes.push_back(std::move(ids));
  }
  if (reads.empty()) return answered;
  answered.lastCulprit = reads.size() - 1;
  if (!found.open.empty() || found.conflict.culprits.empty()) return answered;
  // Every read of a culprit counts: a node of the same structure may read another value there.
  const auto isCulprit = [&](const Read& read) {
    return std::find(found.conflict.culprits.begin(), found.conflict.culprits.end(), read.value) !=
           found.conflict.culprits.end();
  };
  const auto values = m_variables.reads(node);
  while (answered.lastCulprit > 0 && !isCulprit(values[answered.lastCulprit])) --answered.lastCulprit;
  return answered;
}

}  // namespace cleave::solve
