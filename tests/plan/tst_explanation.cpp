// The query for replication reasons is separate from the plan: a plan is complete without reasons, and a stopped query
// has no reasons.
#include "plan/build/make_plan.h"
#include "plan/replication/explain_replication.h"
#include "tests/support/plan_fixture.h"

#include <QTest>

#include <stop_token>

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestExplanation : public QObject {
  Q_OBJECT
 private slots:
  /// 16 and 8 features do not divide by 3 ranks.
  void countsReplicatedPartsWithoutReasons() {
    const PlanRequest request = requestFor(kMlp, context(3), {});
    const Plan explained = planned(request);
    const auto plain = makePlan(request, {});
    QVERIFY2(plain.has_value(), plain ? "" : plain.error().message.c_str());
    QCOMPARE(plain->layers.size(), std::size_t(2));
    for (std::size_t i = 0; i < plain->layers.size(); ++i) {
      QVERIFY(std::holds_alternative<NotKnown>(plain->layers[i].replication));
      QVERIFY(!std::holds_alternative<NotKnown>(explained.layers[i].replication));
      QCOMPARE(plain->layers[i].axis, std::string("replicated"));
    }
    QVERIFY(plain->shares.replicatedFs > 0);
    QVERIFY(plain->shares.replicatedFs == explained.shares.replicatedFs);
    QVERIFY(plain->shares.largestWhole && explained.shares.largestWhole);
    QCOMPARE(plain->shares.largestWhole->bytes, explained.shares.largestWhole->bytes);
    QVERIFY(std::holds_alternative<NotKnown>(plain->shares.largestWhole->why));
  }

  void knowsSplitLayersWithoutReasons() {
    const PlanRequest request = requestFor(kMlp, context(2), kMlpSplit);
    const auto plain = makePlan(request, {});
    QVERIFY2(plain.has_value(), plain ? "" : plain.error().message.c_str());
    for (const LayerPlan& layer : plain->layers)
      QVERIFY2(std::holds_alternative<Split>(layer.replication), layer.name.c_str());
    QVERIFY(plain->warnings == planned(request).warnings);
  }

  void aStoppedQueryHasNoReasons() {
    const PlanRequest request = requestFor(kMlp, context(2), {});
    std::stop_source stop;
    stop.request_stop();
    const Explanation why =
        explainReplication(*request.problem, *request.solution, request.engine, nullptr, Progress(stop.get_token()));
    for (const NodeId node : idRange<NodeId>(request.problem->graph->nodes.size())) {
      QVERIFY(std::holds_alternative<NotKnown>(why.weight(node)));
      QVERIFY(std::holds_alternative<NotKnown>(why.work(node)));
    }
  }
};

QTEST_APPLESS_MAIN(TestExplanation)
#include "tst_explanation.moc"
