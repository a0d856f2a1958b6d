#pragma once
/// The walk through the steps and its report, shared by the engines that search step by step. Each engine decides which
/// candidates fail and how far it goes back.
///
///     class Search {
///       bool placeNext(std::uint32_t step);  // Walk::place for the next candidate; false without one
///       Retreat retreat(std::uint32_t from);  // then goes back and places the next candidate of an earlier step
///     };
///     switch (walk.run(search)) …
///
/// Use it from one thread.
#include "solve/search/search_report.h"

namespace cleave::solve {

class Walk {
 public:
  /// All arguments must outlive this object.
  Walk(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
       const Progress& progress);

  struct Retreat {
    enum class Kind : std::uint8_t { ToTarget, Nowhere, Stop } kind = Kind::Nowhere;
    std::uint32_t target = 0;
  };
  /// Solved: every step has a candidate. NoSolution: no earlier step can change the conflict. Stopped: the sink or the
  /// user stopped the walk.
  template <class Search>
  Outcome run(Search& search) {
    const auto end = static_cast<std::uint32_t>(m_frames.size());
    for (std::uint32_t at = 0; at < end; ++at) {
      if (!arrive(at)) return Outcome::Stopped;
      if (!search.placeNext(at)) {
        const Retreat back = search.retreat(at);
        if (back.kind == Retreat::Kind::Stop) return Outcome::Stopped;
        if (back.kind == Retreat::Kind::Nowhere) return Outcome::NoSolution;
        at = back.target;
      }
      if (!reportTry(at)) return Outcome::Stopped;
    }
    return Outcome::Solved;
  }

  NodeId nodeAt(std::uint32_t step) const { return m_variables.deciders()[step]; }
  /// The row of `step` for the placements of its operands when the walk arrived there.
  const CandidateRow& row(std::uint32_t step) const { return *m_frames[step].options.row; }
  std::uint32_t candidates(std::uint32_t step) const { return m_frames[step].options.count; }
  /// Number of candidates of `step` that were tried, in their order.
  std::uint32_t placed(std::uint32_t step) const { return m_frames[step].placed; }
  void place(std::uint32_t step) { m_assignment.place(step, row(step), m_frames[step].placed++); }

  /// The conflict of a step without candidates. Each call counts it.
  Assignment::FoundConflict countConflict(std::uint32_t step);
  bool reportConflict(std::uint32_t step, ConflictId id) { return m_report.conflict(nodeAt(step), id); }
  Retreat reportBacktrack(std::uint32_t from, std::uint32_t target);

  const Assignment& assignment() const { return m_assignment; }
  const ConflictCounter& conflicts() const { return m_conflicts; }

  /// Results for the outcomes of `run`.
  SolveResult stopped() { return m_report.stopped(); }
  SolveResult exhausted();
  SolveResult solved();

 private:
  struct Frame {
    Assignment::Options options;
    std::uint32_t placed = 0;
  };

  bool arrive(std::uint32_t step) {
    m_frames[step] = {m_assignment.look(step), 0};
    return m_report.visit(nodeAt(step), candidates(step));
  }
  bool reportTry(std::uint32_t step) {
    const Frame& frame = m_frames[step];
    return m_report.tried(nodeAt(step), frame.placed - 1, m_assignment.choiceId(frame.options, frame.placed - 1));
  }

  const Problem& m_problem;
  const Variables& m_variables;
  SearchReport m_report;
  Assignment m_assignment;
  std::vector<Frame> m_frames;  ///< by step
  ConflictCounter m_conflicts;
};

}  // namespace cleave::solve
