#include "solve/search/learning.h"

#include "solve/search/learned_text.h"
#include "solve/search/no_goods.h"
#include "solve/search/walk.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// The step that places each value, and the values with only one possible placement. They are computed at the first
/// conflict.
struct Origins {
  std::vector<std::uint32_t> stepOf;  ///< by ValueId
  std::vector<bool> isGiven;          ///< by ValueId: R in every solution, so never a cause

  Origins(const ProblemRef& ref, CandidateTable& table)
      : stepOf(ref.problem.graph->values.size(), 0), isGiven(ref.problem.graph->values.size(), false) {
    const Graph& graph = *ref.problem.graph;
    const Variables& variables = ref.variables;
    for (ValueId v : idRange<ValueId>(graph.values.size()))
      stepOf[v.index()] = variables.decidersBefore(variables.decider(graph.value(v).producer));
    for (const NodeId node : variables.deciders()) {
      if (variables.layer(node) || !variables.pins(node).empty() || variables.redistributes(node)) continue;
      const auto reads = variables.reads(node);
      const bool areGiven =
          std::all_of(reads.begin(), reads.end(), [&](const Read& read) { return isGiven[read.value.index()]; });
      if (!areGiven || !isAlwaysReplicated(ref, table, node)) continue;
      for (ValueId written : variables.writes(node)) isGiven[written.index()] = true;
    }
  }

  /// True if replicated operands allow only replicated results. Norms of heads, slopes and copies for heads may be
  /// split although their operands are replicated.
  static bool isAlwaysReplicated(const ProblemRef& ref, CandidateTable& table, NodeId node) {
    const auto& row = table.replicatedRow(ref, node);
    return row->open.size() == 1 &&
           std::all_of(row->writes.begin(), row->writes.end(), [](PlacementId id) { return id == kReplicated; });
  }
};

class LearningSearch {
 public:
  LearningSearch(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                 const Progress& progress)
      : m_problem(problem),
        m_variables(variables),
        m_table(table),
        m_sink(sink),
        m_walk(problem, variables, table, sink, progress),
        m_noGoods(variables.deciders().size()) {}

  SolveResult run() {
    switch (m_walk.run(*this)) {
      case Outcome::Solved: return m_walk.solved();
      case Outcome::NoSolution: return exhausted();
      case Outcome::Stopped: break;
    }
    return m_walk.stopped();
  }

  /// Places the next candidate of `at` that is not known to fail.
  bool placeNext(std::uint32_t at) {
    if (m_walk.placed(at) == 0 && !m_failed.empty()) m_failed[at].clear();
    while (m_walk.placed(at) < m_walk.candidates(at)) {
      m_walk.place(at);
      const NoGoods::Entry* known = m_noGoods.broken(at, m_walk.assignment(), m_variables.writes(m_walk.nodeAt(at)));
      if (known == nullptr) return true;
      Explanation& failed = failedAt(at);
      failed.addBefore(at, m_noGoods.facts(*known), m_noGoods.demands(*known));
      failed.origin = known->origin;
    }
    return false;
  }

  /// Goes back from `at`, which has no candidate left, to the latest step that can change a reason and has a candidate
  /// left.
  Walk::Retreat retreat(std::uint32_t at) {
    if (!explain(at)) return {Walk::Retreat::Kind::Stop};
    while (!m_why.facts.empty()) {
      const std::uint32_t target = m_why.facts.back().step;
      m_noGoods.add(m_why);
      Explanation& failed = failedAt(target);
      failed.addBefore(target, m_why.facts, m_why.demands);
      failed.origin = m_why.origin;
      if (placeNext(target)) return m_walk.reportBacktrack(at, target);
      std::swap(m_why, failed);
      addReads(m_why, target);
    }
    return {Walk::Retreat::Kind::Nowhere};
  }

 private:
  /// The reasons why the tried candidates of `at` fail: facts of earlier steps, and demands.
  Explanation& failedAt(std::uint32_t at) {
    if (m_failed.empty()) m_failed.resize(m_variables.deciders().size());
    return m_failed[at];
  }

