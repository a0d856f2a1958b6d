#pragma once
/// The domain of each value: all placements that strategies and rules can give it without the user's demands. It is
/// computed once per problem, and explanations share it.
///
/// A placement outside a complete domain is impossible: no plan has it, whatever the demands are. Use it from one
/// thread.
#include "solve/candidates/reach.h"

namespace cleave::solve {

class Domains {
 public:
  Domains(const Problem& problem, std::shared_ptr<CandidateTable> table, Work& work);
  Domains(const Domains&) = delete;
  Domains& operator=(const Domains&) = delete;

  /// False if there were too many combinations or the work limit was reached. `of` may then lack possible placements.
  bool isComplete(ValueId value) const { return m_reach.isComplete(value); }
  bool isComplete() const { return m_isComplete; }
  const IdTuple& of(ValueId value) const { return m_reach.of(value); }
  bool has(ValueId value, const Placement& placement) { return m_reach.has(value, m_table->intern(placement)); }

  /// The possible placements if the operator of the value is ignored: its domain, every even split that divides, and
  /// the placements that adjacent layers need. Explanations can follow a chain of reasons further with this wider set.
  /// A source is replicated.
  const IdTuple& widened(ValueId value);
  /// True if the operator gives `placement` to this value for placements in the widened domains of its operands.
  Answer gives(ValueId value, const Placement& placement, Work& work);

  CandidateTable& table() { return *m_table; }

 private:
  void addOfLayer(NodeId node, ValueId value, IdTuple& domain);
  bool isSource(ValueId value) const;
  bool fits(ValueId value, const Placement& placement) const;

  const Problem m_problem;  ///< without demands
  const Variables m_variables;
  const std::shared_ptr<CandidateTable> m_table;
  Reach m_reach;
  bool m_isComplete = true;
  std::unordered_map<std::uint32_t, IdTuple> m_widened;  ///< by raw ValueId
};

}  // namespace cleave::solve
