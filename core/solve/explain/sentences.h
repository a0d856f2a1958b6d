#pragma once
/// Sentences of explanations. A sentence consists of parts. A part that names a value, a node or a step carries a link,
/// which a view makes clickable and a terminal prints as text. The sentences address readers who are new to tensor
/// parallelism.
///
///     SentenceBuilder(trace).text("It reads ").value(operand).text(".").finish();
#include "solve/problem/choice.h"
#include "solve/problem/variables.h"
#include "solve/trace/trace.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cleave::solve {

/// The target of a sentence part is a value, a node, or a position for Cursor::seek.
struct SeekTo {
  StepId step = 0;
  bool operator==(const SeekTo&) const = default;
};
struct SentencePart {
  std::string text;
  std::variant<std::monostate, ValueId, NodeId, SeekTo> link;
};
using Sentence = std::vector<SentencePart>;
std::string plainText(const Sentence& sentence);

class SentenceBuilder {
 public:
  SentenceBuilder(const Graph& graph, const Variables& variables) : m_graph(graph), m_variables(variables) {}
  explicit SentenceBuilder(const Trace& trace) : SentenceBuilder(*trace.problem()->graph, trace.variables()) {}
  SentenceBuilder& text(std::string_view text);
  SentenceBuilder& value(ValueId value);   ///< the name in back quotes, linked
  SentenceBuilder& node(NodeId node);      ///< a layer by its module's name
  SentenceBuilder& step(StepId position);  ///< "step 1,234", linked
  Sentence finish() { return std::move(m_parts); }

 private:
  const Graph& m_graph;
  const Variables& m_variables;
  Sentence m_parts;
};

/// The name of a choice: "column", "column, copied", "S(2)".
std::string nameOf(const Choice& choice, int ranks);

}  // namespace cleave::solve
