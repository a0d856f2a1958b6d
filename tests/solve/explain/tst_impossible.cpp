#include "solve/explain/impossible.h"
#include "solve/problem/strategy_text.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <algorithm>
#include <map>

using namespace cleave;
using namespace cleave::solve;

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The context with the settings that a sentence names in addition.
rules::StrategyContext under(rules::StrategyContext context, std::string_view text) {
  if (has(text, "the full candidate set")) context.candidateSet = rules::CandidateSet::Full;
  if (has(text, "sequence parallelism")) context.sequenceParallel = rules::SequenceParallel::Auto;
  return context;
}

/// One strategy of one layer from the rules alone, without the tested code.
class Asked {
 public:
  Asked(const Problem& problem, NodeId layer, rules::Strategy strategy)
      : m_problem(problem), m_layer(layer), m_strategy(strategy) {}

  std::string name() const {
    return fmt::format("{} of {} on {} ranks, {}, sequence {}", rules::toText(m_strategy),
                       graph::layerName(*m_problem.graph, m_layer), m_problem.context.worldSize,
                       rules::toText(m_problem.context.candidateSet),
                       rules::toText(m_problem.context.sequenceParallel));
  }
  bool isOffered(const rules::StrategyContext& context) const {
    const auto options = strategies(context).offered;
    return std::any_of(options.begin(), options.end(), [&](const rules::LayerStrategy& option) {
      return effectiveStrategy(option, context.worldSize) == m_strategy;
    });
  }
  std::string refusal(const rules::StrategyContext& context) const {
    for (const rules::Refusal& refusal : strategies(context).refused)
      if (refusal.strategy == m_strategy) return refusal.reason;
    return {};
  }
  bool isAnywhere(const auto& holds) const {
    for (const auto set : {rules::CandidateSet::Optimum, rules::CandidateSet::Full}) {
      for (const auto sequence : {rules::SequenceParallel::Off, rules::SequenceParallel::Auto})
        if (holds(rules::StrategyContext{m_problem.context.worldSize, set, sequence})) return true;
    }
    return false;
  }

 private:
  rules::LayerStrategies strategies(const rules::StrategyContext& context) const {
    return rules::layerStrategies(*m_problem.graph, m_layer, *graph::layerShape(*m_problem.graph, m_layer), context);
  }

  const Problem& m_problem;
  NodeId m_layer;
  rules::Strategy m_strategy;
};

/// The error in the sentence; empty if it is right. `seen` counts the kinds of sentences.
std::string wrongIn(const Problem& problem, NodeId layer, rules::Strategy strategy, std::map<std::string, int>& seen) {
  const Asked asked(problem, layer, strategy);
  const auto answer = whyImpossible(problem, Variables(problem), layer, strategy);
  const auto wrong = [&](const char* what) {
    return fmt::format("{}: {} ({})", asked.name(), answer ? answer->text : "it can", what);
  };
  if (answer.has_value() == asked.isOffered(problem.context)) return wrong("it contradicts the rules");
  if (!answer) return {};
  const std::string& text = answer->text;
  const auto offered = [&](const rules::StrategyContext& context) { return asked.isOffered(context); };
  const auto known = [&](const rules::StrategyContext& context) {
    return asked.isOffered(context) || !asked.refusal(context).empty();
  };
  const std::string here = asked.refusal(problem.context), there = asked.refusal(under(problem.context, text));
  const bool namesSettings = has(text, "the full candidate set") || has(text, "sequence parallelism");
  if (namesSettings != (answer->wider || has(text, "and even then")))
    return wrong("the settings are named without need");
  if (answer->wider) {
    ++seen[here.empty() ? "settings" : "sizes, but for the settings"];
    if (!offered(under(problem.context, text))) return wrong("not with these settings");
    if (here.empty() != has(text, "that strategy needs") || !has(text, here)) return wrong("not that refusal");
  } else if (namesSettings) {
    ++seen["settings and sizes"];
    if (!here.empty() || there.empty() || !has(text, "and even then " + there + ".")) return wrong("not that refusal");
    if (asked.isAnywhere(offered)) return wrong("some settings have it");
  } else if (!here.empty()) {
    ++seen["sizes"];
    if (!has(text, here) || asked.isAnywhere(offered)) return wrong("not that refusal alone");
  } else {
    ++seen[has(text, "of its kind") ? "kind" : has(text, "on 1 rank") ? "one rank" : "no sequence"];
    if (asked.isAnywhere(known)) return wrong("some settings know it");
  }
  return {};
}

}  // namespace

/// Reasons why a layer cannot have a strategy. Each sentence is checked with the rules under the settings that it
/// names.
class TestImpossible : public QObject {
  Q_OBJECT
 private slots:
  void eachReasonHolds() {
    const std::vector graphs{
        test::llamaGraph({.layers = 1, .vocab = 257, .sequence = 15}),
        test::llamaGraph({.layers = 1, .hidden = 48, .heads = 3, .kvHeads = 1, .intermediate = 113}),
        test::parsedGraph("x: f32[8,12] = input\nfc.weight: f32[6,12] = parameter @fc\n"
                          "linear_0: f32[8,6] = aten::linear(x, fc.weight, None) @fc\nreturn y=linear_0\n")};
    std::map<std::string, int> seen;
    for (const auto& graph : graphs) {
      for (const int ranks : {1, 2, 3, 4, 5}) {
        for (const auto set : {rules::CandidateSet::Optimum, rules::CandidateSet::Full}) {
          for (const auto sequence :
               {rules::SequenceParallel::Off, rules::SequenceParallel::On, rules::SequenceParallel::Auto}) {
            Problem problem = *test::problemOf(graph, ranks, {}, sequence);
            problem.context.candidateSet = set;
            for (const NodeId layer : idRange<NodeId>(graph->nodes.size())) {
              if (!graph::layerShape(*graph, layer)) continue;
              for (int s = 0; s <= static_cast<int>(rules::Strategy::InExpert); ++s) {
                const std::string wrong = wrongIn(problem, layer, static_cast<rules::Strategy>(s), seen);
                QVERIFY2(wrong.empty(), wrong.c_str());
              }
            }
          }
        }
      }
    }
    for (const char* kind :
         {"settings", "sizes, but for the settings", "settings and sizes", "sizes", "kind", "one rank", "no sequence"})
      QVERIFY2(seen[kind] > 0, kind);
  }

  void namesSettingsAndSizesIfBothForbid() {
    const auto graph = test::llamaGraph({.layers = 1});
    const auto problem = test::problemOf(graph, 3);
    const NodeId down = graph->value(graph->findValue("model.layers.0.mlp.down_proj.weight")).users.front();
    const auto answer = whyImpossible(*problem, Variables(*problem), down, rules::Strategy::RowScatter);
    QVERIFY(answer);
    QCOMPARE(answer->kind, ConstraintKind::Sizes);
    QCOMPARE(QString::fromStdString(answer->text),
             QStringLiteral("`model.layers.0.mlp.down_proj` cannot be row+scatter: that strategy needs sequence "
                            "parallelism, and even then 112 input features do not divide by 3 ranks."));
  }
};

QTEST_APPLESS_MAIN(TestImpossible)
#include "tst_impossible.moc"
