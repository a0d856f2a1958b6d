#pragma once
/// Every placement that each value of a graph can have at all: what explanations let a value lie as when nothing is
/// said of the operator that makes it, and what they try before they say that something cannot be.
///
/// `reachable` follows the rules and the layers' forms forward through the whole graph, for every combination of
/// operands: blocks, replicas and joint splits too, which come from layers far away. What the user demands does not
/// count, so no plan under any demands has a placement that is not reachable. One thread; asks the rules once for each
/// structure.
#include "solve/candidates/node_answers.h"
#include "solve/candidates/work.h"

namespace cleave::solve {

class Domains {
 public:
  Domains(const Problem& problem, Work& work);

  /// False: too many combinations, or the work ended before; nothing can be said to be out of reach.
  bool isComplete(ValueId value) const { return m_isComplete[value.index()]; }

  /// What is reachable, and every even split that divides, and what the layers beside the value know: a wide choice, in
  /// which a chain of reasons can be followed further than what is reachable at the end of it. A source lies whole.
  const std::vector<Placement>& of(ValueId value);

  /// Whether the operator gives `placement` to this value for any of its operands' domains.
  Answer gives(ValueId value, const Placement& placement);

 private:
  using PlacementId = NodeAnswers::PlacementId;
  using PlacementIds = NodeAnswers::PlacementIds;
  /// What a node's operands can be, each value once, and which of them each read is.
  struct Operands {
    std::vector<ValueId> values;
    std::vector<std::size_t> places;
  };

  Operands operandsOf(NodeId node) const;
  void reach(NodeId node);
  /// Calls `use` with what the node writes, for every combination; false: too many, or the work ended, or `use` said
  /// so.
  template <class Use>
  bool forEachAnswer(NodeId node, const Operands& operands, const std::vector<PlacementIds>& choices, const Use& use);
  bool isSource(ValueId value) const;
  bool fits(ValueId value, const Placement& placement) const;

  Problem m_problem;  ///< without demands
  Work& m_work;
  const Variables m_variables;
  NodeAnswers m_answers;
  std::vector<std::vector<Placement>> m_reachable;                          ///< by ValueId
  std::vector<bool> m_isComplete;                                           ///< by ValueId
  std::unordered_map<std::u16string, std::vector<PlacementIds>> m_written;  ///< class and operands' choices → each
                                                                            ///< write's placements
  std::unordered_map<std::uint32_t, std::vector<Placement>> m_domains;      ///< by raw ValueId
};

}  // namespace cleave::solve
