// Shares of work are exact for models whose FLOPs exceed 64 bits.
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"

#include <nlohmann/json.hpp>
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestShares : public QObject {
  Q_OBJECT
 private slots:
  /// Training with a large batch often needs 1e20 FLOPs per step or more.
  void flopsBeyond64BitsAreCounted() {
    const std::int64_t batch = 1 << 20, sequence = 8192;
    const test::LlamaSizes sizes{.layers = 2,
                                 .hidden = 4096,
                                 .heads = 32,
                                 .kvHeads = 32,
                                 .intermediate = 14336,
                                 .vocab = 256,
                                 .batch = batch,
                                 .sequence = sequence};
    PlanRequest request;
    solve::Problem problem;
    problem.graph = test::llamaGraph(sizes);
    problem.context = context(2, rules::SequenceParallel::Off, rules::CandidateSet::Full);
    problem.cost.memoryBudget = std::int64_t{1} << 60;
    request.model.batch = batch;
    request.model.sequence = sequence;
    request.problem = std::make_shared<const solve::Problem>(problem);
    const auto sink = solve::makeCountingSink();
    auto result = solve::solve(problem, solve::Engine::Learning, *sink);
    QVERIFY(result && result->solution);
    request.engine = solve::Engine::Learning;
    request.solution = std::make_shared<const solve::Solution>(*result->solution);
    const Plan plan = planned(request);
    const double tokens = double(batch) * sequence,
                 weights = 2 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 14336) + 4096.0 * 256;
    const double products = 2 * tokens * weights + 2 * 4 * tokens * sequence * 4096;
    QVERIFY(products > 9.3e18);
    QVERIFY2(std::abs(double(plan.shares.flops) / products - 1) < 0.01, toText(plan.shares).c_str());
    QVERIFY2(plan.shares.flopsShare() > 0.99, toText(plan.shares).c_str());
    const std::string text = toJson(plan);
    const auto shares = nlohmann::json::parse(text)["shares"];
    QVERIFY(std::abs(shares["flops"].get<double>() / products - 1) < 0.01);
    QVERIFY(std::abs(shares["rank_flops"].get<double>() * 2 / products - 1) < 0.02);
    const auto again = planFromJson(text);
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toText(again->shares), toText(plan.shares));
    QCOMPARE(toJson(*again), text);
  }
};

QTEST_APPLESS_MAIN(TestShares)
#include "tst_shares.moc"
