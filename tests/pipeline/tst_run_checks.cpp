/// The checks of a run. Scripts act as ranks, and each deviates from its plan in one point.
#include "base/output_file.h"
#include "pipeline/memory/memory_check.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/report/report.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/run.h"
#include "pipeline/run/run_audit.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"

#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>
#include <functional>
#include "plan/build/unsplit_memory.h"

using namespace cleave;
using protocol::CollectiveDone;
using protocol::RankResult;

namespace {

template <class T>
T need(Result<T> result) {
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

/// The messages of a rank.
struct Report {
  std::vector<CollectiveDone> collectives;
  RankResult result;

  std::string lines(int rank) const {
    std::string text = protocol::encode(protocol::Hello{protocol::kProtocolVersion, rank, 1, "cpu"});
    for (const CollectiveDone& done : collectives) text += protocol::encode(done);
    return text + protocol::encode(result);
  }
};
using Fault = std::function<void(Report&)>;

Report reportAsPlanned(const plan::Plan& plan, int rank) {
  Report report;
  for (const plan::CollectivePlan& planned : plan.collectives) {
    const auto index = static_cast<std::int32_t>(report.collectives.size());
    report.collectives.push_back({index, std::string(rules::toText(planned.kind)), planned.bytes, 1});
  }
  auto traffic = plan::trafficByKind(plan.collectives);
  report.result.allReduce = traffic[rules::CollectiveKind::AllReduce].count;
  report.result.allGather = traffic[rules::CollectiveKind::AllGather].count;
  report.result.reduceScatter = traffic[rules::CollectiveKind::ReduceScatter].count;
  report.result.bytesRead = report.result.shardBytes = program::shardBytes(plan.parameters, rank);
  report.result.largestParameterAllocation = 4096;
  return report;
}

}  // namespace

class RunChecksTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;
  std::shared_ptr<const plan::Plan> m_plan;

  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(m_folder.path().toStdString()) / name;
  }

  /// A run in which rank 1 reports a fault.
  Result<pipeline::RunReport> scripted(std::shared_ptr<const plan::Plan> plan, const Fault& fault,
                                       bool ignoreMemory = false, bool compareUnsplit = false) {
    for (int rank = 0; rank < plan->spec.ranks; ++rank) {
      Report report = reportAsPlanned(*m_plan, rank);
      if (rank == 1) fault(report);
      if (!writeFile(path("lines.") += std::to_string(rank), report.lines(rank))) qFatal("no file");
    }
    pipeline::RunRequest request;
    request.plan = std::move(plan);
    request.backend = launch::Backend::Gloo;
    request.compareUnsplit = compareUnsplit;
    request.ignoreMemory = ignoreMemory;
    request.rankProgram = path("rank.sh");
    return pipeline::runPlan(request, [](const launch::RankEvent&) {});
  }

 private slots:
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    const auto model = need(pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}));
    spec::PlanSpec options;
    options.engine = solve::Engine::Reference;
    options.sequenceParallel = rules::SequenceParallel::On;
    m_plan = need(pipeline::planModel(model, need(pipeline::solveModel(model, options))));
    QVERIFY(plan::trafficByKind(m_plan->collectives).size() >= 2);
    QVERIFY(writeFile(path("rank.sh"), "#!/bin/sh\ncat \"$(dirname \"$0\")/lines.$RANK\" >&3\n"));
    std::filesystem::permissions(path("rank.sh"), std::filesystem::perms::owner_all);
  }

  /// A missing or repeated collective is found in each part of a step: micro-batches forward and backward, the sums at
  /// the end, and the norm.
  void trainingIsCheckedCollectiveByCollective() {
    const auto model = need(pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}));
    spec::PlanSpec options;
    options.engine = solve::Engine::Reference;
    options.sequenceParallel = rules::SequenceParallel::On;
    options.cost.isTraining = true;
    const auto plan = need(pipeline::planModel(model, need(pipeline::solveModel(model, options))));
    program::Training training;
    training.steps = 2;
    training.accumulate = 2;
    training.clipNorm = 1.0;
    std::vector<program::Collective> step, sums;
    for (int batch = 0; batch < 2; ++batch) {
      for (const auto& forward : plan->collectives) step.push_back({forward.kind, forward.bytes});
      for (const auto& backward : plan->backward->collectives) {
        if (backward.node.isValid()) step.push_back(backward.collective);
        if (!backward.node.isValid() && batch == 0) sums.push_back(backward.collective);
      }
    }
    QVERIFY(!sums.empty());  // norms on the sequence
    step.insert(step.end(), sums.begin(), sums.end());
    step.push_back({rules::CollectiveKind::AllReduce, 8});
    const auto violationsOf = [&](std::size_t leftOut) {
      pipeline::RunAudit audit(*plan, false, training);
      launch::RunOutcome outcome;
      for (int rank = 0; rank < plan->spec.ranks; ++rank) {
        protocol::RankResult result;
        std::int32_t index = 0;
        for (std::size_t i = 0; i < 2 * step.size(); ++i) {
          if (i == leftOut && rank == 1) continue;
          const program::Collective& done = step[i % step.size()];
          ++(done.kind == rules::CollectiveKind::AllReduce   ? result.allReduce
             : done.kind == rules::CollectiveKind::AllGather ? result.allGather
                                                             : result.reduceScatter);
          audit.observe({rank, CollectiveDone{index++, std::string(rules::toText(done.kind)), done.bytes, 1}, {}});
        }
        outcome.results.push_back(result);
      }
      return audit.violations(outcome);
    };
    QCOMPARE(violationsOf(2 * step.size()), std::vector<std::string>());
    for (const std::size_t leftOut : {std::size_t{0}, plan->collectives.size(), step.size() - 1, 2 * step.size() - 1}) {
      const auto found = violationsOf(leftOut);
      QVERIFY2(!found.empty() && found[0].starts_with("Rank 1 "), std::to_string(leftOut).c_str());
    }
  }

  void aRankThatDoesOtherwiseThanPlannedFailsTheRun_data() {
    QTest::addColumn<Fault>("fault");
    QTest::addColumn<QString>("violation");  // a regular expression; empty: no violation
    const auto row = [](const char* name, Fault fault, const char* violation) {
      QTest::newRow(name) << fault << QString(violation);
    };
    row(
        "as planned", [](Report&) {}, "");
    row(
        "another kind",
        [](Report& r) { r.collectives[2].kind = r.collectives[2].kind == "all_reduce" ? "all_gather" : "all_reduce"; },
        "^Rank 1 executed all_\\w+ of \\d+ bytes as collective 3, but the plan has \\w+ of \\d+ bytes \\(after "
        "\\w+\\)\\.$");
    row(
        "other bytes", [](Report& r) { r.collectives[0].bytes -= 4; },
        "^Rank 1 executed \\w+ of \\d+ bytes as collective 1, but the plan has");
    row(
        "another order",
        [](Report& r) {
          const auto other = std::find_if(r.collectives.begin(), r.collectives.end(),
                                          [&](const auto& c) { return c.kind != r.collectives[0].kind; });
          std::swap(r.collectives[0].kind, other->kind);
          std::swap(r.collectives[0].bytes, other->bytes);
        },
        "^Rank 1 executed \\w+ of \\d+ bytes as collective 1, but the plan has");
    row(
        "one too few", [](Report& r) { r.collectives.pop_back(); },
        "^Rank 1 reported \\d+ collectives, but the plan has \\d+\\.$");
    row(
        "one too many", [](Report& r) { r.collectives.push_back(r.collectives.back()); },
        "^Rank 1 reported \\d+ collectives, but the plan has \\d+\\.$");
    row(
        "other counts", [](Report& r) { ++r.result.allGather; },
        "^Rank 1 counted \\d+ × all_gather, but the plan has \\d+\\.$");
    row(
        "bytes not read", [](Report& r) { r.result.bytesRead = r.result.shardBytes -= 1; },
        "^Rank 1 read \\d+ bytes of weights, but its part of the shard map has");
    row(
        "bytes read twice", [](Report& r) { r.result.bytesRead = r.result.shardBytes *= 2; },
        "^Rank 1 read \\d+ bytes");
    row(
        "a whole weight allocated", [](Report& r) { r.result.largestParameterAllocation = 64 << 20; },
        "^Rank 1 allocated 67108864 bytes at once");
  }
  void aRankThatDoesOtherwiseThanPlannedFailsTheRun() {
    QFETCH(Fault, fault);
    QFETCH(QString, violation);
    const auto report = need(scripted(m_plan, fault));
    QVERIFY2(report.outcome.succeeded, report.outcome.firstFailure ? report.outcome.firstFailure->what.c_str() : "");
    QCOMPARE(report.violations.size(), violation.isEmpty() ? 0u : 1u);
    QVERIFY(report.verdict == (violation.isEmpty() ? pipeline::RunVerdict::NotChecked : pipeline::RunVerdict::Failed));
    const std::string json = pipeline::toJson(report, *m_plan);
    QVERIFY2(json.find(violation.isEmpty() ? "\"passed\": null" : "\"passed\": false") != std::string::npos,
             json.c_str());
    if (violation.isEmpty()) return;
    const QString said = QString::fromStdString(report.violations.front());
    QVERIFY2(QRegularExpression(violation).match(said).hasMatch(), qPrintable(said));
  }

  void ranksThatDoNotFitAreNotStarted() {
    auto huge = std::make_shared<plan::Plan>(*m_plan);
    huge->memory.parameters = std::int64_t(1) << 50;
    const auto check = pipeline::checkMemory(*huge, launch::Backend::Gloo);
    QVERIFY(!check.fits());
    QVERIFY(check.needed > 2 * (std::int64_t(1) << 50));
    QVERIFY(pipeline::checkMemory(*m_plan, launch::Backend::Gloo).fits());
    const auto refused = scripted(huge, [](Report&) {});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Environment);
    QVERIFY2(refused.error().message.starts_with("2 ranks need a predicted 2.00 PiB of memory (per rank 1.00 PiB for "
                                                 "the program and 120 MiB for LibTorch, "),
             refused.error().message.c_str());
    QVERIFY2(refused.error().message.ends_with(" free."), refused.error().message.c_str());
    QVERIFY(pipeline::checkUnsplitMemory(*m_plan).fits());
    const auto forced = need(scripted(
        huge, [](Report&) {}, true));
    QVERIFY(forced.outcome.succeeded);
    QCOMPARE(forced.notes.size(), std::size_t(2));  // about the backend and the memory
  }

  /// Downloads and savers replace a file; an editor writes to it.
  void aChangedModelIsNoticed_data() {
    QTest::addColumn<QString>("how");
    for (const char* how : {"replaced", "written to", "removed", "left alone"}) QTest::newRow(how) << QString(how);
  }
  void aChangedModelIsNoticed() {
    QFETCH(QString, how);
    QTemporaryDir folder;
    fs::copy(CLEAVE_TEST_DATA "/models/llama", folder.path().toStdString(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    auto plan = std::make_shared<plan::Plan>(*m_plan);
    plan->model.source = folder.path().toStdString();
    pipeline::RunRequest request;
    request.plan = plan;
    const pipeline::ModelFiles before(request);
    const fs::path weights = folder.filePath("model-00002-of-00003.safetensors").toStdString();
    if (how == "replaced") {
      fs::copy_file(weights, weights.string() + ".new");
      fs::rename(weights.string() + ".new", weights);
    } else if (how == "written to") {
      fs::permissions(weights, fs::perms::owner_write, fs::perm_options::add);
      std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary).seekp(4096).put('x');
    } else if (how == "removed") {
      fs::remove(weights);
    }
    const auto unchanged = before.checkUnchanged();
    QCOMPARE(unchanged.has_value(), how == "left alone");
    if (unchanged) return;
    QCOMPARE(unchanged.error().code, ErrorCode::BadInput);
    QVERIFY2(unchanged.error().message.starts_with(weights.string() + " changed during the run"),
             unchanged.error().message.c_str());
  }

  /// A plan for training can also run forward passes, which save no activations.
  void aPassNeedsLessThanAStep() {
    const auto model = need(pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}));
    spec::PlanSpec options;
    options.engine = solve::Engine::Reference;
    options.cost.isTraining = true;
    const auto plan = need(pipeline::planModel(model, need(pipeline::solveModel(model, options))));
    const pipeline::Workload pass, step{.isTraining = true};
    QCOMPARE(pipeline::predictedMemory(*plan, pass), plan->memory.total());
    QCOMPARE(pipeline::predictedMemory(*plan, step), plan->cost.bytes());
    const auto needed = [&](const pipeline::Workload& workload) {
      return pipeline::checkMemory(*plan, launch::Backend::Gloo, workload).needed;
    };
    QCOMPARE(needed(step) - needed(pass), plan->spec.ranks * (plan->cost.bytes() - plan->memory.total()));
    QVERIFY(plan->cost.bytes() > plan->memory.total());
    QVERIFY(pipeline::checkUnsplitMemory(*plan, step).needed > pipeline::checkUnsplitMemory(*plan, pass).needed);
  }

  /// Otherwise the ranks would fail during the run, or compute other values.
  void aPlanWhoseFolderHoldsAnotherModelIsNotStarted() {
    plan::Plan other = *m_plan;
    other.model.source = CLEAVE_TEST_DATA "/models/qwen2";
    for (const bool compareUnsplit : {true, false}) {
      const auto report = scripted(
          std::make_shared<const plan::Plan>(other), [](Report&) {}, false, compareUnsplit);
      QVERIFY(!report);
      QCOMPARE(report.error().code, ErrorCode::BadInput);
      QVERIFY2(report.error().message.find("is not the planned one: ") != std::string::npos,
               report.error().message.c_str());
    }
  }

  /// The prediction for the unsplit run equals that of the plan for one rank.
  void theUnsplitRunHoldsTheModelWhole() {
    const auto model = need(pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}));
    spec::PlanSpec options;
    options.ranks = 1;
    const auto whole = need(pipeline::planModel(model, need(pipeline::solveModel(model, options))));
    QCOMPARE(plan::unsplitMemory(*m_plan).total(), whole->memory.total());
    QVERIFY(whole->memory.parameters > m_plan->memory.parameters);
  }

  /// Ranks that fit do not start if the unsplit run for the comparison does not fit.
  void anUnsplitRunThatDoesNotFitIsNotStarted() {
    auto wide = std::make_shared<plan::Plan>(*m_plan);
    wide->parameters.front().type.shape = {std::int64_t(1) << 48};  // the full shape; the part per rank stays small
    QVERIFY(pipeline::checkMemory(*wide, launch::Backend::Gloo).fits());
    const auto check = pipeline::checkUnsplitMemory(*wide);
    QVERIFY(!check.fits());
    QVERIFY(check.needed > std::int64_t(1) << 50);
    const auto refused = scripted(
        wide, [](Report&) {}, false, true);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Environment);
    QVERIFY2(
        refused.error().message.starts_with("The unsplit run for the comparison needs a predicted 1.00 PiB of memory "
                                            "(1.00 PiB for the program, 192 MiB for LibTorch), and "),
        refused.error().message.c_str());
    const auto unchecked = need(scripted(wide, [](Report&) {}));  // without a comparison
    QVERIFY(unchecked.outcome.succeeded);
  }
};

QTEST_GUILESS_MAIN(RunChecksTest)
#include "tst_run_checks.moc"
