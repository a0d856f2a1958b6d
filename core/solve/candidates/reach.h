#pragma once
/// The possible placements of each value. Reach follows them from the inputs through the graph, step by step, for every
/// combination of the operands' placements.
///
/// The placements include blocks, copies and joint splits from distant layers. A decided value has one placement. The
/// results of a step are followed separately, so two possible placements may not occur together, but no placement of a
/// plan is missing. Rows of equal steps are computed once, so it is fast to follow again with more decided values. Use
/// it from one thread.
///
///     Reach reach({problem, variables}, table);
///     reach.follow(work);
///     for (const PlacementId id : reach.of(value)) use(table.placement(id));
#include "solve/candidates/candidate_table.h"
#include "solve/candidates/work.h"

namespace cleave::solve {

class Reach {
 public:
  static constexpr PlacementId kUndecided = 0xffffffffu;

  /// All arguments must outlive this object.
  Reach(const ProblemRef& ref, CandidateTable& table);

  /// Follows all steps. `decided`: by ValueId, its placement or kUndecided; empty if no value is decided.
  void follow(Work& work, std::span<const PlacementId> decided = {});
  /// Follows only the steps that `value` depends on.
  void followTo(ValueId value, Work& work, std::span<const PlacementId> decided = {});

  const IdTuple& of(ValueId value) const { return m_possible[value.index()]; }
  bool has(ValueId value, PlacementId placement) const { return contains(of(value), placement); }
  /// False if there were too many combinations or the work limit was reached. Missing placements may then be possible.
  bool isComplete(ValueId value) const { return m_isComplete[value.index()]; }

  /// Holds if `node` can give `value` this placement. `choices`: possible placements of each operand, in the order of
  /// Variables::reads.
  Answer gives(NodeId node, ValueId value, PlacementId placement, const std::vector<IdTuple>& choices, Work& work);

 private:
  /// The distinct operands of a node, and the index of each read among them.
  struct Operands {
    std::vector<ValueId> values;
    std::vector<std::size_t> places;
  };

  Operands operandsOf(NodeId node) const;
  void followStep(NodeId node, std::span<const PlacementId> decided, Work& work);
  void followSteps(const std::vector<NodeId>& steps, std::span<const PlacementId> decided, Work& work);
  /// Calls `use` with the row of each combination; false if there are too many, the work limit is reached, or `use`
  /// returns false.
  template <class Use>
  bool forEachRow(NodeId node, const Operands& operands, const std::vector<const IdTuple*>& choices, Work& work,
                  const Use& use);

  const ProblemRef m_ref;
  CandidateTable& m_table;
  std::vector<std::uint32_t> m_classOf;        ///< by NodeId: CandidateTable::classOf
  std::vector<IdTuple> m_possible;             ///< by ValueId
  std::vector<bool> m_isComplete;              ///< by ValueId
  IdTupleMap<std::vector<IdTuple>> m_written;  ///< class and operands' choices → placements of each write
};

}  // namespace cleave::solve
