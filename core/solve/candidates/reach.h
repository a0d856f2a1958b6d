#pragma once
/// Which placements each value can have at all: followed from the inputs through the whole graph, step by step, for
/// every combination of what the operands can have.
///
/// Blocks, copies and joint splits come along, which come from layers far away. A value that is decided has its one
/// placement. The results of a step are followed one by one, so a pair of them may be told possible that no candidate
/// gives together: nothing that a plan has is ever left out. Each structure with the same choices of operands is worked
/// out once, so that following again, with more decided, costs little. One thread.
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

  /// All must outlive this.
  Reach(const Asking& asking, CandidateTable& table);

  /// Follows all steps. `decided`: by ValueId, its placement or kUndecided; empty: nothing is.
  void follow(Work& work, std::span<const PlacementId> decided = {});
  /// Follows no more than is needed for what is said of `value`.
  void followTo(ValueId value, Work& work, std::span<const PlacementId> decided = {});

  const Words& of(ValueId value) const { return m_possible[value.index()]; }
  bool has(ValueId value, PlacementId placement) const { return contains(of(value), placement); }
  /// False: too many combinations, or the work ended before; nothing can be said to be out of reach.
  bool isComplete(ValueId value) const { return m_isComplete[value.index()]; }

  /// Whether `node` gives `value` this placement for any of `choices` of its operands, which are in the order of
  /// Variables::reads.
  Answer gives(NodeId node, ValueId value, PlacementId placement, const std::vector<Words>& choices, Work& work);

 private:
  /// What a node's operands can be, each value once, and which of them each read is.
  struct Operands {
    std::vector<ValueId> values;
    std::vector<std::size_t> places;
  };

  Operands operandsOf(NodeId node) const;
  void followStep(NodeId node, std::span<const PlacementId> decided, Work& work);
  void followSteps(const std::vector<NodeId>& steps, std::span<const PlacementId> decided, Work& work);
  /// Calls `use` with the row of each combination; false: too many, or the work ended, or `use` said so.
  template <class Use>
  bool forEachRow(NodeId node, const Operands& operands, const std::vector<const Words*>& choices, Work& work,
                  const Use& use);

  const Asking m_asking;
  CandidateTable& m_table;
  std::vector<std::uint32_t> m_classOf;    ///< by NodeId: CandidateTable::classOf
  std::vector<Words> m_possible;           ///< by ValueId
  std::vector<bool> m_isComplete;          ///< by ValueId
  WordsMap<std::vector<Words>> m_written;  ///< class and operands' choices → placements of each write
};

}  // namespace cleave::solve
