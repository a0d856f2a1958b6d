#include "solve/candidates/reach.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// Largest number of operand combinations of one node.
constexpr std::uint64_t kMostCombinations = 200'000;
constexpr std::uint64_t kCombinationsBetweenPolls = 1 << 8;

}  // namespace

Reach::Reach(const ProblemRef& ref, CandidateTable& table)
    : m_ref(ref),
      m_table(table),
      m_classOf(ref.problem.graph->nodes.size(), 0),
      m_possible(ref.problem.graph->values.size(), IdTuple{kReplicated}),
      m_isComplete(ref.problem.graph->values.size(), true) {
  for (const NodeId node : ref.variables.deciders()) m_classOf[node.index()] = table.classOf(ref, node);
}

Reach::Operands Reach::operandsOf(NodeId node) const {
  Operands operands;
  for (const Read& read : m_ref.variables.reads(node)) {
    const auto known = std::find(operands.values.begin(), operands.values.end(), read.value);
    operands.places.push_back(static_cast<std::size_t>(known - operands.values.begin()));
    if (known == operands.values.end()) operands.values.push_back(read.value);
  }
  return operands;
}

template <class Use>
bool Reach::forEachRow(NodeId node, const Operands& operands, const std::vector<const IdTuple*>& choices, Work& work,
                       const Use& use) {
  if (std::any_of(choices.begin(), choices.end(), [](const IdTuple* c) { return c->empty(); })) return true;
  std::vector<std::size_t> digits(choices.size(), 0);
  IdTuple reads(operands.places.size());
  for (std::uint64_t tried = 1;; ++tried) {
    if (tried % kCombinationsBetweenPolls == 0) {
      work.spend(kCombinationsBetweenPolls);
      if (work.isOver() || tried > kMostCombinations) return false;
    }
    for (std::size_t i = 0; i < reads.size(); ++i)
      reads[i] = (*choices[operands.places[i]])[digits[operands.places[i]]];
    const CandidateRow& row = *m_table.row(m_ref, node, m_classOf[node.index()], reads);
    if (!use(row)) return false;
    // Later operands do not change a conflict that earlier ones cause.
    std::size_t digit = digits.size();
    if (row.open.empty() && !operands.places.empty()) {
      digit = 1 + *std::max_element(operands.places.begin(),
                                    operands.places.begin() + static_cast<std::ptrdiff_t>(row.lastCulprit) + 1);
      std::fill(digits.begin() + static_cast<std::ptrdiff_t>(digit), digits.end(), 0);
    }
    while (digit > 0 && ++digits[digit - 1] == choices[digit - 1]->size()) digits[--digit] = 0;
    if (digit == 0) return true;
  }
}

void Reach::followStep(NodeId node, std::span<const PlacementId> decided, Work& work) {
  const auto writes = m_ref.variables.writes(node);
  const auto isDecided = [&](ValueId v) { return !v.isValid() || decided[v.index()] != kUndecided; };
  if (!decided.empty() && std::all_of(writes.begin(), writes.end(), isDecided)) {
    for (const ValueId v : writes) {
      if (!v.isValid()) continue;
      m_possible[v.index()].assign(1, decided[v.index()]);
      m_isComplete[v.index()] = true;
    }
    return;
  }
  const Operands operands = operandsOf(node);
  bool isComplete = !work.isOver();
  std::vector<const IdTuple*> choices;
  IdTuple key{m_classOf[node.index()]};
  for (const std::size_t place : operands.places) key.push_back(static_cast<std::uint32_t>(place));
  for (const ValueId v : operands.values) {
    isComplete = isComplete && m_isComplete[v.index()];
    const IdTuple& possible = *choices.emplace_back(&m_possible[v.index()]);
    key.push_back(static_cast<std::uint32_t>(possible.size()));
    key.insert(key.end(), possible.begin(), possible.end());
  }
  const std::vector<IdTuple>* written = nullptr;
  if (const auto known = m_written.find(key); known != m_written.end()) {
    written = &known->second;
  } else if (isComplete) {
    std::vector<IdTuple> all(writes.size());
    isComplete = forEachRow(node, operands, choices, work, [&](const CandidateRow& row) {
      for (std::size_t ordinal = 0; ordinal < row.open.size(); ++ordinal) {
        const auto ids = row.writesOf(ordinal);
        for (std::size_t i = 0; i < ids.size(); ++i) addOnce(all[i], ids[i]);
      }
      return true;
    });
    if (isComplete) written = &m_written.emplace(std::move(key), std::move(all)).first->second;
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!writes[i].isValid()) continue;
    m_isComplete[writes[i].index()] = isComplete;
    m_possible[writes[i].index()] = isComplete && written ? (*written)[i] : IdTuple{kReplicated};
  }
}

void Reach::followSteps(const std::vector<NodeId>& steps, std::span<const PlacementId> decided, Work& work) {
  for (const NodeId node : steps) followStep(node, decided, work);
}

void Reach::follow(Work& work, std::span<const PlacementId> decided) {
  followSteps(m_ref.variables.deciders(), decided, work);
}

void Reach::followTo(ValueId value, Work& work, std::span<const PlacementId> decided) {
  const Graph& graph = *m_ref.problem.graph;
  std::vector<bool> isNeeded(graph.nodes.size(), false);
  std::vector<NodeId> needed{m_ref.variables.decider(graph.value(value).producer)};
  isNeeded[needed.front().index()] = true;
  for (std::size_t at = 0; at < needed.size(); ++at) {
    const auto writes = m_ref.variables.writes(needed[at]);
    const auto isDecided = [&](ValueId v) { return !v.isValid() || decided[v.index()] != kUndecided; };
    if (!decided.empty() && std::all_of(writes.begin(), writes.end(), isDecided)) continue;
    for (const Read& read : m_ref.variables.reads(needed[at])) {
      const NodeId maker = m_ref.variables.decider(graph.value(read.value).producer);
      if (isNeeded[maker.index()]) continue;
      isNeeded[maker.index()] = true;
      needed.push_back(maker);
    }
  }
  std::sort(needed.begin(), needed.end());
  followSteps(needed, decided, work);
}

Answer Reach::gives(NodeId node, ValueId value, PlacementId placement, const std::vector<IdTuple>& choices,
                    Work& work) {
  const auto writes = m_ref.variables.writes(node);
  const auto at = static_cast<std::size_t>(std::find(writes.begin(), writes.end(), value) - writes.begin());
  const Operands operands = operandsOf(node);
  std::vector<const IdTuple*> each(operands.values.size(), nullptr);
  for (std::size_t i = 0; i < operands.places.size(); ++i) each[operands.places[i]] = &choices[i];
  bool isFound = false;
  const bool isAll = forEachRow(node, operands, each, work, [&](const CandidateRow& row) {
    for (std::size_t i = 0; i < row.open.size() && !isFound; ++i) isFound = row.writesOf(i)[at] == placement;
    return !isFound;
  });
  return isFound ? Answer::Holds : isAll ? Answer::Fails : Answer::Unknown;
}

}  // namespace cleave::solve
