#pragma once
/// A table of the candidates of steps for given placements of their operands. It evaluates rules, layers and pins once
/// for all equal steps.
///
/// Steps of one *class* have equal candidates. They agree in operator, arguments and types (structure.h), in a layer's
/// strategies of the full candidate set (which depend on later nodes), in switched-off rules, in redistributable
/// results, and in pins. A *row* has the candidates for one class and one tuple of operand placements. Keys do not
/// depend on positions in a problem, so one table serves all problems on one graph and context. Searches, `optimal` and
/// explanations share it, and a SolveCache keeps it between solves.
///
///     const std::uint32_t step = table.classOf(ref, node);
///     const auto row = table.row(ref, node, step, operands);  // a hash lookup if the row is known
///     for (std::size_t i = 0; i < row->open.size(); ++i) use(row->open[i], row->writesOf(i));
///
/// Use the table from one thread. Rows are immutable and may outlive the table, and other threads may read them.
#include "base/id_tuple.h"
#include "solve/candidates/candidates.h"

#include <memory>

namespace cleave::solve {

/// Equal placements have equal ids in one table. The id of R is `kReplicated`.
using PlacementId = std::uint32_t;
inline constexpr PlacementId kReplicated = 0;

/// The problem of a call. Both members must outlive the call.
struct ProblemRef {
  const Problem& problem;
  const Variables& variables;
};

struct CandidateRow {
  std::uint32_t index = 0;   ///< number of the row in its table
  IdTuple operands;          ///< placement ids of Variables::reads
  std::vector<Choice> open;  ///< Candidates::open
  IdTuple writes;            ///< placement ids of Variables::writes for each entry of `open`
  std::uint32_t width = 0;   ///< number of Variables::writes
  /// Candidates::demands, as positions in the step's pins (Variables::pins); kRule: its rule is off.
  std::vector<std::uint32_t> demands;
  int decider = -1;  ///< Candidates::decider
  /// If `open` is empty: the last operand of the conflict. The placements of later operands do not matter.
  std::uint32_t lastCulprit = 0;

  static constexpr std::uint32_t kRule = 0xffffffffu;
  std::span<const PlacementId> writesOf(std::size_t ordinal) const { return {writes.data() + ordinal * width, width}; }
};

/// The reason why a step has no candidate, with the names of the step's own values.
struct CandidateConflict {
  ConflictRecord record;
  bool isFixed = false;                ///< Candidates::isFixed
  std::vector<std::uint32_t> demands;  ///< as CandidateRow::demands
  std::vector<std::vector<ValueId>> furtherCulprits;
};

class CandidateTable {
 public:
  CandidateTable();

  /// The class of a step. Steps of one class have equal candidates.
  std::uint32_t classOf(const ProblemRef& ref, NodeId node);
  /// `operands`: placement ids of Variables::reads.
  const std::shared_ptr<const CandidateRow>& row(const ProblemRef& ref, NodeId node, std::uint32_t classIndex,
                                                 std::span<const PlacementId> operands);
  /// The row for replicated operands.
  const std::shared_ptr<const CandidateRow>& replicatedRow(const ProblemRef& ref, NodeId node) {
    return row(ref, node, classOf(ref, node), IdTuple(ref.variables.reads(node).size(), kReplicated));
  }
  /// The conflict of `node` for a row without candidates.
  const CandidateConflict& conflict(const ProblemRef& ref, NodeId node, const CandidateRow& row);
  /// The demand of the problem for an entry of CandidateRow::demands.
  static Demand demandOf(const ProblemRef& ref, NodeId node, std::uint32_t demand);

  PlacementId intern(const Placement& placement);
  const Placement& placement(PlacementId id) const { return m_placements[id]; }
  const std::vector<Placement>& placements() const { return m_placements; }  ///< by id
  std::vector<Placement> placementsOf(std::span<const PlacementId> ids) const;
  /// An order of placements that does not depend on earlier calls.
  bool isBefore(PlacementId a, PlacementId b) const { return m_texts[a] < m_texts[b]; }
  std::uint32_t rows() const { return m_rowCount; }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

 private:
  struct Structure {
    NodeId node;
    std::vector<rules::LayerStrategy> strategies;  ///< strategies of a layer, with the full candidate set
    std::uint32_t index = 0;
  };
  std::uint32_t structureOf(const ProblemRef& ref, NodeId node);
  void addPins(const ProblemRef& ref, NodeId node);

  std::vector<Placement> m_placements;
  std::vector<std::string> m_texts;  ///< texts of the placements
  std::unordered_map<Placement, PlacementId> m_placementIds;
  std::vector<std::uint32_t> m_structureOf;  ///< by NodeId; kNone: not known yet
  std::unordered_map<std::size_t, std::vector<Structure>> m_structures;
  std::vector<std::uint32_t> m_plainClassOf;  ///< by structure, for steps without demands; kNone: not known yet
  std::unordered_map<std::string, std::uint32_t> m_pinIds;
  IdTupleMap<std::uint32_t> m_classes;  ///< classes of steps with demands
  std::uint32_t m_classCount = 0;
  IdTupleMap<std::shared_ptr<const CandidateRow>> m_rows;            ///< by operands and class
  std::unordered_map<std::uint64_t, CandidateConflict> m_conflicts;  ///< by row and node
  std::uint32_t m_rowCount = 0;
  IdTuple m_key;  ///< key of the current lookup
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve
