#pragma once
/// What a step may take for given placements of its operands, and what each candidate costs; asked of the rules and the
/// cost model once for all equal steps.
///
/// Steps are equal when their structure, their static costs, the forms they may take (layers of the full menu look at
/// what comes behind them) and the pins that speak of them are. Everything is found by content, never by position in a
/// problem, so a table serves any number of problems on one graph that differ in pins and budget. One thread; answers
/// are immutable and may be read by others.
#include "solve/candidates/candidates.h"
#include "solve/cost/cost_model.h"

#include <memory>
#include <unordered_map>

namespace cleave::solve::optimal {

/// Whom the table asks.
struct Source {
  const Problem& problem;
  const Variables& variables;
  const CostModel& model;
};

/// Small integers as a key; looked up by span without a copy.
using Words = std::vector<std::uint32_t>;
struct WordsHash {
  using is_transparent = void;
  std::size_t operator()(std::span<const std::uint32_t> words) const;
};
struct WordsEqual {
  using is_transparent = void;
  bool operator()(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};
template <class T>
using WordsMap = std::unordered_map<Words, T, WordsHash, WordsEqual>;

void addNumber(Words& words, std::int64_t number);

struct Candidate {
  Choice choice;
  Words writes;  ///< placement ids, one for each of Variables::writes
  /// What it asks of a value's shared collectives, by index into Variables::reads.
  std::vector<std::pair<std::uint32_t, Shares>> asking;
  std::vector<Shares> pays;  ///< of what it writes, one for each of Variables::writes
  StepCost cost;             ///< without what its reads share
  Wide femtoseconds = 0;     ///< of `cost`
  std::int64_t bytes = 0;
  LeastTransient transient;
  std::uint32_t identity = 0;  ///< equal for the same choice beside other operands of the same class
};

struct Answer {
  std::vector<Candidate> open;  ///< in the order of candidatesOf
};

class StepTable {
 public:
  static constexpr std::uint32_t kWhole = 0;  ///< placement id of R

  std::uint32_t classOf(const Source& source, NodeId node);
  /// `operands`: placement ids of Variables::reads.
  std::shared_ptr<const Answer> answer(const Source& source, NodeId node, std::uint32_t classIndex,
                                       std::span<const std::uint32_t> operands);
  const Placement& placement(std::uint32_t id) const { return m_placements[id]; }
  const std::vector<Placement>& placements() const { return m_placements; }  ///< by id
  /// Names what CostModel::shared says of a value, whatever its placement; 0: it shares nothing.
  std::uint32_t sharingOf(const Source& source, ValueId value);
  /// Names what CostModel::heldFor says of a value that has a holder, whatever its placement.
  std::uint32_t holdingOf(const Source& source, ValueId value);
  /// An order of placements that does not depend on what was asked before.
  bool isBefore(std::uint32_t a, std::uint32_t b) const { return m_texts[a] < m_texts[b]; }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

  StepTable();

 private:
  struct Structure {
    NodeId node;
    Words facts;
    std::vector<rules::StrategyOption> options;
    std::uint32_t index = 0;
  };
  std::uint32_t structureOf(const Source& source, NodeId node);
  void addType(const graph::TensorType& type);
  void addPins(const Source& source, NodeId node);
  std::uint32_t intern(const Placement& placement);
  std::uint32_t identityOf(std::uint32_t classIndex, const Candidate& candidate);

  std::vector<Placement> m_placements;
  std::vector<std::string> m_texts;
  std::unordered_map<Placement, std::uint32_t> m_placementIds;
  std::vector<std::uint32_t> m_structureOf;  ///< by NodeId; kNone: not yet
  std::unordered_map<std::size_t, std::vector<Structure>> m_structures;
  std::uint32_t m_structureCount = 0;
  std::unordered_map<std::string, std::uint32_t> m_pinIds;
  WordsMap<std::uint32_t> m_classes;  ///< structure and pins
  WordsMap<std::shared_ptr<const Answer>> m_answers;
  WordsMap<std::uint32_t> m_identities;
  WordsMap<std::uint32_t> m_sharings, m_holdings;
  Words m_key;    ///< of the class, sharing or holding that is looked up
  Words m_facts;  ///< of the step whose structure is looked up
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve::optimal
