#include "formats/safetensors.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "pipeline/compare/compare_tensors.h"
#include "pipeline/run/check_outputs.h"
#include "pipeline/session/samples.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/solve/evaluate_rule.h"
#include "pipeline/solve/reopen.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "tests/support/cases.h"
#include "tests/support/rows.h"

#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include "plan/file/plan_file.h"

using namespace cleave;

namespace {

template <class T>
T need(Result<T> result) {
  if (!result) qFatal("%s", result.error().message.c_str());
  return std::move(*result);
}

fs::path writeFloats(const QTemporaryDir& folder, const char* file, const std::string& name, const graph::Shape& shape,
                     std::vector<float> values) {
  const fs::path path = fs::path(folder.path().toStdString()) / file;
  const formats::TensorView view{name, {graph::DType::Float32, shape}, std::as_bytes(std::span(values))};
  const auto written = formats::writeSafetensors(path, std::span(&view, 1));
  if (!written) qFatal("%s", written.error().message.c_str());
  return path;
}

pipeline::Sample sampleNamed(const std::string& name) {
  for (const auto& sample : need(pipeline::bundledSamples())) {
    if (sample.name == name) return sample;
  }
  qFatal("no sample %s", name.c_str());
}

struct SolvedSample {
  std::shared_ptr<const pipeline::Model> model;
  std::shared_ptr<const pipeline::Solved> solved;
};

SolvedSample solvedSample(const std::string& name) {
  const auto sample = sampleNamed(name);
  const auto model = need(pipeline::openModel(sample.model.string(), sample.input));
  return {model, need(pipeline::solveModel(model, sample.spec))};
}

QStringList conflictReasons(const pipeline::Solved& solved) {
  QStringList reasons;
  std::vector<solve::Event> events(static_cast<std::size_t>(solved.trace->size()));
  events.resize(solved.trace->read(0, events));
  for (const solve::Event& event : events) {
    if (event.type == solve::EventType::Conflict)
      reasons << QString::fromStdString(solved.trace->conflict(solve::ConflictId(event.detail)).reason);
  }
  return reasons;
}

rules::Strategy strategyOf(const SolvedSample& sample, const std::string& layer) {
  for (graph::NodeId node : idRange<graph::NodeId>(sample.model->aten->nodes.size())) {
    const auto& option = sample.solved->result.solution->strategies[node.index()];
    if (option && graph::layerName(*sample.model->aten, node) == layer) return option->strategy;
  }
  qFatal("no layer %s", layer.c_str());
}

std::string verdictOf(const test::Case& asked) {
  const auto verdict = pipeline::evaluateRule(asked.question.substr(0, asked.question.find('\n')));
  return verdict ? *verdict : "refused: " + verdict.error().message;
}

}  // namespace

