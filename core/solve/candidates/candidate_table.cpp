#include "solve/candidates/candidate_table.h"

#include "rules/source_splits.h"
#include "solve/problem/structure.h"

#include <algorithm>
#include <limits>

namespace cleave::solve {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// With the full candidate set, the strategies of layers and the splits of sources depend on later nodes. The structure
/// does not include these nodes, nor the name of a cache.
std::vector<rules::LayerStrategy> strategiesOf(const ProblemRef& ref, NodeId node) {
  const auto& layer = ref.variables.layer(node);
  if (!layer) {
    std::vector<rules::LayerStrategy> splits;
    for (rules::SourceSplit& split : rules::sourceSplits(*ref.problem.graph, node, ref.problem.context)) {
      splits.emplace_back().result = split.placement;
      splits.back().reason = std::move(split.reason);
    }
    return splits;
  }
  if (ref.problem.context.candidateSet != rules::CandidateSet::Full) return {};
  return rules::layerStrategies(*ref.problem.graph, node, *layer, ref.problem.context).offered;
}

bool areEqual(const std::vector<rules::LayerStrategy>& a, const std::vector<rules::LayerStrategy>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.strategy == y.strategy && x.input == y.input && x.weight == y.weight && x.bias == y.bias &&
           x.result == y.result && x.down == y.down && x.before == y.before && x.after == y.after &&
           x.reason == y.reason;
  });
}

/// Demands as positions in the step's pins, which are the same in every problem with the same pins.
std::vector<std::uint32_t> localDemands(const ProblemRef& ref, NodeId node, const std::vector<Demand>& demands) {
  std::vector<std::uint32_t> local;
  const auto pins = ref.variables.pins(node);
  for (const Demand& demand : demands) {
    const auto place = std::find(pins.begin(), pins.end(), demand.index) - pins.begin();
    local.push_back(demand.isRule ? CandidateRow::kRule : static_cast<std::uint32_t>(place));
  }
  return local;
}

CandidateConflict kept(const ProblemRef& ref, NodeId node, Candidates&& none) {
  return {std::move(none.conflict), none.isFixed, localDemands(ref, node, none.demands),
          std::move(none.furtherCulprits)};
}

std::uint32_t lastCulprit(std::span<const Read> reads, const std::vector<ValueId>& culprits) {
  if (reads.empty()) return 0;
  auto last = static_cast<std::uint32_t>(reads.size() - 1);
  if (culprits.empty()) return last;
  // Every read of a culprit counts, because a step of the same class may read different values there.
  while (last > 0 && std::find(culprits.begin(), culprits.end(), reads[last].value) == culprits.end()) --last;
  return last;
}

}  // namespace

CandidateTable::CandidateTable() { intern(Placement()); }

PlacementId CandidateTable::intern(const Placement& placement) {
  const auto [found, isNew] = m_placementIds.try_emplace(placement, static_cast<PlacementId>(m_placements.size()));
  if (isNew) {
    m_placements.push_back(placement);
    m_texts.push_back(placement.text());
  }
  return found->second;
}

std::vector<Placement> CandidateTable::placementsOf(std::span<const PlacementId> ids) const {
  std::vector<Placement> placements;
  placements.reserve(ids.size());
  for (const PlacementId id : ids) placements.push_back(m_placements[id]);
  return placements;
}

std::uint32_t CandidateTable::structureOf(const ProblemRef& ref, NodeId node) {
  const Graph& graph = *ref.problem.graph;
  if (m_structureOf.empty()) m_structureOf.assign(graph.nodes.size(), kNone);
  std::uint32_t& known = m_structureOf[node.index()];
  if (known != kNone) return known;
  auto strategies = strategiesOf(ref, node);
  auto& bucket = m_structures[structureHash(graph, ref.variables, node)];
  const auto equal = std::find_if(bucket.begin(), bucket.end(), [&](const Structure& s) {
    return areEqual(s.strategies, strategies) && sameStructure(graph, ref.variables, s.node, node);
  });
  if (equal != bucket.end()) return known = equal->index;
  known = static_cast<std::uint32_t>(m_plainClassOf.size());
  m_plainClassOf.push_back(kNone);
  bucket.push_back({node, std::move(strategies), known});
  return known;
}

