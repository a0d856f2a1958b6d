#include "solve/search/assignment.h"

namespace cleave::solve {

Assignment::Assignment(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink)
    : m_ref{problem, variables}, m_table(table), m_sink(sink), m_placed(problem.graph->values.size(), kReplicated) {
  constexpr std::uint32_t kNone = 0xffffffffu;
  std::vector<std::uint32_t> seenOf;  // by class
  m_steps.reserve(variables.deciders().size());
  for (const NodeId node : variables.deciders()) {
    const std::uint32_t classIndex = table.classOf(m_ref, node);
    if (classIndex >= seenOf.size()) seenOf.resize(classIndex + 1, kNone);
    if (seenOf[classIndex] == kNone) {
      seenOf[classIndex] = static_cast<std::uint32_t>(m_seen.size());
      m_seen.push_back({classIndex, static_cast<std::uint32_t>(variables.reads(node).size()), {}, {}});
    }
    m_steps.push_back({node, seenOf[classIndex]});
  }
}

Assignment::Options Assignment::look(std::uint32_t index) {
  Step& step = m_steps[index];
  Seen& seen = m_seen[step.seen];
  const auto reads = m_ref.variables.reads(step.node);
  const auto isAsPlaced = [&](std::uint32_t at) {
    const PlacementId* ids = seen.operands.data() + std::size_t{at} * seen.arity;
    for (std::uint32_t i = 0; i < seen.arity; ++i) {
      if (ids[i] != m_placed[reads[i].value.index()]) return false;
    }
    return true;
  };
  const auto known = static_cast<std::uint32_t>(seen.options.size());
  if (step.last < known && isAsPlaced(step.last)) return seen.options[step.last];
  for (std::uint32_t at = 0; at < known; ++at) {
    if (!isAsPlaced(at)) continue;
    step.last = at;
    return seen.options[at];
  }
  step.last = known;
  return addOptions(step, seen);
}

Assignment::Options Assignment::addOptions(const Step& step, Seen& seen) {
  m_operands.clear();
  for (const Read& read : m_ref.variables.reads(step.node)) m_operands.push_back(m_placed[read.value.index()]);
  const auto& row = m_rows.emplace_back(m_table.row(m_ref, step.node, seen.classIndex, m_operands));
  seen.operands.insert(seen.operands.end(), m_operands.begin(), m_operands.end());
  seen.options.push_back(
      {row.get(), static_cast<std::uint32_t>(m_choices.size()), static_cast<std::uint32_t>(row->open.size())});
  for (const Choice& choice : row->open) m_choices.push_back(m_sink.internChoice(choice));
  return seen.options.back();
}

void Assignment::place(std::uint32_t step, const CandidateRow& row, std::uint32_t ordinal) {
  const PlacementId* placement = row.writesOf(ordinal).data();
  for (const ValueId value : m_ref.variables.writes(m_steps[step].node)) {
    if (value.isValid()) m_placed[value.index()] = *placement;
    ++placement;
  }
}

Assignment::FoundConflict Assignment::conflict(std::uint32_t step, const CandidateRow& row) {
  const auto [known, isNew] = m_known.try_emplace(std::uint64_t{step} << 32 | row.index);
  if (isNew) {
    const CandidateConflict& conflict = m_table.conflict(m_ref, m_steps[step].node, row);
    known->second = {m_sink.internConflict(conflict.record), &conflict};
    m_records.emplace(known->second.id.raw(), &conflict.record);
  }
  return known->second;
}

}  // namespace cleave::solve
