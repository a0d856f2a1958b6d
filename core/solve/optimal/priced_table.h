#pragma once
/// What each candidate of a step costs: the rows of a CandidateTable with the cost model's figures, asked once for all
/// equal steps.
///
/// Steps are equal here when their candidates are and their static costs too. Everything is found by content, so a
/// table serves any number of problems on one graph with one cost model that differ in pins, switches and budget. One
/// thread; rows are immutable and may be read by others.
#include "solve/candidates/candidate_table.h"
#include "solve/cost/cost_model.h"

namespace cleave::solve::optimal {

/// Whom the table asks.
struct Pricing {
  const Problem& problem;
  const Variables& variables;
  const CostModel& model;
  Asking asking() const { return {problem, variables}; }
};

struct PricedChoice {
  const Choice& choice;                 ///< of PricedRow::row
  std::span<const PlacementId> writes;  ///< one for each of Variables::writes
  /// What it asks of a value's shared collectives, by index into Variables::reads.
  std::vector<std::pair<std::uint32_t, Shares>> asking;
  std::vector<Shares> pays;  ///< of what it writes, one for each of Variables::writes
  StepCost cost;             ///< without what its reads share
  Wide femtoseconds = 0;     ///< of `cost`
  std::int64_t bytes = 0;
  LeastTransient transient;
  std::uint32_t identity = 0;  ///< equal for the same choice beside other operands of the same class
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
  /// Names what CostModel::shared says of a value, whatever its placement; 0: it shares nothing.
  std::uint32_t sharingOf(const Pricing& pricing, ValueId value);
  /// Names what CostModel::heldFor says of a value that has a holder, whatever its placement.
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
  WordsMap<std::uint32_t> m_classes;              ///< candidates' class and static costs
  WordsMap<std::shared_ptr<const PricedRow>> m_rows;
  WordsMap<std::uint32_t> m_identities;
  WordsMap<std::uint32_t> m_sharings, m_holdings;
  Words m_key;  ///< that is looked up
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve::optimal
