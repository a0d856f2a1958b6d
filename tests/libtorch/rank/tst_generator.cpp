// Tokens of ranks that are threads, compared with transformers (tests/tools/generations.py), and refusals of prefill
// and decode plans that do not belong together.
#include "graph/states.h"
#include "libtorch/bridge/types.h"
#include "tests/libtorch/rank/family_runs.h"

#include <QDir>
#include <QTest>

using namespace cleave;
using namespace cleave::tests;

namespace {

constexpr std::int64_t kNew = 5;

ModelPtr promptOf(const char* family, std::int64_t rows, std::int64_t length, std::int64_t newTokens = kNew) {
  plan::ModelInfo info;
  info.source = std::string(CLEAVE_TEST_DATA "/families/") + family;
  const pipeline::TokenRows prompt{rows, length, {}};
  return need(pipeline::openModel(info.source, pipeline::ofPrompt(info, prompt, newTokens).input));
}

PlanPtr decodeStepFor(const ModelPtr& prompt) { return need(pipeline::planStep(*planned(prompt, {.ranks = 1}))); }

}  // namespace

class TestGenerator : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { at::set_num_threads(1); }

  /// Windows, sinks, linear biases, fused projections, latent attention, kinds of rotary embeddings, ...
  void generatesAsTransformersDoes_data() {
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("file");
    const QDir files(CLEAVE_TEST_DATA "/generation");
    for (const QFileInfo& file : files.entryInfoList({"*.safetensors"}, QDir::Files, QDir::Name)) {
      // If a name exists in both folders, uses that of families, as there.
      const QString name = file.completeBaseName(), family = QStringLiteral(CLEAVE_TEST_DATA "/families/") + name;
      const QString folder = QDir(family).exists() ? family : QStringLiteral(CLEAVE_TEST_DATA "/decoders/") + name;
      if (name != "llama-ends") QTest::newRow(qPrintable(name)) << folder << file.filePath();
    }
  }
  void generatesAsTransformersDoes() {
    QFETCH(QString, folder);
    QFETCH(QString, file);
    QVERIFY(generatesAs(folder.toStdString(), file.toStdString(), 2));
  }

  void plansThatDoNotBelongTogetherAreRefused_data() {
    QTest::addColumn<PlanPtr>("step");
    QTest::addColumn<std::int64_t>("tokens");
    QTest::addColumn<QString>("sentence");
    const ModelPtr prompt = promptOf("llama", 2, 7);
    QTest::newRow("as many as there is room for") << decodeStepFor(prompt) << kNew << "";
    QTest::newRow("more tokens") << decodeStepFor(prompt) << kNew + 1
                                 << "The cache has 12 positions, too few for 7 prompt tokens and 6 new tokens.";
    QTest::newRow("another model") << decodeStepFor(promptOf("llama-multi-head", 2, 7)) << kNew
                                   << "have different layouts of the cache";
    QTest::newRow("other rows") << decodeStepFor(promptOf("llama", 1, 7)) << kNew
                                << "have different layouts of the cache";
    QTest::newRow("no step") << planned(prompt, {.ranks = 1}) << kNew
                             << "The plans are not a prefill and a decode step";
    QTest::newRow("no such number") << decodeStepFor(prompt) << std::int64_t{-1}
                                    << "The number of new tokens is -1; it must be in 1..";
  }
  void plansThatDoNotBelongTogetherAreRefused() {
    QFETCH(PlanPtr, step);
    QFETCH(std::int64_t, tokens);
    QFETCH(QString, sentence);
    const PlanPtr plan = planned(promptOf("llama", 2, 7), {.ranks = 1});
    torch_rank::Program prefill = need(torch_rank::Program::bind(plan->program, at::kCPU));
    const program::RankProgram decode = rankProgramOf(*step);
    const auto generator = torch_rank::Generator::make(prefill, decode, {.tokens = tokens});
    QCOMPARE(generator.has_value(), sentence.isEmpty());
    if (generator) return;
    const QString said = QString::fromStdString(generator.error().message);
    QVERIFY2(said.contains(sentence), qPrintable(said));
  }

  /// A decode step writes the cache in place, without other memory for it.
  void theCacheStaysWhereItIs() {
    const ModelPtr model = promptOf("llama", 2, 7);
    const PlanPtr step = decodeStepFor(model);
    torch_rank::Program program = need(torch_rank::Program::bind(step->program, at::kCPU));
    for (const graph::Node& node : step->program->nodes) {
      if (node.kind != graph::NodeKind::Input && node.kind != graph::NodeKind::Parameter) continue;
      const graph::TensorType& type = step->program->value(node.results[0]).type;
      needDone(program.setTensor(node.results[0], at::ones(type.shape, bridge::toScalarType(type.dtype))));
    }
    torch_rank::LiveMemory memory;
    const auto outputs = need(program.run(*torch_rank::makeSoloCollectives(), memory));
    const auto states = graph::statesOf(*step->program);
    QCOMPARE(states.size(), std::size_t{4});  // for two layers
    for (const graph::State& state : states) {
      const at::Tensor& cache = program.given(state.past);
      QCOMPARE(outputs[state.output].second.const_data_ptr(), cache.const_data_ptr());
      // The position is 1; the others must not change.
      QVERIFY(at::equal(cache.select(2, 0), at::ones_like(cache.select(2, 0))));
      QVERIFY(!at::equal(cache.select(2, 1), at::ones_like(cache.select(2, 1))));
      QVERIFY(at::equal(cache.narrow(2, 2, 10), at::ones_like(cache.narrow(2, 2, 10))));
    }
  }
};

QTEST_APPLESS_MAIN(TestGenerator)
#include "tst_generator.moc"
