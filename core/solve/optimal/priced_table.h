#pragma once
/// The cost of each candidate of a step: the rows of a CandidateTable with the cost model's figures, computed once for
/// all equal steps.
///
/// Steps are equal if their candidates and their static costs are equal. Keys do not depend on pins, switches or the
/// budget, so one table serves all problems on one graph with one cost model. Use the table from one thread. Other
/// threads may read its rows, which are immutable.
#include "solve/candidates/candidate_table.h"
#include "solve/cost/cost_model.h"

namespace cleave::solve::optimal {

/// The sources of the table's data.
struct Pricing {
  const Problem& problem;
  const Variables& variables;
  const CostModel& model;
  ProblemRef ref() const { return {problem, variables}; }
};

struct PricedChoice {
  const Choice& choice;                 ///< of PricedRow::row
  std::span<const PlacementId> writes;  ///< one per entry of Variables::writes
  /// Shared collectives of its operands that it needs, by index into Variables::reads.
  std::vector<std::pair<std::uint32_t, Shares>> neededShares;
  std::vector<Shares> paidShares;  ///< shared collectives in `cost`, one per entry of Variables::writes
  StepCost cost;                   ///< without the shared collectives of its operands
  Wide femtoseconds = 0;           ///< time of `cost`
  std::int64_t bytes = 0;
  LeastTransient transient;
  std::uint32_t identity = 0;  ///< equal for equal choices of one class, whatever the operands are
};

struct PricedRow {
  std::shared_ptr<const CandidateRow> row;
  std::vector<PricedChoice> open;  ///< as CandidateRow::open
};

class PricedTable {
 public:
  explicit PricedTable(std::shared_ptr<CandidateTable> candidates) : m_candidates(std::move(candidates)) {}

  std::uint32_t classOf(const Pricing& pricing, NodeId node);
  /// `operands`: placement ids of Variables::reads.
  std::shared_ptr<const PricedRow> row(const Pricing& pricing, NodeId node, std::uint32_t classIndex,
                                       std::span<const PlacementId> operands);
  /// Id of the results of CostModel::shared for a value with any placement; 0 if the value has no shared collectives.
  std::uint32_t sharingOf(const Pricing& pricing, ValueId value);
  /// Id of the results of CostModel::heldFor for a value with a holder and any placement.
  std::uint32_t holdingOf(const Pricing& pricing, ValueId value);
  CandidateTable& candidates() const { return *m_candidates; }
  const Placement& placement(PlacementId id) const { return m_candidates->placement(id); }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

 private:
  void addType(const graph::TensorType& type);
  PricedChoice priced(const Pricing& pricing, NodeId node, std::uint32_t classIndex, const CandidateRow& row,
                      std::size_t ordinal, const std::vector<Placement>& reads);
  std::uint32_t identityOf(std::uint32_t classIndex, const PricedChoice& priced);

  std::shared_ptr<CandidateTable> m_candidates;
  std::vector<std::uint32_t> m_candidateClasses;  ///< by class: CandidateTable::classOf
  IdTupleMap<std::uint32_t> m_classes;            ///< by class of the candidates and static costs
  IdTupleMap<std::shared_ptr<const PricedRow>> m_rows;
  IdTupleMap<std::uint32_t> m_identities;
  IdTupleMap<std::uint32_t> m_sharings, m_holdings;
  IdTuple m_key;  ///< key of the current lookup
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve::optimal
