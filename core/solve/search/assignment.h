#pragma once
/// The current position of a search: the placement of each value, and the candidates of each step for these placements.
///
/// Rows come from a CandidateTable, which other searches share. Choices and conflicts are interned in the sink of this
/// search. A second look at a step with the same operands costs one comparison of their ids. Use it from one thread.
///
///     const Assignment::Options options = assignment.look(step);
///     if (options.count == 0) report(assignment.conflict(step, *options.row).id);
///     assignment.place(step, *options.row, 0);  // applies the first candidate
#include "solve/candidates/candidate_table.h"
#include "solve/trace/events.h"

namespace cleave::solve {

class Assignment {
 public:
  /// All arguments must outlive this object.
  Assignment(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink);

  /// The candidates of a step; valid while the assignment exists.
  struct Options {
    const CandidateRow* row = nullptr;
    std::uint32_t firstChoice = 0;  ///< base index for `choiceId`
    std::uint32_t count = 0;        ///< number of candidates
  };
  /// The candidates of `step` for the current placements of its operands.
  Options look(std::uint32_t step);
  ChoiceId choiceId(const Options& options, std::uint32_t ordinal) const {
    return m_choices[options.firstChoice + ordinal];
  }
  /// Applies the placements of the candidate to the step's results and to the parameters that it owns.
  void place(std::uint32_t step, const CandidateRow& row, std::uint32_t ordinal);

  struct FoundConflict {
    ConflictId id;
    const CandidateConflict* conflict = nullptr;
  };
  /// The conflict of `row`, which has no candidates.
  FoundConflict conflict(std::uint32_t step, const CandidateRow& row);
  const ConflictRecord& record(ConflictId id) const { return *m_records.at(id.raw()); }
  /// Calls `use` with each of CandidateRow::demands or CandidateConflict::demands of `step`.
  template <class RowOrConflict, class Use>
  void forEachDemand(std::uint32_t step, const RowOrConflict& of, Use use) const {
    for (const std::uint32_t demand : of.demands) use(CandidateTable::demandOf(m_ref, m_steps[step].node, demand));
  }

  PlacementId placementId(ValueId value) const { return m_placed[value.index()]; }
  const Placement& placementOf(ValueId value) const { return m_table.placement(placementId(value)); }

 private:
  struct Step {
    NodeId node;
    std::uint32_t seen = 0;  ///< index into m_seen
    std::uint32_t last = 0;  ///< index of the row found last, which the next look usually finds again
  };
  /// The rows of one class that this search has used. They are few, so a linear search is fast.
  struct Seen {
    std::uint32_t classIndex = 0;
    std::uint32_t arity = 0;
    std::vector<Options> options;
    IdTuple operands;  ///< `arity` placement ids per entry of `options`
  };

  Options addOptions(const Step& step, Seen& seen);

  const ProblemRef m_ref;
  CandidateTable& m_table;
  TraceSink& m_sink;
  std::vector<PlacementId> m_placed;  ///< by ValueId
  std::vector<Step> m_steps;
  std::vector<ChoiceId> m_choices;                                     ///< of the rows used, in candidate order
  std::vector<Seen> m_seen;                                            ///< by class
  std::vector<std::shared_ptr<const CandidateRow>> m_rows;             ///< rows in m_seen, kept alive
  std::unordered_map<std::uint64_t, FoundConflict> m_known;            ///< by step and row
  std::unordered_map<std::uint32_t, const ConflictRecord*> m_records;  ///< by raw ConflictId
  IdTuple m_operands;                                                  ///< operands of the current lookup
};

}  // namespace cleave::solve
