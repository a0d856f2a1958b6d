/// Reading reports of runs: fields survive a round trip, and an error for another file is one sentence.
#include "pipeline/report/report.h"
#include "pipeline/report/report_read.h"
#include "pipeline/settings/run_settings.h"
#include "tests/support/need.h"
#include "tests/support/plan_fixture.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <cmath>
#include "plan/build/plan_request.h"

using namespace cleave;
using namespace cleave::pipeline;
using Json = nlohmann::json;

namespace {

/// One linear layer, split over two ranks.
std::shared_ptr<const plan::Plan> tinyPlan() {
  plan::PlanRequest request = plan::testing::requestFor(
      "x: f32[4,8] = input\nw: f32[8,8] = parameter @up\ny: f32[4,8] = aten::linear(x, w, None) @up\nreturn y=y\n",
      {.worldSize = 2}, {{"up", rules::Strategy::Column}});
  request.model.batch = 4;
  return std::make_shared<const plan::Plan>(plan::testing::planned(request));
}

RunReport trainedReport() {
  RunReport report;
  report.verdict = RunVerdict::Passed;
  report.comparedWith = "an unsplit run";
  report.spec.backend = launch::Backend::Gloo;
  report.spec.rtol = report.spec.atol = 1e-4;
  report.spec.training = {
      .steps = 2, .optimizer = program::Optimizer::Momentum, .learningRate = 0.5, .clipNorm = 1.5, .accumulate = 3};
  report.steps = {{1, 2, 6.5, 4.25, true, 900}, {2, 2, 4.125, 3.5, true, 700}};
  report.outputs = {{.name = "losses", .maxAbs = 1e-7, .maxRel = 2e-7, .ofTolerance = 0.25, .undetermined = 3}};
  report.outcome.succeeded = true;
  for (int rank = 0; rank < 2; ++rank) {
    protocol::RankResult result{.bytesRead = 128, .shardBytes = 128, .stepMicroseconds = 800 + rank};
    result.peak = {1000 + rank, 2000};
    result.allReduce = 4;
    report.outcome.results.emplace_back(result);
    MemoryComparison memory;
    memory.lines = {{protocol::toText(protocol::MemoryKind::Parameters), 128, 128}, {"context", 4096, std::nullopt}};
    memory.peak = {"peak", 1000 + rank, 900};
    report.memory[rank] = memory;
  }
  report.timeline.lanes.resize(2);
  report.timeline.sums = {{10'000, 2'000, 500, 13'000, 0}, {9'000, 2'000, 0, 12'000, 500}};
  report.timeline.totalNs = 13'000;
  report.timeline.skewNs = 500;
  report.notes = {"Gloo on CPUs, as asked."};
  return report;
}

std::string written() { return toJson(trainedReport(), *tinyPlan()); }

/// The error for a report with one altered field; "read" if there is no error.
std::string saidOf(const std::string& pointer, const Json& value) {
  Json json = Json::parse(written());
  json[Json::json_pointer(pointer)] = value;
  const auto run = readReport(json.dump(), "run.json");
  return run ? "read" : run.error().message;
}

}  // namespace

class TestReportRead : public QObject {
  Q_OBJECT
 private slots:
  void aReportHasTheArgumentsOfItsRun() {
    const Json json = Json::parse(written());
    QCOMPARE(json["mode"].get<std::string>(), std::string("train"));
    spec::RunSpec asked;
    const auto arguments = json["arguments"].get<std::vector<std::string>>();
    QVERIFY(settings::readArguments(pipeline::runSettings(spec::RunMode::Train), arguments, asked));
    spec::RunSpec ran = trainedReport().spec;
    ran.training.optimizer = asked.training.optimizer;  // a setting of the plan
    QVERIFY(asked.training == ran.training);
    QVERIFY(asked.rtol == ran.rtol && asked.atol == ran.atol && asked.backend == ran.backend);
  }

