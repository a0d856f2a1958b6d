/// Shapes of one model on the same weights: their plans, and the reports about ranks that loaded weights again.
#include "base/output_file.h"
#include "libtorch/capture/capture.h"
#include "pipeline/run/run_shapes.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "tests/support/rows.h"

#include <QTemporaryDir>
#include <QTest>

#include <functional>

using namespace cleave;
using pipeline::ShapeRun;
using protocol::ProgramDone;

namespace {

template <class T>
T needed(Result<T> result) {
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

using OpenedModel = std::shared_ptr<const pipeline::Model>;

Result<OpenedModel> openAt(const char* name, std::int64_t batch, std::int64_t sequence) {
  spec::InputSpec options;
  options.batch = batch;
  options.sequence = sequence;
  return pipeline::openModel(std::string(CLEAVE_TEST_DATA "/families/") + name, options);
}

/// Plans of several shapes on two ranks; the first shape is 2x16.
struct Planned {
  explicit Planned(bool padsToPlanned, const char* name = "llama")
      : planner({[name](std::int64_t batch, std::int64_t sequence) { return openAt(name, batch, sequence); }, 1,
                 padsToPlanned}) {
    const OpenedModel model = needed(openAt(name, 2, 16));
    spec::PlanSpec options;
    options.engine = solve::Engine::Reference;
    const auto solved = needed(pipeline::solveModel(model, options));
    first = needed(planner.first(needed(pipeline::planModel(model, solved)), 2, 16));
  }
  pipeline::ShapePlanner planner;
  ShapeRun first;
};

/// The last reports of a rank for two shapes.
struct Ends {
  ProgramDone first, second;
};
using Fault = std::function<void(Ends&)>;

std::string linesOf(const plan::Plan& plan, const ProgramDone& done) {
  std::string text;
  std::int32_t index = 0;
  for (const plan::CollectivePlan& planned : plan.collectives)
    text +=
        protocol::encode(protocol::CollectiveDone{index++, std::string(rules::toText(planned.kind)), planned.bytes, 1});
  return text + protocol::encode(done);
}

ProgramDone doneAsPlanned(const plan::Plan& plan, std::int32_t index, std::int64_t bytesRead) {
  ProgramDone done{index, "0123456789abcdef", {}};
  auto traffic = plan::trafficByKind(plan.collectives);
  done.result.allReduce = traffic[rules::CollectiveKind::AllReduce].count;
  done.result.allGather = traffic[rules::CollectiveKind::AllGather].count;
  done.result.reduceScatter = traffic[rules::CollectiveKind::ReduceScatter].count;
  done.result.bytesRead = bytesRead;
  return done;
}

}  // namespace

class TestRunShapes : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(m_folder.path().toStdString()) / name;
  }

  /// Runs scripts as ranks; rank 1 reports a fault.
  Result<std::vector<pipeline::RunReport>> scripted(const ShapeRun& first, const ShapeRun& second, const Fault& fault) {
    for (int rank = 0; rank < 2; ++rank) {
      Ends ends{doneAsPlanned(*first.plan, 0, program::shardBytes(first.plan->parameters, rank)),
                doneAsPlanned(*second.plan, 1, 0)};
      if (rank == 1) fault(ends);
      const std::string text = protocol::encode(protocol::Hello{protocol::kProtocolVersion, rank, 1, "cpu"}) +
                               linesOf(*first.plan, ends.first) + linesOf(*second.plan, ends.second) +
                               protocol::encode(ends.second.result);
      if (!writeFile(path("lines." + std::to_string(rank)), text)) qFatal("no file");
    }
    pipeline::RunRequest run;
    run.plan = first.plan;
    run.backend = launch::Backend::Gloo;
    run.compareUnsplit = false;
    run.rankProgram = path("rank.sh");
    return pipeline::runShapes({.run = run, .shapes = {first, second}}, [](const launch::RankEvent&) {});
  }

 private slots:
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    QVERIFY(writeFile(path("rank.sh"), fmt::format("#!/bin/sh\ncat {}.$RANK >&3\n", path("lines").string())));
    std::filesystem::permissions(path("rank.sh"), std::filesystem::perms::owner_all);
  }

  void plansEachShapeOnceAndOnTheSameSplits() {
    Planned planned(/*padsToPlanned=*/false);
    const ShapeRun longer = needed(planned.planner.next(1, 40));
    QVERIFY(longer.plan != planned.first.plan && !longer.isPadded);
    QCOMPARE(longer.plan->model.sequence, std::int64_t(40));
    QCOMPARE(longer.plan->parameters.size(), planned.first.plan->parameters.size());
    int split = 0;
    for (std::size_t i = 0; i < longer.plan->parameters.size(); ++i) {
      const auto &one = longer.plan->parameters[i], &other = planned.first.plan->parameters[i];
      QCOMPARE(one.name, other.name);
      QCOMPARE(one.placement.text(), other.placement.text());
      split += !one.placement.isReplicatedOn(2);
    }
    QVERIFY(split > 10);
    QVERIFY(needed(planned.planner.next(1, 40)).plan == longer.plan);
    QVERIFY(needed(planned.planner.next(2, 16)).plan == planned.first.plan);
    // Without padding, a smaller shape has its own plan.
    QVERIFY(needed(planned.planner.next(1, 8)).plan != planned.first.plan);
  }

  void padsToTheSmallestThatHasRoom() {
    Planned planned(/*padsToPlanned=*/true);
    const ShapeRun longer = needed(planned.planner.next(1, 64));
    QVERIFY(!longer.isPadded);
    const ShapeRun small = needed(planned.planner.next(1, 9));
    QVERIFY(small.isPadded && small.plan == planned.first.plan);
    QCOMPARE(small.model->info.sequence, std::int64_t(9));
    const ShapeRun middle = needed(planned.planner.next(1, 33));
    QVERIFY(middle.isPadded && middle.plan == longer.plan);
    QVERIFY(!needed(planned.planner.next(2, 33)).isPadded);  // no plan has that many rows and positions
  }

  void refusesPaddingThatChangesResults_data() {
    const test::Rows<QString, QString> row("model", "why");
    row("every token sees all others", "bert-no-mask", "each token of BertForMaskedLM attends to all tokens");
    row("both ways", "gemma3_text-both-ways", "attends to all tokens");
  }
  void refusesPaddingThatChangesResults() {
    QFETCH(QString, model);
    QFETCH(QString, why);
    const QByteArray name = model.toUtf8();
    Planned planned(/*padsToPlanned=*/true, name.constData());
    const auto refused = planned.planner.next(1, 9);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadUsage);
    QVERIFY2(refused.error().message.find(why.toStdString()) != std::string::npos, refused.error().message.c_str());
  }

  void reportsWeightsThatWereLoadedAgain_data() {
    QTest::addColumn<Fault>("fault");
    QTest::addColumn<QString>("violation");
    const auto row = [](const char* name, Fault fault, const char* violation) {
      QTest::newRow(name) << fault << QString(violation);
    };
    row(
        "nothing", [](Ends&) {}, "");
    row(
        "bytes", [](Ends& ends) { ends.second.result.bytesRead = 8; },
        "Rank 1 read 8 bytes of weights, but its part of the shard map has 0.");
    row(
        "storages", [](Ends& ends) { ends.second.storages = "0123456789abcdee"; },
        "Rank 1 has the parameters of this shape at other addresses than those of the first.");
    row(
        "no storages",
        [](Ends& ends) {
          ends.first.storages.clear();
          ends.second.storages.clear();
        },
        "Rank 1 has the parameters of this shape at other addresses than those of the first.");
  }
  void reportsWeightsThatWereLoadedAgain() {
    QFETCH(Fault, fault);
    QFETCH(QString, violation);
    Planned planned(/*padsToPlanned=*/false);
    const ShapeRun second = needed(planned.planner.next(1, 24));
    const auto reports = needed(scripted(planned.first, second, fault));
    QCOMPARE(reports.size(), std::size_t(2));
    QVERIFY(reports[0].violations.empty());
    if (violation.isEmpty()) {
      QVERIFY(reports[1].violations.empty());
      QCOMPARE(reports[1].verdict, pipeline::RunVerdict::NotChecked);
      return;
    }
    QCOMPARE(reports[1].violations.size(), std::size_t(1));
    QCOMPARE(QString::fromStdString(reports[1].violations[0]), violation);
    QCOMPARE(reports[1].verdict, pipeline::RunVerdict::Failed);
  }
};

QTEST_GUILESS_MAIN(TestRunShapes)
#include "tst_run_shapes.moc"
