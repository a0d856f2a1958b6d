#include "solve/explain/live_domain.h"

#include "solve/candidates/domains.h"
#include "solve/explain/explain.h"
#include "tests/support/brute_force.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

constexpr std::size_t kMostPlans = 20'000;

/// Every placement of a value in a plan that agrees with the assignments at the cursor.
std::set<std::string> placementsAhead(const Cursor& cursor, const std::vector<test::BrutePlan>& plans, ValueId value) {
  const Trace& trace = cursor.trace();
  std::set<std::string> found;
  for (const test::BrutePlan& plan : plans) {
    bool agrees = true;
    for (const NodeId n : trace.variables().deciders()) {
      if (!cursor.choiceOf(n)) continue;
      for (const ValueId v : trace.variables().writes(n))
        agrees = agrees && (!v.isValid() || plan.placements[v.index()] == *cursor.placementOf(v));
    }
    if (agrees) found.insert(plan.placements[value.index()].text());
  }
  return found;
}

std::set<std::string> textsOf(const std::vector<Placement>& placements) {
  std::set<std::string> texts;
  for (const Placement& p : placements) texts.insert(p.text());
  return texts;
}

std::string toText(const LiveDomain& domain) {
  std::string text = fmt::format("open: {}\n", fmt::join(textsOf(domain.open), ", "));
  for (const GonePlacement& gone : domain.gone)
    text += fmt::format("{}: {}\n", gone.placement.text(), plainText(gone.why));
  return text;
}

}  // namespace

class TestLiveDomain : public QObject {
  Q_OBJECT
 private slots:
  /// At every moment of a search, no placement of a later plan is reported as gone. Every step that is named is the
  /// first that removes the placement.
  void keepsEveryPlacementOfLaterPlans() {
    const auto seeds = test::Seeds(60);
    std::uint64_t plansSeen = 0, byStep = 0, byRules = 0, byDemand = 0, byConflict = 0;
    for (const std::uint64_t seed : seeds) {
      test::RandomGraph generator(seed);
      const auto graph = generator.build(static_cast<int>(generator.pick({3, 4, 5})));
      std::vector<std::string> pins;
      for (NodeId n : idRange<NodeId>(graph->nodes.size())) {
        if (pins.empty() && graph::layerShape(*graph, n) && generator.pick({0, 1}))
          pins.push_back(graph::layerName(*graph, n) + "!=column");
      }
      const auto problem = std::make_shared<Problem>(*test::problemOf(graph, 2, pins));
      if (generator.pick({0, 1})) problem->context.candidateSet = rules::CandidateSet::Full;
      if (generator.pick({0, 0, 1})) problem->redistributable = {graph->value(graph->outputs.front().value).name};
      test::BruteForce brute(*problem);
      if (!brute.run(kMostPlans)) continue;
      plansSeen += brute.plans().size();
      const auto trace = test::record(problem).trace;
      LiveDomains domains(trace);
      Cursor cursor(trace);
      for (StepId step = 0; step <= trace->size(); step += 1 + trace->size() / 12) {
        cursor.seek(step);
        for (ValueId v : idRange<ValueId>(graph->values.size())) {
          const LiveDomain domain = domains.at(cursor, v);
          const std::string where = fmt::format("seed {}, step {}, {}\n{}{}", seed, step, graph->value(v).name,
                                                toText(domain), graph::toText(*graph));
          QVERIFY2(domain.isComplete, where.c_str());
          for (const std::string& placement : placementsAhead(cursor, brute.plans(), v))
            QVERIFY2(textsOf(domain.open).contains(placement), (placement + "\n" + where).c_str());
          for (const GonePlacement& gone : domain.gone) {
            QVERIFY2(!gone.why.empty(), where.c_str());
            QVERIFY2(!textsOf(domain.open).contains(gone.placement.text()), where.c_str());
            byRules += gone.by == RemovedBy::Rules;
            byDemand += gone.by == RemovedBy::Demand;
            byConflict += gone.by == RemovedBy::Conflict;
            if (gone.by != RemovedBy::Step) continue;
            ++byStep;
            // Before that Try the placement was open; after it the placement is gone.
            QVERIFY2(gone.at.has_value() && *gone.at <= step, where.c_str());
            Cursor other(trace);
            other.seek(*gone.at - 1);
            QVERIFY2(textsOf(domains.at(other, v).open).contains(gone.placement.text()) ||
                         other.assignedCount() >= cursor.assignedCount(),
                     where.c_str());
            other.seek(*gone.at);
            QVERIFY2(!textsOf(domains.at(other, v).open).contains(gone.placement.text()), where.c_str());
          }
        }
      }
    }
    QVERIFY2(!seeds.isFull() || (plansSeen > 100 && byStep > 100 && byRules > 100 && byDemand > 0 && byConflict > 0),
             fmt::format("{} plans, {} {} {} {}", plansSeen, byStep, byRules, byDemand, byConflict).c_str());
  }

