#pragma once
/// Where a search has got to: how each value is placed now, and what each step may take with its operands placed so.
///
/// Rows come from a CandidateTable, which other searches fill and use as well; choices and conflicts are interned in
/// the sink of this search. Looking at a step again with the same operands costs a comparison of their ids. One thread.
///
///     const Assignment::Options options = assignment.look(step);
///     if (options.count == 0) report(assignment.conflict(step, *options.row).id);
///     assignment.place(step, *options.row, 0);  // takes the first candidate
#include "solve/candidates/candidate_table.h"
#include "solve/trace/events.h"

namespace cleave::solve {

class Assignment {
 public:
  /// All must outlive this.
  Assignment(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink);

  /// What a step may take; lives as long as the assignment.
  struct Options {
    const CandidateRow* row = nullptr;
    std::uint32_t firstChoice = 0;  ///< for `choiceId`
    std::uint32_t count = 0;        ///< of candidates
  };
  /// With the operands of `step` placed as they are now.
  Options look(std::uint32_t step);
  ChoiceId choiceId(const Options& options, std::uint32_t ordinal) const {
    return m_choices[options.firstChoice + ordinal];
  }
  /// Places what the candidate gives to the step's results (and to the parameters it owns).
  void place(std::uint32_t step, const CandidateRow& row, std::uint32_t ordinal);

  struct Met {
    ConflictId id;
    const CandidateConflict* conflict = nullptr;
  };
  /// Why `row`, which has no candidates, has none.
  Met conflict(std::uint32_t step, const CandidateRow& row);
  const ConflictRecord& record(ConflictId id) const { return *m_records.at(id.raw()); }
  /// Calls `use` with each of CandidateRow::demands or CandidateConflict::demands of `step`.
  template <class RowOrConflict, class Use>
  void forEachDemand(std::uint32_t step, const RowOrConflict& of, Use use) const {
    for (const std::uint32_t demand : of.demands) use(CandidateTable::demandOf(m_asking, m_steps[step].node, demand));
  }

  PlacementId placementId(ValueId value) const { return m_placed[value.index()]; }
  const Placement& placementOf(ValueId value) const { return m_table.placement(placementId(value)); }

 private:
  struct Step {
    NodeId node;
    std::uint32_t seen = 0;  ///< index into m_seen
    std::uint32_t last = 0;  ///< of the rows seen, the one found last: usually found again
  };
  /// The rows of one class that this search has met; few, so they are looked through in order.
  struct Seen {
    std::uint32_t classIndex = 0;
    std::uint32_t arity = 0;
    std::vector<Options> options;
    Words operands;  ///< arity placement ids for each
  };

  Options meet(const Step& step, Seen& seen);

  const Asking m_asking;
  CandidateTable& m_table;
  TraceSink& m_sink;
  std::vector<PlacementId> m_placed;  ///< by ValueId
  std::vector<Step> m_steps;
  std::vector<ChoiceId> m_choices;                                     ///< of the rows seen, in candidate order
  std::vector<Seen> m_seen;                                            ///< by class
  std::vector<std::shared_ptr<const CandidateRow>> m_rows;             ///< of m_seen, kept alive
  std::unordered_map<std::uint64_t, Met> m_met;                        ///< by step and row
  std::unordered_map<std::uint32_t, const ConflictRecord*> m_records;  ///< by raw ConflictId
  Words m_operands;                                                    ///< of the row that is looked up
};

}  // namespace cleave::solve
