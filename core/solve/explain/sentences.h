#pragma once
/// Builds sentences with links (explanations without a trace use it too), and the questions about a moment of a search
/// that both the decision panel and the conflict card ask.
#include "solve/candidates/candidates.h"
#include "solve/explain/decision.h"

namespace cleave::solve {

class SentenceBuilder {
 public:
  SentenceBuilder(const Graph& graph, const Variables& variables) : m_graph(graph), m_variables(variables) {}
  explicit SentenceBuilder(const Trace& trace) : SentenceBuilder(*trace.problem()->graph, trace.variables()) {}
  SentenceBuilder& text(std::string_view text);
  SentenceBuilder& value(ValueId value);   ///< its name in back quotes, linked
  SentenceBuilder& node(NodeId node);      ///< a layer by its module's name
  SentenceBuilder& step(StepId position);  ///< "step 1,234", linked
  Sentence finish() { return std::move(m_parts); }

 private:
  const Graph& m_graph;
  const Variables& m_variables;
  Sentence m_parts;
};

/// Placements of a node's operands at the cursor; nullopt while one is not assigned.
std::optional<std::vector<Placement>> readsAt(const Cursor& cursor, NodeId node);

/// One try of a node since the search last arrived at it.
struct PastTry {
  std::uint32_t ordinal = 0;
  StepId index = 0;                     ///< of the Try event
  std::optional<StepId> conflictIndex;  ///< of the Conflict event that ended it; nullopt: in force
};
/// In order of time; empty when the node has no choice and was not just gone back to.
std::vector<PastTry> pastTries(const Cursor& cursor, NodeId node);

/// What a choice is called: "column", "column, copied", "S(2)".
std::string nameOf(const Choice& choice, int ranks);

}  // namespace cleave::solve
