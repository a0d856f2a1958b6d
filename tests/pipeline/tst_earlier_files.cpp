/// Files of version 0.1.0 open, and have the same content. tests/data/earlier/README.md has the commands that wrote
/// them.
#include "pipeline/report/report_read.h"
#include "pipeline/session/session_file.h"
#include "pipeline/source/plan_file.h"
#include "plan/file/seal.h"
#include "solve/trace/trace.h"
#include "tests/support/need.h"

#include <nlohmann/json.hpp>

#include <QTest>

using namespace cleave;
using namespace cleave::pipeline;
using test::need;

namespace {
const fs::path kFolder = CLEAVE_SOURCE_DIR "/tests/data/earlier";
}

class TestEarlierFiles : public QObject {
  Q_OBJECT
 private slots:
  void aPlanOpens() {
    const auto plan = need(readPlanFile(kFolder / "plan.json"));
    QCOMPARE(plan->spec.ranks, 2);
    QCOMPARE(plan->spec.engine, solve::Engine::Reference);
    QVERIFY(plan->spec.cost.isTraining);
    QCOMPARE(plan->spec.pins.size(), std::size_t(1));
    const auto layer = std::ranges::find(plan->layers, "lm_head", &plan::LayerPlan::name);
    QVERIFY(layer != plan->layers.end());
    QCOMPARE(layer->strategy, rules::Strategy::Replicated);  // the file says "whole"
    const std::string text = need(readTextFile(kFolder / "plan.json", program::kPlanLimits.bytes));
    const auto json = nlohmann::json::parse(text);
    QCOMPARE(json[plan::kSealKey].get<std::string>(), plan::sealOf(json));
  }

  void aTraceOpens() {
    const auto trace = need(solve::openTrace(kFolder / "search.trace"));
    QVERIFY(trace->size() > 100);
    QCOMPARE(trace->engine(), std::optional(solve::Engine::Reference));
    QCOMPARE(trace->problem()->pins.size(), std::size_t(1));
  }

  void aReportOpens() {
    const PastRun run = need(readReport(need(readTextFile(kFolder / "report.json", kMostReportBytes)), "report.json"));
    QCOMPARE(run.report.verdict, RunVerdict::Passed);
    QCOMPARE(run.plan.ranks, 2);
    QCOMPARE(run.report.steps.size(), std::size_t(2));
    QVERIFY(run.loss().has_value());
    QVERIFY(run.mode.empty() && run.arguments.empty());
    QVERIFY(run.report.outcome.results[1]->peak.program > 0);
  }

  void aSessionOpens() {
    const SavedSession session = need(readSession(kFolder / "session.cleave"));
    QCOMPARE(session.settings.ranks, 2);
    QCOMPARE(session.settings.candidateSet, std::optional(rules::CandidateSet::Full));  // --menu in the file
    QCOMPARE(session.branches.size(), std::size_t(2));
    QCOMPARE(session.step, std::uint64_t(40));
  }
};

QTEST_GUILESS_MAIN(TestEarlierFiles)
#include "tst_earlier_files.moc"
