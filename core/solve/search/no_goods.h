#pragma once
/// The no-goods of a search: sets of placements under which there is no solution.
///
/// A fact states that one value has one placement. An explanation is a set of facts and user demands that together
/// exclude every solution. A no-good is a stored explanation. It is stored at its last fact: the step that makes this
/// fact true looks it up by the placement.
///
///     goods.add({{{step 4, `add_1`, R}, {step 9, `up_proj`, S(2)}}, {pin 0}, conflict 3});
///     // at step 9, with `up_proj` placed as S(2):
///     if (const NoGoods::Entry* known = goods.broken(9, assignment, writes)) ...  // if `add_1` is R
#include "solve/search/assignment.h"

namespace cleave::solve {

struct Fact {
  std::uint32_t step = 0;       ///< step that places the value
  std::uint32_t value = 0;      ///< raw ValueId
  std::uint32_t placement = 0;  ///< placement id of the table
  auto operator<=>(const Fact&) const = default;
};

struct Explanation {
  std::vector<Fact> facts;      ///< ascending by step, then by value
  std::vector<Demand> demands;  ///< ascending
  ConflictId origin;            ///< the rule conflict from which it derives

  void clear();
  void add(const Fact& fact);
  void add(std::span<const Demand> more);
  /// Adds all of `otherFacts` before `step`, and `otherDemands`.
  void addBefore(std::uint32_t step, std::span<const Fact> otherFacts, std::span<const Demand> otherDemands);
};

class NoGoods {
 public:
  struct Entry {
    std::uint32_t firstFact = 0, factCount = 0, firstDemand = 0, demandCount = 0;
    ConflictId origin;
  };

  explicit NoGoods(std::size_t steps) : m_countAt(steps, 0) {}
  /// `explanation` has at least one fact.
  void add(const Explanation& explanation);
  /// A no-good whose facts are all true after `step` has placed `writes`; nullptr if there is no such no-good. Valid
  /// until the next `add`.
  const Entry* broken(std::uint32_t step, const Assignment& assignment, std::span<const ValueId> writes) const;
  std::span<const Fact> facts(const Entry& entry) const { return {m_facts.data() + entry.firstFact, entry.factCount}; }
  std::span<const Demand> demands(const Entry& entry) const {
    return {m_demands.data() + entry.firstDemand, entry.demandCount};
  }
  std::size_t size() const { return m_entries.size(); }

 private:
  void forgetAll();

  std::vector<Fact> m_facts;
  std::vector<Demand> m_demands;
  std::vector<Entry> m_entries;
  std::vector<std::uint32_t> m_countAt;  ///< by step: number of no-goods whose last fact is there
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> m_byLastFact;  ///< value and placement → entries
};

}  // namespace cleave::solve
