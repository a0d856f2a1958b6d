#include "solve/explain/decision.h"
#include "solve/explain/explain.h"
#include "solve/problem/variables.h"
#include "tests/support/llama_graph.h"
#include "tests/support/random_plans.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <algorithm>

using namespace cleave;
using namespace cleave::solve;

namespace {

Solution solved(const Problem& problem) {
  const auto result = solve::solve(problem, Engine::Reference, *makeCountingSink());
  if (!result || !result->solution) qFatal("no solution");
  return *result->solution;
}

ValueId resultOf(const Graph& graph, std::string_view layer) {
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, n) && graph::layerName(graph, n) == layer) return graph.node(n).results.front();
  }
  qFatal("no such layer");
}

std::string textOf(const std::vector<WhyLink>& links) {
  std::string text;
  for (const WhyLink& link : links) {
    text += plainText(link.sentence) + "\n";
    for (const std::string& alternative : link.alternatives) text += "  " + alternative + "\n";
  }
  return text;
}

}  // namespace

class TestExplainWhy : public QObject {
  Q_OBJECT
 private slots:
  void followsASplitBackToTheLayerThatChoseIt() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const Graph& graph = *problem->graph;
    const auto links =
        why(*problem, solved(*problem), Engine::Reference, resultOf(graph, "model.layers.1.self_attn.o_proj"));
    const std::string text = textOf(links);
    QVERIFY2(links.size() > 2 && links.size() < 12, text.c_str());
    QCOMPARE(links.front().node, graph.value(resultOf(graph, "model.layers.1.self_attn.o_proj")).producer);
    QVERIFY2(plainText(links.front().sentence).starts_with("`model.layers.1.self_attn.o_proj` is row"), text.c_str());
    QVERIFY2(links.back().isFree && !links.back().alternatives.empty(), text.c_str());
    QVERIFY2(plainText(links.back().sentence).starts_with("`model.layers.1.self_attn.q_proj` is column"), text.c_str());
    for (std::size_t i = 1; i < links.size(); ++i) QVERIFY2(links[i].node < links[i - 1].node, text.c_str());
  }

  void linksTheNamesItSays() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto links =
        why(*problem, solved(*problem), Engine::Reference, resultOf(*problem->graph, "model.layers.0.mlp.down_proj"));
    QVERIFY(links.size() > 2);
    for (const WhyLink& link : links) {
      const bool hasLink = std::any_of(link.sentence.begin(), link.sentence.end(), [](const SentencePart& part) {
        return !std::holds_alternative<std::monostate>(part.link);
      });
      QVERIFY2(hasLink, plainText(link.sentence).c_str());
    }
  }

  void staysShortThroughManyLayers_data() {
    QTest::addColumn<int>("sequence");
    QTest::newRow("whole residuals") << static_cast<int>(rules::SequenceParallel::Off);
    QTest::newRow("residuals on the sequence") << static_cast<int>(rules::SequenceParallel::On);
  }
  void staysShortThroughManyLayers() {
    QFETCH(int, sequence);
    const auto problem =
        test::problemOf(test::llamaGraph({.layers = 40}), 2, {}, static_cast<rules::SequenceParallel>(sequence));
    const Solution solution = solved(*problem);
    for (ValueId v : idRange<ValueId>(problem->graph->values.size())) {
      const auto links = why(*problem, solution, Engine::Reference, v);
      QVERIFY(!links.empty());
      QVERIFY2(links.size() < 40, textOf(links).c_str());
    }
  }

  void startsAtTheLayerOfAParameter() {
    const auto problem = test::problemOf(test::llamaGraph({.isTied = true}), 2);
    const auto links =
        why(*problem, solved(*problem), Engine::Reference, problem->graph->findValue("model.embed_tokens.weight"));
    const std::string text = textOf(links);
    QVERIFY2(text.starts_with("`model.embed_tokens.weight` is "), text.c_str());
    QVERIFY2(text.find("`lm_head` shares it") != std::string::npos, text.c_str());
    QVERIFY2(links.size() >= 2, text.c_str());
  }

  void namesThePinThatDecided() {
    const auto problem =
        test::problemOf(test::llamaGraph(), 2, {"*q_proj=replicated", "*k_proj=replicated", "*v_proj=replicated"});
    const auto links = why(*problem, solved(*problem), Engine::Reference,
                           resultOf(*problem->graph, "model.layers.0.self_attn.q_proj"));
    QVERIFY2(
        textOf(links).find("Your pin `*q_proj=replicated` leaves no other strategy that fits.") != std::string::npos,
        textOf(links).c_str());
  }

  /// The text about strategies that fit must agree with the trace of the search.
  void reportsTheSearchResultOfFittingStrategies_data() {
    QTest::addColumn<Engine>("engine");
    QTest::newRow("reference") << Engine::Reference;
    QTest::newRow("learning") << Engine::Learning;
  }
  void reportsTheSearchResultOfFittingStrategies() {
    QFETCH(Engine, engine);
    std::size_t refuted = 0, onlyOnes = 0, later = 0;
    for (const std::uint64_t seed : test::Seeds(300)) {
      const std::shared_ptr<const Problem> problem = test::RandomProblem(seed).build();
      const auto recorded = test::record(problem, {}, {}, engine);
      if (!recorded.result.solution) continue;
      Cursor cursor(recorded.trace);
      cursor.seek(recorded.trace->size());
      for (const NodeId node : idRange<NodeId>(problem->graph->nodes.size())) {
        if (!graph::layerShape(*problem->graph, node)) continue;
        std::vector<std::string> failed, open;
        for (const CandidateEntry& entry : decisionAt(cursor, node).candidates) {
          if (entry.state == CandidateState::Failed || entry.state == CandidateState::Skipped)
            failed.push_back(entry.name);
          if (entry.state == CandidateState::Open) open.push_back(entry.name);
        }
        const auto links = why(*problem, *recorded.result.solution, engine, problem->graph->node(node).results.front());
        const auto own = std::find_if(links.begin(), links.end(), [&](const WhyLink& link) {
          return link.node == node && (link.isFree || link.value == problem->graph->node(node).results.front());
        });
        const std::string text = fmt::format("seed {}\n{}", seed, textOf(links));
        QVERIFY2(own != links.end(), text.c_str());
        const auto namesEndingIn = [&](std::string_view end) {
          std::vector<std::string> names;
          for (const std::string& alternative : own->alternatives) {
            if (alternative.ends_with(end)) names.push_back(alternative.substr(0, alternative.find(": also fits")));
          }
          return names;
        };
        QVERIFY2(namesEndingIn("but led to no plan") == failed, text.c_str());
        QVERIFY2(namesEndingIn("but comes later in candidate order") == open, text.c_str());
        const std::string count = fmt::format("{} of them led to no plan.", failed.size());
        const bool isOnlyOne = !failed.empty() && open.empty();
        const std::string sentence = plainText(own->sentence);
        QVERIFY2(sentence.ends_with("but only this one led to a plan.") == isOnlyOne, text.c_str());
        QVERIFY2(sentence.ends_with(count) == (!failed.empty() && !isOnlyOne), text.c_str());
        refuted += failed.size(), onlyOnes += isOnlyOne, later += open.size();
      }
    }
    qInfo("%zu refuted, %zu times all but one, %zu later", refuted, onlyOnes, later);
    QVERIFY(refuted > 0 && later > 0);
  }

  void saysWhatInputsAndConstantsAre() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    const auto links = why(*problem, solved(*problem), Engine::Reference, problem->graph->findValue("input_ids"));
    QCOMPARE(links.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(plainText(links[0].sentence)),
             QStringLiteral("`input_ids` is replicated (R): every rank gets the full input."));
  }

  void givesNumbersForFormsThatTheSizesForbid() {
    const auto problem = test::problemOf(test::parsedGraph("x: f32[2,4,8] = input\n"
                                                           "a.weight: f32[7,8] = parameter @a\n"
                                                           "linear_0: f32[2,4,7] = aten::linear(x, a.weight, None) @a\n"
                                                           "return y=linear_0\n"),
                                         2);
    const auto links = why(*problem, solved(*problem), Engine::Reference, problem->graph->findValue("linear_0"));
    QVERIFY2(textOf(links).find("7 output features do not divide by 2 ranks") != std::string::npos,
             textOf(links).c_str());
  }

  void answersNothingForAnotherGraph() {
    const auto problem = test::problemOf(test::llamaGraph(), 2);
    QVERIFY(why(*problem, Solution{}, Engine::Reference, ValueId(0)).empty());
    QVERIFY(why(*problem, solved(*problem), Engine::Reference, ValueId(100000)).empty());
  }

  void explainsEveryValueOfRandomGraphs() {
    for (const std::uint64_t seed : test::Seeds(100)) {
      test::RandomGraph generator(seed);
      const auto problem = test::problemOf(generator.build(8), 2);
      const Solution solution = solved(*problem);
      for (ValueId v : idRange<ValueId>(problem->graph->values.size())) {
        const auto links = why(*problem, solution, Engine::Reference, v);
        QVERIFY2(!links.empty(), fmt::format("seed {} value {}", seed, problem->graph->value(v).name).c_str());
        const std::string end = plainText(links.back().sentence);
        QVERIFY2(end.ends_with("."), fmt::format("seed {}: {}", seed, end).c_str());
      }
    }
  }
};

QTEST_APPLESS_MAIN(TestExplainWhy)
#include "tst_explain_why.moc"
