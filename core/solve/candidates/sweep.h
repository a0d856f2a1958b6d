#pragma once
/// One sweep along a frontier with any weight. It finds the states after each step; the weight records the transitions.
///
/// A *state* has one token per slot between two steps. A token has a placement, and more if the weight needs it. A
/// *level* is the result of a step for a set of entry states: the set of exit states, and the transitions to them.
/// level_store.h caches levels.
///
/// `sweepStep` calls a weight in this order. The weight in optimal/level.cpp computes costs. The weight in
/// explain/relaxed.cpp only collects states.
///
///     bool enter(state, tokens)         for each entry state; false ends the step
///     PlacementId placementOf(token)    for the token of an operand's slot
///     span<const PlacementId> choicesOf(operand)                  possible placements of a fresh value
///     bool place(operands)              for each combination of operand placements; false ends the step
///     uint32_t candidates()             the number of candidates; then for each:
///     void weigh(candidate)
///     uint32_t exitToken(exit)          for each exit slot
///     void addExit(tokens)
#include "solve/candidates/candidate_table.h"
#include "solve/candidates/frontier.h"

#include <numeric>

namespace cleave::solve {

/// All states between two steps: tuples of tokens.
struct StateSet {
  std::uint32_t id = 0;     ///< equal for equal sets of one store
  std::uint32_t width = 0;  ///< slots
  std::uint32_t count = 0;
  IdTuple tokens;  ///< count · width
  std::span<const std::uint32_t> at(std::uint32_t state) const {
    return {tokens.data() + std::size_t(state) * width, width};
  }
};

/// Collects the exit states of a step, each once, in the order in which they are found.
class StateCollector {
 public:
  explicit StateCollector(std::size_t width) : m_width(static_cast<std::uint32_t>(width)) {}

  std::uint32_t add(std::span<const std::uint32_t> tokens) {
    const auto known = m_indices.find(tokens);
    if (known != m_indices.end()) return known->second;
    const std::uint32_t index = count();
    m_indices.emplace(IdTuple(tokens.begin(), tokens.end()), index);
    m_tokens.insert(m_tokens.end(), tokens.begin(), tokens.end());
    return index;
  }
  std::optional<std::uint32_t> find(std::span<const std::uint32_t> tokens) const {
    const auto known = m_indices.find(tokens);
    return known == m_indices.end() ? std::nullopt : std::optional(known->second);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(m_indices.size()); }
  std::uint32_t width() const { return m_width; }
  std::span<const std::uint32_t> at(std::uint32_t state) const {
    return {m_tokens.data() + std::size_t(state) * m_width, m_width};
  }
  const IdTuple& tokens() const { return m_tokens; }

  /// The tokens of all states, ordered by `isBefore` of the first differing tokens. `rank[i]` is the new position of
  /// state `i`.
  template <class IsBefore>
  IdTuple sorted(const IsBefore& isBefore, std::vector<std::uint32_t>& rank) const {
    std::vector<std::uint32_t> order(count());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto x = at(a), y = at(b);
      const auto [first, second] = std::mismatch(x.begin(), x.end(), y.begin());
      return first != x.end() && isBefore(*first, *second);
    });
    IdTuple tokens;
    tokens.reserve(m_tokens.size());
    rank.resize(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      tokens.insert(tokens.end(), at(order[i]).begin(), at(order[i]).end());
    }
    return tokens;
  }

 private:
  std::uint32_t m_width;
  IdTuple m_tokens;
  IdTupleMap<std::uint32_t> m_indices;
};

/// Sweeps a step from each state of `entry`, in order. The last fresh value changes fastest. False if the weight ended
/// the step.
template <class Weight>
bool sweepStep(const FrontierStep& step, const StateSet& entry, Weight& weight) {
  std::vector<std::span<const PlacementId>> choices;
  for (const std::uint32_t operand : step.fresh) choices.push_back(weight.choicesOf(operand));
  std::vector<std::size_t> chosen(choices.size(), 0);
  IdTuple operands(step.operands.size()), tokens;
  const auto choose = [&](std::size_t at, std::size_t choice) {
    chosen[at] = choice;
    for (std::size_t i = step.fresh[at]; i < operands.size(); ++i) {
      if (step.operands[i].first == step.fresh[at]) operands[i] = choices[at][choice];
    }
  };
  const auto chooseNext = [&] {
    std::size_t at = choices.size();
    while (at > 0 && chosen[at - 1] + 1 == choices[at - 1].size()) choose(--at, 0);
    if (at == 0) return false;
    choose(at - 1, chosen[at - 1] + 1);
    return true;
  };
  for (std::size_t at = 0; at < choices.size(); ++at) choose(at, 0);
  for (std::uint32_t state = 0; state < entry.count; ++state) {
    const auto before = entry.at(state);
    if (!weight.enter(state, before)) return false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (step.operands[i].slot != kNoSlot) operands[i] = weight.placementOf(before[step.operands[i].slot]);
    }
    do {
      if (!weight.place(operands)) return false;
      const std::uint32_t candidates = weight.candidates();
      for (std::uint32_t candidate = 0; candidate < candidates; ++candidate) {
        weight.weigh(candidate);
        tokens.clear();
        for (const auto& exit : step.exits) tokens.push_back(weight.exitToken(exit));
        weight.addExit(tokens);
      }
    } while (chooseNext());
  }
  return true;
}

}  // namespace cleave::solve
