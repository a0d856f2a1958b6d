#include "solve/explain/sentences.h"

#include "solve/problem/redistribution.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

namespace cleave::solve {

std::string plainText(const Sentence& sentence) {
  std::string text;
  for (const SentencePart& part : sentence) text += part.text;
  return text;
}

SentenceBuilder& SentenceBuilder::text(std::string_view text) {
  if (!m_parts.empty() && std::holds_alternative<std::monostate>(m_parts.back().link)) {
    m_parts.back().text += text;
  } else if (!text.empty()) {
    m_parts.push_back({std::string(text), {}});
  }
  return *this;
}

SentenceBuilder& SentenceBuilder::value(ValueId value) {
  m_parts.push_back({ticked(m_graph.value(value).name), value});
  return *this;
}

SentenceBuilder& SentenceBuilder::node(NodeId node) {
  m_parts.push_back({ticked(nameOf(m_graph, node, m_variables.layer(node).has_value())), node});
  return *this;
}

SentenceBuilder& SentenceBuilder::step(StepId position) {
  m_parts.push_back({fmt::format("step {}", withThousands(position)), SeekTo{position}});
  return *this;
}

std::string nameOf(const Choice& choice, int ranks) {
  if (choice.strategy) return strategyText(*choice.strategy, ranks);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < choice.results.size(); ++i) texts.push_back(placementText(choice, i));
  return texts.empty() ? "no result" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace cleave::solve