  const Origins& origins() {
    if (!m_origins) m_origins.emplace(ProblemRef{m_problem, m_variables}, m_table);
    return *m_origins;
  }

  void addFact(Explanation& to, ValueId value) {
    if (origins().isGiven[value.index()]) return;
    to.add({origins().stepOf[value.index()], value.raw(), m_walk.assignment().placementId(value)});
  }

  template <class RowOrConflict>
  void addDemands(Explanation& to, std::uint32_t at, const RowOrConflict& of) const {
    m_walk.assignment().forEachDemand(at, of, [&](Demand demand) { to.add({&demand, 1}); });
  }

  /// Adds the reasons why `at` has no other candidates.
  void addReads(Explanation& to, std::uint32_t at) {
    const auto reads = m_variables.reads(m_walk.nodeAt(at));
    const CandidateRow& row = m_walk.row(at);
    if (row.decider >= 0) {
      addFact(to, reads[static_cast<std::size_t>(row.decider)].value);
    } else {
      for (const Read& read : reads) addFact(to, read.value);
    }
    addDemands(to, at, row);
  }

  /// Learns no-goods from the other reasons of a conflict, back to the steps that had a choice.
  void learnFurtherReasons(const std::vector<ValueId>& culprits, ConflictId origin) {
    Explanation why;
    why.origin = origin;
    for (ValueId culprit : culprits) addFact(why, culprit);
    while (!why.facts.empty()) {
      m_noGoods.add(why);
      const std::uint32_t last = why.facts.back().step;
      if (m_walk.candidates(last) != 1) return;
      while (!why.facts.empty() && why.facts.back().step == last) why.facts.pop_back();
      addReads(why, last);
    }
  }

  /// Reports that `at` has no candidate left, and stores the reasons in m_why.
  bool explain(std::uint32_t at) {
    ConflictId id;
    if (m_walk.candidates(at) == 0) {
      const Assignment::FoundConflict found = m_walk.countConflict(at);
      id = found.id;
      m_why.clear();
      for (ValueId culprit : found.conflict->record.culprits) addFact(m_why, culprit);
      addDemands(m_why, at, *found.conflict);
      m_why.origin = id;
      for (const auto& further : found.conflict->furtherCulprits) learnFurtherReasons(further, id);
    } else {
      m_why = failedAt(at);
      addReads(m_why, at);
      id = m_sink.internConflict(learnedConflict(at));
    }
    return m_walk.reportConflict(at, id);
  }

  ConflictRecord learnedConflict(std::uint32_t at) {
    std::vector<const Choice*> choices;
    for (const Choice& choice : m_walk.row(at).open) choices.push_back(&choice);
    ConflictRecord record{m_walk.nodeAt(at),
                          learnedFailureText(m_problem, m_variables, m_walk.nodeAt(at), choices,
                                             m_walk.assignment().record(m_why.origin)),
                          {},
                          {}};
    for (const Fact& fact : m_why.facts) record.culprits.emplace_back(fact.value);
    for (const Demand demand : m_why.demands) {
      if (!demand.isRule) record.pins.push_back(m_problem.pins[demand.index].text);
    }
    return record;
  }

  SolveResult exhausted() {
    SolveResult result = m_walk.exhausted();
    result.core = coreOf(m_problem, m_variables, m_why.demands, m_walk.conflicts().records(m_walk.assignment()));
    return result;
  }

  const Problem& m_problem;
  const Variables& m_variables;
  CandidateTable& m_table;
  TraceSink& m_sink;
  Walk m_walk;
  std::vector<Explanation> m_failed;  ///< by step; empty until a candidate fails
  NoGoods m_noGoods;
  std::optional<Origins> m_origins;
  Explanation m_why;  ///< explanation of the current failure
};

}  // namespace

SolveResult solveLearning(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                          const Progress& progress) {
  return LearningSearch(problem, variables, table, sink, progress).run();
}

}  // namespace cleave::solve
