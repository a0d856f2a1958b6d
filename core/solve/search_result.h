#pragma once
/// What the searching engines (reference, learning) make of their end state.
#include "solve/engine.h"
#include "solve/memo.h"

namespace cleave::solve {

/// The solution in which every step has taken the choice that `choiceAt` names; values lie as the memo has them.
template <class ChoiceAt>
Solution solutionOf(const Problem& problem, const Variables& variables, const Memo& memo, const ChoiceAt& choiceAt) {
  const Graph& graph = *problem.graph;
  Solution solution;
  solution.placements.reserve(graph.values.size());
  for (ValueId v : idRange<ValueId>(graph.values.size())) solution.placements.push_back(memo.placementOf(v));
  solution.strategies.resize(graph.nodes.size());
  for (std::uint32_t step = 0; step < variables.steps().size(); ++step) {
    const Choice& choice = choiceAt(step);
    const NodeId node = variables.steps()[step];
    solution.strategies[node.index()] = choice.strategy;
    for (std::size_t i = 0; i < choice.computedAs.size(); ++i) {
      if (choice.computedAs[i] != choice.results[i]) solution.computedAs.emplace(graph.node(node).results[i], choice.computedAs[i]);
    }
  }
  return solution;
}

/// Counts conflicts.
class ConflictCounter {
 public:
  void add(ConflictId id);
  /// All of them, most often first.
  std::vector<ConflictRecord> records(const Memo& memo) const;
  /// The first of these: SolveResult::causes.
  std::vector<ConflictRecord> causes(const Memo& memo) const;

 private:
  std::vector<std::uint64_t> m_counts;  ///< by ConflictId
};

}  // namespace cleave::solve
