#pragma once
/// Questions to an explanation of a problem that the learning engine solves, and their answers as text.
///
///     const WhyNot answer = test::ask(*problem, "lm_head", rules::Strategy::Row);
///     QVERIFY2(answer.answer == WhyNotAnswer::Forbidden, test::textOf(answer).c_str());
#include "solve/explain/explain.h"
#include "tests/support/solve_support.h"

#include <QtGlobal>

#include <string>
#include <string_view>
#include <vector>

namespace cleave::test {

using namespace solve;

inline Solution solved(const Problem& problem) {
  const auto result = solve::solve(problem, Engine::Learning, *makeCountingSink());
  return result && result->solution ? *result->solution : Solution{};
}

inline NodeId layerOf(const Graph& graph, std::string_view layer) {
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n) && graph::layerName(graph, n) == layer) return n;
  }
  qFatal("no layer %s", std::string(layer).c_str());
}

inline ValueId resultOf(const Graph& graph, std::string_view layer) {
  return graph.node(layerOf(graph, layer)).results.front();
}

inline std::string textOf(const WhyNot& answer) {
  std::string text =
      fmt::format("[{}{}]\n", static_cast<int>(answer.answer), answer.core.isIrreducible ? ", irreducible" : "");
  for (const Sentence& s : answer.sentences) text += plainText(s) + "\n";
  return text;
}

inline std::string textOf(const Core& core) {
  std::string text = core.isIrreducible ? "irreducible\n" : "not irreducible\n";
  for (const Constraint& c : core.constraints) text += c.text + "\n";
  return text;
}

inline WhyNot ask(const Problem& problem, ValueId value, std::string_view placement) {
  auto answer = whyNot(problem, solved(problem), Engine::Learning, value, *Placement::parse(placement));
  if (!answer) qFatal("%s", answer.error().message.c_str());
  return std::move(*answer);
}

inline WhyNot ask(const Problem& problem, std::string_view layer, rules::Strategy strategy) {
  auto answer = whyNot(problem, solved(problem), Engine::Learning, layerOf(*problem.graph, layer), strategy);
  if (!answer) qFatal("%s", answer.error().message.c_str());
  return std::move(*answer);
}

inline Core coreOf(const Problem& problem, Engine engine = Engine::Learning) {
  auto found = irreducibleCore(problem, engine);
  if (!found) qFatal("%s", found.error().message.c_str());
  return std::move(found->core);
}

inline bool isSolvable(const Problem& problem) {
  const auto result = solve::solve(problem, Engine::Learning, *makeCountingSink());
  return result && result->outcome == Outcome::Solved;
}

inline std::vector<std::string> liftsOf(const Core& core) {
  std::vector<std::string> lifts;
  for (const Constraint& c : core.constraints) {
    if (c.lift) lifts.push_back(*c.lift);
  }
  return lifts;
}

}  // namespace cleave::test
