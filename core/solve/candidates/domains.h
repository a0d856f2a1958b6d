#pragma once
/// The domain of each value: all placements that any strategy and rule can give it, whatever the user demands. Found
/// once for a problem; explanations share it.
///
/// A placement that is not in a complete domain is impossible: no plan under any demands has it. One thread.
#include "solve/candidates/reach.h"

namespace cleave::solve {

class Domains {
 public:
  Domains(const Problem& problem, std::shared_ptr<CandidateTable> table, Work& work);
  Domains(const Domains&) = delete;
  Domains& operator=(const Domains&) = delete;

  /// False: too many combinations, or the work ended before; then `of` leaves out what may be possible.
  bool isComplete(ValueId value) const { return m_reach.isComplete(value); }
  bool isComplete() const { return m_isComplete; }
  const Words& of(ValueId value) const { return m_reach.of(value); }
  bool has(ValueId value, const Placement& placement) { return m_reach.has(value, m_table->intern(placement)); }

  /// The domain, and every even split that divides, and what the layers beside the value know: what a value may be
  /// where nothing is said of its operator. In this wide choice a chain of reasons can be followed further than in the
  /// domain at the end of it. A source is replicated.
  const Words& widened(ValueId value);
  /// Whether the operator gives `placement` to this value for any of its operands' widened domains.
  Answer gives(ValueId value, const Placement& placement, Work& work);

  CandidateTable& table() { return *m_table; }

 private:
  void addOfLayer(NodeId node, ValueId value, Words& domain);
  bool isSource(ValueId value) const;
  bool fits(ValueId value, const Placement& placement) const;

  const Problem m_problem;  ///< without demands
  const Variables m_variables;
  const std::shared_ptr<CandidateTable> m_table;
  Reach m_reach;
  bool m_isComplete = true;
  std::unordered_map<std::uint32_t, Words> m_widened;  ///< by raw ValueId
};

}  // namespace cleave::solve