  /// A placement that the rules forbid is in no plan without demands. A placement that a demand removed returns when
  /// the demand is lifted.
  void namesTheDemandThatHasToGo() {
    const auto problem = test::problemOf(test::llamaGraph(), 2, {"model.layers.0.mlp.up_proj!=column"});
    const auto trace = test::record(problem).trace;
    LiveDomains domains(trace);
    Cursor cursor(trace);
    const Graph& graph = *problem->graph;
    ValueId up;
    for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
      if (graph::layerShape(graph, n) && graph::layerName(graph, n) == "model.layers.0.mlp.up_proj")
        up = graph.node(n).results.front();
    }
    const LiveDomain domain = domains.at(cursor, up);
    const auto gone = std::find_if(domain.gone.begin(), domain.gone.end(), [](const GonePlacement& g) {
      return g.by == RemovedBy::Demand && g.placement == Placement::split(2);
    });
    QVERIFY2(gone != domain.gone.end(), toText(domain).c_str());
    QCOMPARE(plainText(gone->why), "Your pin `model.layers.0.mlp.up_proj!=column` removes it.");
    const auto free = test::record(test::problemOf(test::llamaGraph(), 2)).trace;
    LiveDomains freely(free);
    Cursor start(free);
    QVERIFY(textsOf(freely.at(start, up).open).contains("S(2)"));
  }

  /// The pinned strategy gives the placement, but its input cannot have the placement that it needs.
  void namesTheInputThatAPinnedStrategyLacks() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.hasLoss = false}), 2, {"lm_head=row"})).trace;
    const Graph& graph = *trace->problem()->graph;
    LiveDomains domains(trace);
    const LiveDomain domain = domains.at(Cursor(trace), graph.outputs.front().value);
    const auto gone = std::find_if(domain.gone.begin(), domain.gone.end(),
                                   [](const GonePlacement& g) { return g.placement.isReplicated(); });
    QVERIFY2(gone != domain.gone.end() && gone->by == RemovedBy::Demand, toText(domain).c_str());
    const std::string why = plainText(gone->why);
    QVERIFY2(why.starts_with("Your pin `lm_head=row` removes it: row gives it, but needs `") &&
                 why.ends_with(" split on its last dimension (S(2)), which can only be R."),
             why.c_str());
  }

  void saysWhichStepRemovedAPlacement() {
    const auto trace = test::record(test::problemOf(test::llamaGraph({.layers = 1}), 2)).trace;
    LiveDomains domains(trace);
    Cursor cursor(trace);
    const Graph& graph = *trace->problem()->graph;
    cursor.seek(trace->size());
    std::size_t reported = 0;
    for (ValueId v : idRange<ValueId>(graph.values.size())) {
      const LiveDomain domain = domains.at(cursor, v);
      QCOMPARE(domain.open.size(), std::size_t{1});
      QVERIFY(domain.isAssigned);
      QCOMPARE(domain.open.front(), *cursor.placementOf(v));
      for (const GonePlacement& gone : domain.gone) {
        if (gone.by != RemovedBy::Step) continue;
        ++reported;
        QVERIFY2(plainText(gone.why).find(" chose ") != std::string::npos, plainText(gone.why).c_str());
        QVERIFY(gone.at && cursor.choiceOf(gone.node));
      }
    }
    QVERIFY2(reported > 20, fmt::format("{}", reported).c_str());
  }

  void isDoneAtOnceWhenTheUserStops() {
    const auto trace = test::record(test::problemOf(test::llamaGraph(), 2)).trace;
    LiveDomains domains(trace);
    Cursor cursor(trace);
    std::stop_source stop;
    stop.request_stop();
    const ValueId last = ValueId(trace->problem()->graph->values.size() - 1);
    QVERIFY(!domains.at(cursor, last, Progress(stop.get_token())).isComplete);
    QVERIFY(domains.at(cursor, last).isComplete);  // and no incomplete data remain
  }
};

QTEST_APPLESS_MAIN(TestLiveDomain)
#include "tst_live_domain.moc"