  void whatWasWrittenComesBack() {
    const RunReport report = trainedReport();
    const PastRun run = test::need(readReport(written(), "run.json"));
    QCOMPARE(run.plan.model, std::string("models/tiny"));
    QCOMPARE(run.plan.ranks, 2);
    QCOMPARE(run.plan.engine, std::string("reference"));
    QCOMPARE(run.plan.batch, 4);
    const std::vector<std::string> planned{"--ranks", "2"};
    QVERIFY(std::ranges::search(run.plan.arguments, planned).begin() != run.plan.arguments.end());
    QCOMPARE(run.mode, std::string("train"));
    QVERIFY(!run.arguments.empty());
    QCOMPARE(run.report.verdict, RunVerdict::Passed);
    QCOMPARE(run.report.spec.training.steps, 2);
    QCOMPARE(run.report.spec.training.optimizer, program::Optimizer::Momentum);
    QCOMPARE(run.report.spec.training.learningRate, 0.5);
    QCOMPARE(run.report.spec.training.clipNorm, std::optional(1.5));
    QCOMPARE(run.report.spec.training.accumulate, 3);
    QCOMPARE(run.report.steps[1].loss, 4.125);
    QCOMPARE(run.report.steps[0].gradientNorm, 4.25);
    QCOMPARE(run.loss(), std::optional(4.125));
    QCOMPARE(run.stepMicroseconds(), std::optional(900.0));
    QCOMPARE(run.report.outputs[0].ofTolerance, 0.25);
    QCOMPARE(run.report.outputs[0].undetermined, 3);
    QCOMPARE(run.report.outcome.results[1]->peak, report.outcome.results[1]->peak);
    QCOMPARE(run.report.memory.at(1).peak.measured, 1001);
    QCOMPARE(run.report.memory.at(0).lines.size(), std::size_t(2));
    QCOMPARE(run.report.memory.at(0).lines[0].name, protocol::toText(protocol::MemoryKind::Parameters));
    QVERIFY(!run.report.memory.at(0).lines[1].predicted);
    QCOMPARE(run.report.timeline.sums[0].compute, 10'000);
    QCOMPARE(run.report.timeline.totalNs, 13'000);
    QVERIFY(run.predictedStepNs > 0);
    QCOMPARE(run.report.notes, report.notes);
    QVERIFY(run.report.outcome.succeeded);
  }

  void ranksOfAllReplicasComeBack() {
    RunReport report = trainedReport();
    report.mesh = {.dp = 2, .tp = 2};
    for (int rank = 2; rank < 4; ++rank) {
      report.outcome.results.push_back(report.outcome.results[0]);
      report.memory[rank] = report.memory[0];
    }
    const PastRun run = test::need(readReport(toJson(report, *tinyPlan()), "run.json"));
    QCOMPARE(run.report.mesh, report.mesh);
    QCOMPARE(run.report.outcome.results.size(), std::size_t(4));
    QVERIFY(run.report.outcome.results[3].has_value());
    QCOMPARE(run.report.memory.at(3).peak.measured, 1000);
    const std::string said = saidOf("/mesh/dp", 2049);
    QVERIFY2(said.starts_with("run.json: mesh must be a mesh of at most 4096 ranks, but it is "), said.c_str());
  }

  void aFailureComesBack() {
    RunReport report = trainedReport();
    report.outcome.succeeded = false;
    report.outcome.results[1].reset();
    report.outcome.firstFailure = launch::RankExit{1, true, ErrorCode::Environment, "was killed by signal 9", "last"};
    report.verdict = RunVerdict::Failed;
    const PastRun run = test::need(readReport(toJson(report, *tinyPlan()), "run.json"));
    QCOMPARE(run.report.verdict, RunVerdict::Failed);
    QCOMPARE(run.report.outcome.firstFailure->rank, 1);
    QCOMPARE(run.report.outcome.firstFailure->code, ErrorCode::Environment);
    QCOMPARE(run.report.outcome.firstFailure->what, std::string("was killed by signal 9"));
    QVERIFY(!run.report.outcome.results[1]);
  }

  /// JSON has no NaN and no infinity.
  void readsNanAndInfinity() {
    RunReport report = trainedReport();
    report.steps[1].loss = std::nan("");
    report.outputs[0].maxAbs = HUGE_VAL;
    report.verdict = RunVerdict::NotChecked;
    const PastRun run = test::need(readReport(toJson(report, *tinyPlan()), "run.json"));
    QVERIFY(std::isnan(run.report.steps[1].loss));
    QVERIFY(std::isinf(run.report.outputs[0].maxAbs));
    QCOMPARE(run.report.verdict, RunVerdict::NotChecked);
  }

  void aHostileReportIsRefused_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("another schema") << "/schema"
                                    << "\"cleave.plan/1\""
                                    << "a report of a run";
    QTest::newRow("no schema") << "/schema"
                               << "7"
                               << "schema must be";
    QTest::newRow("too many ranks") << "/plan/ranks"
                                    << "1000000000"
                                    << "ranks must be";
    QTest::newRow("no ranks") << "/plan/ranks"
                              << "0"
                              << "ranks must be";
    QTest::newRow("a rank beyond") << "/ranks/0/rank"
                                   << "2"
                                   << "rank must be";
    QTest::newRow("a rank below") << "/memory/0/rank"
                                  << "-1"
                                  << "rank must be";
    QTest::newRow("an output's rank") << "/outputs/0/rank"
                                      << "9"
                                      << "rank must be";
    QTest::newRow("negative bytes") << "/ranks/1/peak_memory"
                                    << "-5"
                                    << "peak_memory must be";
    QTest::newRow("a list for a number") << "/training/learning_rate"
                                         << "[1]"
                                         << "learning_rate must be";
    QTest::newRow("an unknown optimizer") << "/training/optimizer"
                                          << "\"magic\""
                                          << "\"magic\"";
    QTest::newRow("an unknown backend") << "/backend"
                                        << "\"mpi\""
                                        << "\"mpi\"";
    QTest::newRow("a time beyond the limit") << "/time/step_us"
                                             << "1e300"
                                             << "number of microseconds";
    QTest::newRow("a negative time") << "/time/ranks/0/compute_us"
                                     << "-1"
                                     << "number of microseconds";
    QTest::newRow("steps that are not a list") << "/training/steps"
                                               << "{}"
                                               << "steps must be";
    QTest::newRow("a verdict in words") << "/passed"
                                        << "\"yes\""
                                        << "passed must be";
    QTest::newRow("a failure without words") << "/first_failure"
                                             << "{\"rank\": 0}"
                                             << "what is missing";
  }
  void aHostileReportIsRefused() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, phrase);
    const std::string said = saidOf(pointer.toStdString(), Json::parse(value.toStdString()));
    QVERIFY2(said.find(phrase.toStdString()) != std::string::npos, said.c_str());
    QVERIFY2(said.find("run.json") != std::string::npos, said.c_str());
  }

  /// Newer versions may write more fields, older ones fewer.
  void ignoresUnknownFields() {
    QCOMPARE(saidOf("/later", Json::parse("{\"any\": [1, 2]}")), std::string("read"));
    QCOMPARE(saidOf("/memory/0/parts/0/name", "dreams"), std::string("read"));
    Json json = Json::parse(written());
    for (const char* key : {"time", "memory", "training", "warnings"}) json.erase(key);
    json["plan"].erase("engine");
    const PastRun run = test::need(readReport(json.dump(), "run.json"));
    QVERIFY(!run.report.spec.training.isAsked());
    QVERIFY(run.plan.engine.empty());
  }

  void refusesTruncatedReports() {
    const std::string text = written();
    for (std::size_t length = 0; length < text.size(); length += 37) {
      const auto run = readReport(std::string_view(text).substr(0, length), "run.json");
      QVERIFY(!run);
      QVERIFY2(run.error().message.find("run.json") != std::string::npos, run.error().message.c_str());
    }
  }
};

QTEST_APPLESS_MAIN(TestReportRead)
#include "tst_report_read.moc"