class TestPipeline : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"pipeline", {{"rules", verdictOf}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }

  void comparesWithinToleranceElementByElement() {
    QTemporaryDir folder;
    const auto actual = writeFloats(folder, "a.safetensors", "logits", {2, 2}, {1.0f, 2.0f, 0.0f, 100.01f});
    const auto near = writeFloats(folder, "b.safetensors", "logits", {2, 2}, {1.00005f, 2.0f, 0.0f, 100.0f});
    const auto rows = need(pipeline::compareTensors(actual, near, {.rtol = 1e-3, .atol = 1e-4}));
    QCOMPARE(rows.size(), std::size_t{1});
    QVERIFY(rows[0].within());
    QVERIFY(std::abs(rows[0].maxAbs - 0.01) < 1e-4);
    QVERIFY(std::abs(rows[0].maxRel - 1e-4) < 1e-6);
    const auto strict = need(pipeline::compareTensors(actual, near, {.rtol = 0, .atol = 1e-4}));
    QVERIFY(!strict[0].within());
    QCOMPARE(strict[0].outside, std::int64_t(1));
  }

  /// No tolerance allows NaN or an infinity on one side only.
  void whatIsNotFiniteEqualsOnlyItself_data() {
    const float nan = std::nanf(""), infinity = HUGE_VALF;
    QTest::addColumn<float>("actual");
    QTest::addColumn<float>("expected");
    QTest::addColumn<int>("outside");
    QTest::addColumn<int>("notANumber");
    QTest::newRow("a number where infinity is expected") << 1.0f << infinity << 1 << 0;
    QTest::newRow("infinity where a number is expected") << infinity << 1.0f << 1 << 0;
    QTest::newRow("the other infinity") << -infinity << infinity << 1 << 0;
    QTest::newRow("the same infinity") << -infinity << -infinity << 0 << 0;
    QTest::newRow("a number where NaN is expected") << 1.0f << nan << 0 << 1;
    QTest::newRow("NaN where a number is expected") << nan << 1.0f << 0 << 1;
    QTest::newRow("NaN on both sides") << nan << nan << 0 << 1;
    QTest::newRow("NaN where infinity is expected") << nan << infinity << 0 << 1;
  }
  void whatIsNotFiniteEqualsOnlyItself() {
    QFETCH(float, actual);
    QFETCH(float, expected);
    QFETCH(int, outside);
    QFETCH(int, notANumber);
    QTemporaryDir folder;
    const auto left = writeFloats(folder, "a.safetensors", "logits", {3}, {1, actual, 2});
    const auto right = writeFloats(folder, "b.safetensors", "logits", {3}, {1, expected, 2});
    const auto row = need(pipeline::compareTensors(left, right, {.rtol = 1e30, .atol = 1e30}))[0];
    QCOMPARE(row.outside, std::int64_t(outside));
    QCOMPARE(row.notANumber, std::int64_t(notANumber));
    QCOMPARE(row.within(), outside + notANumber == 0);
    QCOMPARE(row.maxAbs, outside + notANumber == 0 ? 0.0 : HUGE_VAL);
    QCOMPARE(row.maxRel, row.maxAbs);
  }

  void refusesFilesThatCannotBeCompared_data() {
    QTest::addColumn<std::string>("name");
    QTest::addColumn<QList<int>>("shape");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("lacks the output") << std::string("hidden") << QList<int>{2, 3}
                                      << "has no tensor logits, which this run computes";
    QTest::newRow("more elements") << std::string("logits") << QList<int>{3, 3}
                                   << "logits has shape [3, 3], but the run computes [2, 3]";
    QTest::newRow("the same number in another shape")
        << std::string("logits") << QList<int>{3, 2} << "logits has shape [3, 2]";
    QTest::newRow("one dimension more") << std::string("logits") << QList<int>{1, 2, 3} << "logits has shape [1, 2, 3]";
  }
  void refusesFilesThatCannotBeCompared() {
    QFETCH(std::string, name);
    QFETCH(QList<int>, shape);
    QFETCH(QString, phrase);
    QTemporaryDir folder;
    const graph::Shape dims(shape.begin(), shape.end());
    const auto actual = writeFloats(folder, "a.safetensors", "logits", {2, 3}, std::vector<float>(6));
    const auto expected = writeFloats(folder, "b.safetensors", name, dims,
                                      std::vector<float>(static_cast<std::size_t>(graph::elementCount(dims))));
    const auto refused = pipeline::compareTensors(actual, expected, {.rtol = 1, .atol = 1});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadInput);
    QVERIFY2(refused.error().message.find(phrase.toStdString()) != std::string::npos, refused.error().message.c_str());
  }

  void aSingleNumberMayBeAListOfOne() {
    QTemporaryDir folder;
    const auto scalar = writeFloats(folder, "a.safetensors", "loss", {}, {1});
    const auto list = writeFloats(folder, "b.safetensors", "loss", {1}, {1});
    QVERIFY(need(pipeline::compareTensors(scalar, list, {.rtol = 0, .atol = 0}))[0].within());
    QVERIFY(need(pipeline::compareTensors(list, scalar, {.rtol = 0, .atol = 0}))[0].within());
  }

  /// Masked positions are counted, but not compared.
  void paddingIsNotCompared() {
    QTemporaryDir folder;
    const auto actual = writeFloats(folder, "a.safetensors", "logits", {1, 3, 2}, {9, std::nanf(""), 1, 2, 3, 4});
    const auto expected = writeFloats(folder, "b.safetensors", "logits", {1, 3, 2}, {0, 0, 1, 2, 3, 4});
    const auto row =
        need(pipeline::compareTensors(actual, expected, {.rtol = 0, .atol = 0, .padding = {{true, false, false}}}))[0];
    QVERIFY(row.within() && row.positions == 3 && row.padding == 1);
    const auto other =
        need(pipeline::compareTensors(actual, expected, {.rtol = 0, .atol = 0, .padding = {{false, true, false}}}))[0];
    QVERIFY(other.outside == 1 && other.notANumber == 1);
  }

  /// A learned table has an end: without --seq, the sequence is at most the number of its positions.
  void theDefaultSequenceIsCutToLearnedPositions_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("sequence");
    QTest::newRow("a table") << "families/gpt2" << 32;
    QTest::newRow("a table that begins after the padding") << "families/roberta" << 22;
    QTest::newRow("computed positions") << "models/llama" << 128;
  }
  void theDefaultSequenceIsCutToLearnedPositions() {
    QFETCH(QString, name);
    QFETCH(int, sequence);
    const std::string folder = (fs::path(CLEAVE_TEST_DATA) / name.toStdString()).string();
    QCOMPARE(need(pipeline::openModel(folder, {}))->info.sequence, std::int64_t(sequence));
    const auto asked = pipeline::openModel(folder, {.sequence = 128});
    QCOMPARE(asked.has_value(), sequence == 128);
    if (asked) return;
    QVERIFY2(asked.error().message.ends_with(fmt::format("Use --seq {}.", sequence)), asked.error().message.c_str());
  }

  void everySampleIsThereAndOpens() {
    const auto samples = need(pipeline::bundledSamples());
    QVERIFY(samples.size() >= 6);
    for (const auto& sample : samples) {
      QVERIFY2(sample.lookFor.size() > 40, sample.name.c_str());
      const auto model = pipeline::openModel(sample.model.string(), sample.input);
      QVERIFY2(model.has_value(), sample.name.c_str());
      for (const auto& graph : {(*model)->captured, (*model)->aten}) {
        for (const std::string& op : graph->ops) QVERIFY2(graph::findOperator(op), op.c_str());
      }
    }
  }

  void samplesShowWhatTheyAnnounce() {
    const auto ordinary = solvedSample("tiny-llama");
    QCOMPARE(ordinary.solved->result.stats.backtracks, std::uint64_t{0});

    const auto oneHead = solvedSample("one-kv-head");
    QCOMPARE(oneHead.solved->result.outcome, solve::Outcome::Solved);
    QVERIFY(oneHead.solved->result.stats.conflicts > 0 && oneHead.solved->result.stats.backtracks > 0);

    const auto norm = solvedSample("norm-over-heads");
    QCOMPARE(norm.solved->result.outcome, solve::Outcome::Solved);
    QVERIFY(
        conflictReasons(*norm.solved)
            .contains("`mean` normalises over all 64 features of `model.layers.0.self_attn.q_proj`, but each rank has "
                      "only a part of them (S(2))."));
    QVERIFY(strategyOf(norm, "model.layers.1.self_attn.q_proj") == rules::Strategy::Replicated);
    QVERIFY(strategyOf(norm, "model.layers.1.mlp.up_proj") == rules::Strategy::Column);

    const auto lastPosition = solvedSample("sequence-parallel-last-position");
    QVERIFY(lastPosition.solved->result.stats.backtracks > 10);
    int layers = 0;
    for (const auto& strategy : lastPosition.solved->result.solution->strategies) {
      if (!strategy) continue;
      ++layers;
      QVERIFY(strategy->strategy != rules::Strategy::VocabScatter && strategy->strategy != rules::Strategy::RowScatter);
    }
    QVERIFY(layers > 10);

    const auto exploding = solvedSample("exploding");
    QCOMPARE(exploding.solved->result.outcome, solve::Outcome::NoSolution);
    QVERIFY(exploding.solved->result.stats.tries > 1'700'000);
    const auto plan = pipeline::planModel(exploding.model, exploding.solved);
    QVERIFY(!plan && plan.error().code == ErrorCode::Negative);
    QVERIFY2(plan.error().message.find("You pinned `lm_head` to row") != std::string::npos,
             plan.error().message.c_str());
  }

  void liftingThePinSolvesTheExplodingSample() {
    const auto sample = sampleNamed("exploding");
    const auto model = need(pipeline::openModel(sample.model.string(), sample.input));
    spec::PlanSpec options = sample.spec;
    options.pins.clear();
    QCOMPARE(need(pipeline::solveModel(model, options))->result.outcome, solve::Outcome::Solved);
  }

  void aStoppedSearchIsNoErrorButHasNoPlan() {
    const auto sample = sampleNamed("exploding-16");
    const auto model = need(pipeline::openModel(sample.model.string(), sample.input));
    std::stop_source stop;
    const pipeline::SolveContext context{.onTrace = [&](const auto&) { stop.request_stop(); }};
    const auto solved = need(pipeline::solveModel(model, sample.spec, Progress(stop.get_token()), context));
    QCOMPARE(solved->result.outcome, solve::Outcome::Stopped);
    QCOMPARE(pipeline::planModel(model, solved).error().code, ErrorCode::Cancelled);
  }

  /// Explaining why 8 heads are replicated on 3 ranks needs another solve, which can be cancelled.
  void aStoppedPlanIsCancelled() {
    const auto model = need(pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}));
    spec::PlanSpec options;
    options.ranks = 3;
    const auto solved = need(pipeline::solveModel(model, options));
    std::stop_source stop;
    const Progress progress(stop.get_token(), [&](const ProgressUpdate&) { stop.request_stop(); });
    const auto plan = pipeline::planModel(model, solved, progress);
    QVERIFY(stop.stop_requested());
    QCOMPARE(plan.error().code, ErrorCode::Cancelled);
    QVERIFY(pipeline::planModel(model, solved).has_value());
  }

  void aCancelledOpenOpensNoModel() {
    std::stop_source stop;
    stop.request_stop();
    const auto model = pipeline::openModel(CLEAVE_TEST_DATA "/models/llama", {}, Progress(stop.get_token()));
    QVERIFY(!model);
    QCOMPARE(model.error().code, ErrorCode::Cancelled);
  }

  void aPlanIsValidForItsModelOnly() {
    const auto ordinary = solvedSample("tiny-llama");
    plan::Plan plan = *need(pipeline::planModel(ordinary.model, ordinary.solved));
    const auto same = need(pipeline::checkPlan(plan::toJson(plan)));
    QVERIFY2(same.holds(), same.findings.empty() ? "" : same.findings.front().c_str());
    plan.model.source = CLEAVE_TEST_DATA "/models/qwen2";
    QVERIFY(!need(pipeline::checkPlan(plan::toJson(plan))).findings.empty());
  }

  void aPlanFileIsReopenedWithItsModel_data() {
    QTest::addColumn<QString>("sample");
    for (const auto& sample : need(pipeline::bundledSamples())) {
      if (sample.name.find("exploding") != std::string::npos) continue;  // its search takes too long for a test
      QTest::newRow(sample.name.c_str()) << QString::fromStdString(sample.name);
    }
  }
  void aPlanFileIsReopenedWithItsModel() {
    QFETCH(QString, sample);
    const auto solved = solvedSample(sample.toStdString());
    QCOMPARE(solved.solved->result.outcome, solve::Outcome::Solved);
    const auto plan = need(pipeline::planModel(solved.model, solved.solved));
    QTemporaryDir folder;
    QFile file(folder.filePath("plan.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(QByteArray::fromStdString(plan::toJson(*plan)));
    file.close();
    const auto reopened = need(pipeline::reopenPlan(file.fileName().toStdString()));
    QCOMPARE(reopened.note, std::string());
    QVERIFY(reopened.model->captured != reopened.model->aten);  // its own two graphs, not the plan's one
    const std::string text = graph::toText(*solved.model->aten);
    QCOMPARE(graph::toText(need(graph::parseGraph(text))), text);
    const QString source = QString::fromStdString(plan->model.source);
    const QString other = CLEAVE_TEST_DATA "/models/qwen2";
    QByteArray changed = QByteArray::fromStdString(plan::toJson(*plan));
    changed.replace(source.toUtf8(), other.toUtf8());
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(changed);
    file.close();
    const auto alone = need(pipeline::reopenPlan(file.fileName().toStdString()));
    QVERIFY2(alone.note.find("is not the planned one") != std::string::npos, alone.note.c_str());
  }

  void aPlanIsCheckedUnderItsDemands() {
    const auto sample = sampleNamed("tiny-llama");
    const auto model = need(pipeline::openModel(sample.model.string(), sample.input));
    spec::PlanSpec options = sample.spec;
    options.engine = solve::Engine::Learning;
    options.pins = {need(solve::Pin::parse("lm_head=row"))};
    options.rulesOff = {"aten::embedding"};
    options.redistributable = {"*"};
    const auto solved = need(pipeline::solveModel(model, options));
    const plan::Plan plan = need(plan::planFromJson(plan::toJson(*need(pipeline::planModel(model, solved)))));
    QVERIFY(!plan.solution->computedAs.empty());
    const auto findings = need(pipeline::checkPlan(plan::toJson(plan))).findings;
    QVERIFY2(findings.empty(), findings.empty() ? "" : findings.front().c_str());
    plan::Plan unasked = plan;
    unasked.spec.redistributable.pop_back();  // the demand that allows the redistribution
    const auto refused = need(pipeline::checkPlan(plan::toJson(unasked))).findings;
    QVERIFY(!refused.empty());
    QVERIFY2(refused.front().find("but its redistribution is not allowed") != std::string::npos,
             refused.front().c_str());
    plan::Plan stricter = plan;
    stricter.spec.pins.push_back(need(solve::Pin::parse("lm_head=column")));
    QVERIFY(!need(pipeline::checkPlan(plan::toJson(stricter))).findings.empty());
  }
};

QTEST_GUILESS_MAIN(TestPipeline)
#include "tst_pipeline.moc"
