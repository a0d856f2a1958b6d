#pragma once
/// Remembers what every step may take for every placement of its operands, so that a search of millions of tries asks
/// the rules a few thousand times. Placements are interned to small integers; looking an answer up allocates nothing.
///
/// Steps of equal structure (same operator, arguments, operand and result types; repeated blocks) share answers: rules
/// and layer options are functions of just these. A step that a pin speaks of or whose results may be redistributed
/// shares with none; nor does a layer of the full menu. Conflicts name values, so they are kept for each step. One
/// thread.
#include "solve/candidates/candidates.h"
#include "solve/trace/events.h"

namespace cleave::solve {

class Memo {
 public:
  Memo(const Problem& problem, const Variables& variables, TraceSink& sink);

  /// What `step` may take with its operands placed as they are now. `key` identifies this state of the operands.
  struct Outcome {
    std::uint32_t key = 0;
    std::uint32_t firstCandidate = 0;
    std::uint32_t count = 0;
    std::uint32_t firstDemand = 0, demandCount = 0;
    int decider = -1;  ///< Candidates::decider
  };
  Outcome look(std::uint32_t step);

  ChoiceId choiceId(const Outcome& outcome, std::uint32_t ordinal) const {
    return m_candidates[outcome.firstCandidate + ordinal].choice;
  }
  /// Places what the candidate gives to the step's results (and to the parameters it owns).
  void place(std::uint32_t step, const Outcome& outcome, std::uint32_t ordinal);

  struct KnownConflict {
    std::uint32_t key = 0;
    bool isFixed = false;  ///< no other choice elsewhere would change it
    ConflictId id;
    std::uint32_t firstDemand = 0, demandCount = 0;
    std::uint32_t firstFurther = 0, furtherCount = 0;
  };
  /// Why `outcome`, which has no candidates, has none.
  KnownConflict conflict(std::uint32_t step, const Outcome& outcome);
  /// Candidates::demands of an outcome or a conflict.
  template <class OutcomeOrConflict>
  std::span<const Demand> demands(const OutcomeOrConflict& of) const {
    return {m_demands.data() + of.firstDemand, of.demandCount};
  }
  /// Candidates::furtherCulprits of a conflict.
  std::span<const std::vector<ValueId>> furtherCulprits(const KnownConflict& of) const {
    return {m_further.data() + of.firstFurther, of.furtherCount};
  }
  const ConflictRecord& record(ConflictId id) const { return m_records.at(id.raw()); }

  /// Equal placements have equal ids; R has 0.
  std::uint32_t placementId(ValueId value) const { return m_placed[value.index()]; }
  const Placement& placementOf(ValueId value) const { return m_placements[m_placed[value.index()]]; }
  const Choice& choice(const Outcome& outcome, std::uint32_t ordinal) const {
    return m_choices[outcome.firstCandidate + ordinal];
  }
  const Variables& variables() const { return m_variables; }

 private:
  struct Candidate {
    ChoiceId choice;
    std::uint32_t firstPlacement = 0;  ///< into m_writes; one for each of Variables::writes
  };
  struct Class {
    std::uint32_t arity = 0;
    std::vector<Outcome> outcomes;
    std::vector<std::uint32_t> keys;  ///< arity placement ids for each outcome
  };
  struct Step {
    NodeId node;
    std::uint32_t classIndex = 0;
    std::uint32_t lastKey = 0;  ///< index of the outcome found last: usually found again
  };

  bool mayShare(NodeId node) const;
  void classify();
  std::uint32_t keep(const std::vector<Demand>& demands);
  std::uint32_t intern(const Placement& placement);
  std::vector<Placement> operandPlacements(NodeId node) const;
  Outcome ask(const Step& step, Class& shared);

  const Problem& m_problem;
  const Variables& m_variables;
  TraceSink& m_sink;
  std::vector<Placement> m_placements;  ///< by placement id; 0 is R
  std::unordered_map<Placement, std::uint32_t> m_placementIds;
  std::vector<std::uint32_t> m_placed;  ///< by ValueId: placement id
  std::vector<Step> m_steps;
  std::vector<Class> m_classes;
  std::vector<Candidate> m_candidates;
  std::vector<Choice> m_choices;  ///< parallel to m_candidates
  std::vector<std::uint32_t> m_writes;
  std::vector<Demand> m_demands;
  std::vector<std::vector<ValueId>> m_further;
  std::vector<std::vector<KnownConflict>> m_conflicts;          ///< by step; empty until there is one
  std::unordered_map<std::uint32_t, ConflictRecord> m_records;  ///< by raw ConflictId
};

}  // namespace cleave::solve