void CandidateTable::addPins(const ProblemRef& ref, NodeId node) {
  const auto writes = ref.variables.writes(node);
  for (const std::uint32_t index : ref.variables.pins(node)) {
    const auto id = static_cast<std::uint32_t>(m_pinIds.size());
    m_key.push_back(m_pinIds.try_emplace(ref.problem.pins[index].text, id).first->second);
    const auto& targets = ref.variables.pinTargets(index).values;
    for (const ValueId value : writes) {
      m_key.push_back(value.isValid() && std::binary_search(targets.begin(), targets.end(), value));
    }
  }
}

std::uint32_t CandidateTable::classOf(const ProblemRef& ref, NodeId node) {
  const Variables& variables = ref.variables;
  const std::uint32_t structure = structureOf(ref, node);
  const bool isPlain = variables.pins(node).empty() && !variables.ruleOff(node) && !variables.redistributes(node);
  if (isPlain) {
    std::uint32_t& known = m_plainClassOf[structure];
    if (known == kNone) known = m_classCount++;
    return known;
  }
  m_key.assign({structure, variables.ruleOff(node).has_value()});
  for (const ValueId value : variables.writes(node)) {
    m_key.push_back(!value.isValid() ? 2u : variables.isRedistributable(value) ? 1u : 0u);
  }
  addPins(ref, node);
  const auto [known, isNew] = m_classes.try_emplace(m_key, m_classCount);
  if (isNew) ++m_classCount;
  return known->second;
}

const std::shared_ptr<const CandidateRow>& CandidateTable::row(const ProblemRef& ref, NodeId node,
                                                               std::uint32_t classIndex,
                                                               std::span<const PlacementId> operands) {
  m_key.assign(operands.begin(), operands.end());
  m_key.push_back(classIndex);
  if (const auto known = m_rows.find(m_key); known != m_rows.end()) return known->second;
  IdTuple key = m_key;
  Candidates found = candidatesOf(ref.problem, ref.variables, node, placementsOf(operands));
  auto row = std::make_shared<CandidateRow>();
  row->index = m_rowCount++;
  row->operands.assign(operands.begin(), operands.end());
  row->demands = localDemands(ref, node, found.demands);
  row->decider = found.decider;
  row->width = static_cast<std::uint32_t>(ref.variables.writes(node).size());
  for (const Choice& choice : found.open) {
    forEachPlacement(choice, [&](const Placement& placement) { row->writes.push_back(intern(placement)); });
  }
  m_memoryBytes += sizeof(CandidateRow) + found.open.size() * (sizeof(Choice) + 200) + 2 * key.size() * sizeof(key[0]);
  row->open = std::move(found.open);
  if (row->open.empty()) {
    row->lastCulprit = lastCulprit(ref.variables.reads(node), found.conflict.culprits);
    m_conflicts.emplace(std::uint64_t{row->index} << 32 | node.raw(), kept(ref, node, std::move(found)));
  }
  return m_rows.emplace(std::move(key), std::move(row)).first->second;
}

const CandidateConflict& CandidateTable::conflict(const ProblemRef& ref, NodeId node, const CandidateRow& row) {
  const std::uint64_t key = std::uint64_t{row.index} << 32 | node.raw();
  if (const auto known = m_conflicts.find(key); known != m_conflicts.end()) return known->second;
  Candidates none = candidatesOf(ref.problem, ref.variables, node, placementsOf(row.operands));
  CLEAVE_CHECK(none.open.empty(), "equal steps have equal candidates: {}",
               ref.problem.graph->value(ref.problem.graph->node(node).results[0]).name);
  m_memoryBytes += sizeof(CandidateConflict) + none.conflict.reason.size() + 64;
  return m_conflicts.emplace(key, kept(ref, node, std::move(none))).first->second;
}

Demand CandidateTable::demandOf(const ProblemRef& ref, NodeId node, std::uint32_t demand) {
  if (demand == CandidateRow::kRule) return {.isRule = true, .index = *ref.variables.ruleOff(node)};
  return {.isRule = false, .index = ref.variables.pins(node)[demand]};
}

}  // namespace cleave::solve
