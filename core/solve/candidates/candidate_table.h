#pragma once
/// What steps may take for given placements of what they read: asked of rules, layers and pins once for all equal
/// steps.
///
/// Steps of one *class* differ in nothing that candidates depend on: operator, arguments and types (structure.h), the
/// strategies of a layer of the full candidate set (which look at what comes behind it), the switch of the rule, which
/// results may be redistributed, and the pins that speak of the step. A *row* is the answer for one class and one tuple
/// of operand placements. Everything is found by content, never by a position in a problem: one table serves all
/// problems on one graph and context, whatever their pins, switches and budget. Searches, `optimal` and explanations
/// share it; a SolveCache keeps it between solves.
///
///     const std::uint32_t step = table.classOf(asking, node);
///     const auto row = table.row(asking, node, step, operands);     // a hash lookup when it is known
///     for (std::size_t i = 0; i < row->open.size(); ++i) use(row->open[i], row->writesOf(i));
///
/// One thread. Rows are immutable and outlive the table for who holds them; other threads may read them.
#include "base/words.h"
#include "solve/candidates/candidates.h"

#include <memory>

namespace cleave::solve {

/// Equal placements have equal ids in one table; R is `kReplicated`.
using PlacementId = std::uint32_t;
inline constexpr PlacementId kReplicated = 0;

/// The problem that is asked about; both must outlive the call.
struct Asking {
  const Problem& problem;
  const Variables& variables;
};

struct CandidateRow {
  std::uint32_t index = 0;   ///< rows of one table have different ones, counted from 0
  Words operands;            ///< placement ids of Variables::reads
  std::vector<Choice> open;  ///< Candidates::open
  Words writes;              ///< placement ids: for each of `open`, of Variables::writes
  std::uint32_t width = 0;   ///< number of Variables::writes
  /// Candidates::demands, as places among the pins that speak of the step (Variables::pins); kRule: its rule is off.
  std::vector<std::uint32_t> demands;
  int decider = -1;  ///< Candidates::decider
  /// Where `open` is empty: the last read that the conflict speaks of. However the reads behind it are placed, it
  /// remains a conflict.
  std::uint32_t lastCulprit = 0;

  static constexpr std::uint32_t kRule = 0xffffffffu;
  std::span<const PlacementId> writesOf(std::size_t ordinal) const { return {writes.data() + ordinal * width, width}; }
};

/// Why a step has no candidate; it names the step's own values.
struct CandidateConflict {
  ConflictRecord record;
  bool isFixed = false;                ///< Candidates::isFixed
  std::vector<std::uint32_t> demands;  ///< as CandidateRow::demands
  std::vector<std::vector<ValueId>> furtherCulprits;
};

class CandidateTable {
 public:
  CandidateTable();

  /// Steps with equal numbers have equal candidates.
  std::uint32_t classOf(const Asking& asking, NodeId node);
  /// `operands`: placement ids of Variables::reads.
  const std::shared_ptr<const CandidateRow>& row(const Asking& asking, NodeId node, std::uint32_t classIndex,
                                                 std::span<const PlacementId> operands);
  /// Where all that the step reads is replicated.
  const std::shared_ptr<const CandidateRow>& rowOfWhole(const Asking& asking, NodeId node) {
    return row(asking, node, classOf(asking, node), Words(asking.variables.reads(node).size(), kReplicated));
  }
  /// Of a row without candidates, as `node` meets it.
  const CandidateConflict& conflict(const Asking& asking, NodeId node, const CandidateRow& row);
  /// CandidateRow::demands as they are called in the problem that is asked about.
  static Demand demandOf(const Asking& asking, NodeId node, std::uint32_t demand);

  PlacementId intern(const Placement& placement);
  const Placement& placement(PlacementId id) const { return m_placements[id]; }
  const std::vector<Placement>& placements() const { return m_placements; }  ///< by id
  std::vector<Placement> placementsOf(std::span<const PlacementId> ids) const;
  /// An order of placements that does not depend on what was asked before.
  bool isBefore(PlacementId a, PlacementId b) const { return m_texts[a] < m_texts[b]; }
  std::uint32_t rows() const { return m_rowCount; }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

 private:
  struct Structure {
    NodeId node;
    std::vector<rules::LayerStrategy> strategies;  ///< of a layer of the full candidate set
    std::uint32_t index = 0;
  };
  std::uint32_t structureOf(const Asking& asking, NodeId node);
  void addPins(const Asking& asking, NodeId node);

  std::vector<Placement> m_placements;
  std::vector<std::string> m_texts;  ///< of placements
  std::unordered_map<Placement, PlacementId> m_placementIds;
  std::vector<std::uint32_t> m_structureOf;  ///< by NodeId; kNone: not yet
  std::unordered_map<std::size_t, std::vector<Structure>> m_structures;
  std::vector<std::uint32_t> m_plainClassOf;  ///< by structure, of steps that no demand speaks of; kNone: not yet
  std::unordered_map<std::string, std::uint32_t> m_pinIds;
  WordsMap<std::uint32_t> m_classes;  ///< of steps that a demand speaks of
  std::uint32_t m_classCount = 0;
  WordsMap<std::shared_ptr<const CandidateRow>> m_rows;              ///< by operands and class
  std::unordered_map<std::uint64_t, CandidateConflict> m_conflicts;  ///< by row and node
  std::uint32_t m_rowCount = 0;
  Words m_key;  ///< that is looked up
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve
