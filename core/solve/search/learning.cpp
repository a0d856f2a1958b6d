#include "solve/search/learning.h"

#include "solve/search/learned_words.h"
#include "solve/search/no_goods.h"
#include "solve/search/search_report.h"

namespace cleave::solve {
namespace {

/// Which steps place each value, and which values nobody can place otherwise: made at the first conflict.
struct Origins {
  std::vector<std::uint32_t> stepOf;  ///< by ValueId
  std::vector<bool> isGiven;          ///< by ValueId: R in every solution, so no cause of anything

  Origins(const Graph& graph, const Variables& variables)
      : stepOf(graph.values.size(), 0), isGiven(graph.values.size(), false) {
    for (ValueId v : idRange<ValueId>(graph.values.size()))
      stepOf[v.index()] = variables.stepsBefore(variables.decider(graph.value(v).producer));
    for (const NodeId node : variables.steps()) {
      if (variables.layer(node) || !variables.pins(node).empty() || variables.redistributes(node)) continue;
      bool areGiven = true;
      for (const Read& read : variables.reads(node)) areGiven = areGiven && isGiven[read.value.index()];
      // Whole operands make whole results, whatever the operator.
      for (ValueId written : variables.writes(node)) isGiven[written.index()] = areGiven;
    }
  }
};

class LearningSearch {
 public:
  LearningSearch(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                 const Progress& progress)
      : m_problem(problem),
        m_variables(variables),
        m_sink(sink),
        m_report(sink, progress),
        m_assignment(problem, variables, table, sink),
        m_frames(variables.steps().size()),
        m_noGoods(variables.steps().size()) {}

  SolveResult run() {
    const auto end = static_cast<std::uint32_t>(m_frames.size());
    std::uint32_t at = 0;
    while (at < end) {
      if (!arrive(at)) return m_report.stopped();
      if (!findNext(at)) {
        switch (retreat(at)) {
          case Retreat::Nowhere: return exhausted();
          case Retreat::Stop: return m_report.stopped();
          case Retreat::ToTarget: at = m_target; break;
        }
      }
      if (!reportTry(at)) return m_report.stopped();
      ++at;
    }
    return solved();
  }

 private:
  struct Frame {
    Assignment::Options options;
    std::uint32_t next = 0;  ///< ordinal of the candidate to look at next
  };
  enum class Retreat { ToTarget, Nowhere, Stop };

  NodeId nodeAt(std::uint32_t step) const { return m_variables.steps()[step]; }

  bool arrive(std::uint32_t at) {
    Frame& frame = m_frames[at];
    frame.options = m_assignment.look(at);
    frame.next = 0;
    if (!m_failed.empty()) m_failed[at].clear();
    return m_report.visit(nodeAt(at), frame.options.count());
  }

  /// Places the next candidate of `at` that is not known to fail; false when there is none.
  bool findNext(std::uint32_t at) {
    Frame& frame = m_frames[at];
    while (frame.next < frame.options.count()) {
      m_assignment.place(at, *frame.options.row, frame.next++);
      const NoGoods::Entry* known = m_noGoods.broken(at, m_assignment, m_variables.writes(nodeAt(at)));
      if (known == nullptr) return true;
      Explanation& failed = failedAt(at);
      failed.addBefore(at, m_noGoods.facts(*known), m_noGoods.demands(*known));
      failed.origin = known->origin;
    }
    return false;
  }

  /// Why the candidates of `at` before Frame::next fail: facts of earlier steps, demands.
  Explanation& failedAt(std::uint32_t at) {
    if (m_failed.empty()) m_failed.resize(m_frames.size());
    return m_failed[at];
  }

  bool reportTry(std::uint32_t at) {
    const Frame& frame = m_frames[at];
    return m_report.tried(nodeAt(at), frame.next - 1, m_assignment.choiceId(frame.options, frame.next - 1));
  }

  const Origins& origins() {
    if (!m_origins) m_origins.emplace(*m_problem.graph, m_variables);
    return *m_origins;
  }

  void addFact(Explanation& to, ValueId value) {
    if (origins().isGiven[value.index()]) return;
    to.add({origins().stepOf[value.index()], value.raw(), m_assignment.placementId(value)});
  }

  template <class RowOrConflict>
  void addDemands(Explanation& to, std::uint32_t at, const RowOrConflict& of) const {
    m_assignment.forEachDemand(at, of, [&](Demand demand) { to.add({&demand, 1}); });
  }

  /// Why `at` has none but the candidates it has, beside why those fail.
  void addReads(Explanation& to, std::uint32_t at) {
    const auto reads = m_variables.reads(nodeAt(at));
    const CandidateRow& row = *m_frames[at].options.row;
    if (row.decider >= 0) {
      addFact(to, reads[static_cast<std::size_t>(row.decider)].value);
    } else {
      for (const Read& read : reads) addFact(to, read.value);
    }
    addDemands(to, at, row);
  }

  /// Keeps what a conflict tells beside the reason that is followed back: down to the steps that had a choice.
  void learnFurther(const std::vector<ValueId>& culprits, ConflictId origin) {
    Explanation why;
    why.origin = origin;
    for (ValueId culprit : culprits) addFact(why, culprit);
    while (!why.facts.empty()) {
      m_noGoods.add(why);
      const std::uint32_t last = why.facts.back().step;
      if (m_frames[last].options.count() != 1) return;
      while (!why.facts.empty() && why.facts.back().step == last) why.facts.pop_back();
      addReads(why, last);
    }
  }

  /// Nothing is left for `at` on arrival: says so, and puts the reasons into m_why.
  bool explain(std::uint32_t at) {
    const Frame& frame = m_frames[at];
    ConflictId id;
    if (frame.options.count() == 0) {
      const Assignment::Met met = m_assignment.conflict(at, *frame.options.row);
      id = met.id;
      m_conflicts.add(id);
      m_why.clear();
      for (ValueId culprit : met.conflict->record.culprits) addFact(m_why, culprit);
      addDemands(m_why, at, *met.conflict);
      m_why.origin = id;
      for (const auto& further : met.conflict->furtherCulprits) learnFurther(further, id);
    } else {
      m_why = failedAt(at);
      addReads(m_why, at);
      id = m_sink.internConflict(learnedConflict(at));
    }
    return m_report.conflict(nodeAt(at), id);
  }

  ConflictRecord learnedConflict(std::uint32_t at) {
    std::vector<const Choice*> choices;
    for (const Choice& choice : m_frames[at].options.row->open) choices.push_back(&choice);
    ConflictRecord record{nodeAt(at),
                          shownToFail(m_problem, m_variables, nodeAt(at), choices, m_assignment.record(m_why.origin)),
                          {},
                          {}};
    for (const Fact& fact : m_why.facts) record.culprits.emplace_back(fact.value);
    for (const Demand demand : m_why.demands) {
      if (!demand.isRule) record.pins.push_back(m_problem.pins[demand.index].text);
    }
    return record;
  }

  /// From `at`, where nothing is left, to the latest step that can change a reason and has a candidate left; that
  /// candidate is placed.
  Retreat retreat(std::uint32_t at) {
    if (!explain(at)) return Retreat::Stop;
    while (!m_why.facts.empty()) {
      const std::uint32_t target = m_why.facts.back().step;
      m_noGoods.add(m_why);
      Explanation& failed = failedAt(target);
      failed.addBefore(target, m_why.facts, m_why.demands);
      failed.origin = m_why.origin;
      if (findNext(target)) {
        m_target = target;
        return m_report.backtrack(nodeAt(at), at - target, nodeAt(target)) ? Retreat::ToTarget : Retreat::Stop;
      }
      std::swap(m_why, failed);
      addReads(m_why, target);
    }
    return Retreat::Nowhere;
  }

  SolveResult exhausted() {
    SolveResult result = m_report.finish(Outcome::NoSolution, EventType::Exhausted);
    result.causes = m_conflicts.causes(m_assignment);
    result.core = coreOf(m_problem, m_variables, m_why.demands, m_conflicts.records(m_assignment));
    return result;
  }

  SolveResult solved() {
    SolveResult result = m_report.finish(Outcome::Solved, EventType::Solution);
    result.solution = solutionOf(m_problem, m_variables, m_assignment, [this](std::uint32_t step) -> const Choice& {
      return m_frames[step].options.row->open[m_frames[step].next - 1];
    });
    return result;
  }

  const Problem& m_problem;
  const Variables& m_variables;
  TraceSink& m_sink;
  SearchReport m_report;
  Assignment m_assignment;
  std::vector<Frame> m_frames;        ///< by step
  std::vector<Explanation> m_failed;  ///< by step; empty until something fails
  NoGoods m_noGoods;
  std::optional<Origins> m_origins;
  Explanation m_why;           ///< of the failure being followed back
  std::uint32_t m_target = 0;  ///< of the last retreat
  ConflictCounter m_conflicts;
};

}  // namespace

SolveResult solveLearning(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                          const Progress& progress) {
  return LearningSearch(problem, variables, table, sink, progress).run();
}

}  // namespace cleave::solve
