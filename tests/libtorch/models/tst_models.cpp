// The forward pass on real weights, compared with logits and loss of transformers 4.45.2, which wrote every
// expected.safetensors (4.57.1 for olmo2, which 4.45.2 does not support).
#include <nlohmann/json.hpp>

#include "families/checkpoint_names.h"
#include "families/family_table.h"
#include "libtorch/models/model.h"
#include "tests/libtorch/models/model_weights.h"

#include <c10/core/GradMode.h>
#include <QTest>

using namespace cleave;

namespace {

struct Fixture {
  formats::ModelFolder folder;
  families::ModelConfig config;
  std::map<std::string, at::Tensor> expected;

  explicit Fixture(const std::string& name) {
    const fs::path path = fs::path(CLEAVE_TEST_DATA) / name;
    auto opened = formats::openModelFolder(path);
    if (!opened) qFatal("%s", opened.error().message.c_str());
    folder = std::move(*opened);
    reread();
    useModelNames();
    expected = tests::readTensors(path / "expected.safetensors");
  }
  void useModelNames() {
    std::vector<std::string> stored;
    for (const auto& [name, source] : folder.tensors) stored.push_back(name);
    const auto names = families::modelNames(config.family, stored);
    formats::WeightSources renamed;
    for (std::size_t i = 0; i < stored.size(); ++i) renamed[names[i]] = folder.tensors.at(stored[i]);
    folder.tensors = std::move(renamed);
  }
  void reread() {
    auto read = families::readModelConfig(folder);
    if (!read) qFatal("%s", read.error().message.c_str());
    config = std::move(*read);
  }
  void reread(const nlohmann::json& changed) {
    folder.config = std::make_shared<const nlohmann::json>(changed);
    reread();
  }
  models::ModelInputs inputs() const {
    models::ModelInputs inputs{expected.at("input_ids"), {}, {}, {}};
    if (expected.contains("token_type_ids")) inputs.tokenTypeIds = expected.at("token_type_ids");
    if (expected.contains("attention_mask")) inputs.attentionMask = expected.at("attention_mask");
    if (expected.contains("labels")) inputs.labels = expected.at("labels");
    return inputs;
  }
  models::ModelOutputs run(const models::ModelInputs& inputs, models::ModelOptions options = {}) const {
    const c10::NoGradGuard noGrad;
    tests::WeightsHost host(folder);
    return models::runModel(config, inputs, options, host);
  }
};

constexpr double kTolerance = 1e-4;

/// Excludes the logits of padding, which are undefined: a token without visible positions depends on the kernel.
at::Tensor counted(const at::Tensor& logits, const Fixture& fixture) {
  const auto mask = fixture.expected.find("attention_mask");
  if (mask == fixture.expected.end() || logits.dim() != 3) return logits;
  return logits.index({mask->second.ne(0)});
}

}  // namespace

class TestModels : public QObject {
  Q_OBJECT
 private slots:
  /// Every supported family has a folder, and so has every class.
  void equalsTransformers_data() {
    QTest::addColumn<QString>("name");
    std::set<std::string> classes;
    for (const char* kind : {"models", "decoders", "families"}) {
      for (const auto& entry : fs::directory_iterator(fs::path(CLEAVE_TEST_DATA) / kind)) {
        if (!fs::exists(entry.path() / "expected.safetensors")) continue;
        const auto opened = formats::openModelFolder(entry.path());
        if (!opened) qFatal("%s", opened.error().message.c_str());
        classes.insert((*opened->config)["architectures"][0].get<std::string>());
        const QString name = QString("%1/%2").arg(kind, entry.path().filename().c_str());
        QTest::newRow(qPrintable(name)) << name;
      }
    }
    for (const families::Family* family : families::families()) {
      for (const families::HeadClass& head : family->heads) {
        const std::string name(head.className);
        QVERIFY2(classes.contains(name) || name == "RWForCausalLM", ("no folder has the class " + name).c_str());
      }
    }
  }
  void equalsTransformers() {
    QFETCH(QString, name);
    const Fixture fixture(name.toStdString());
    const auto outputs = fixture.run(fixture.inputs());
    const double logits =
        tests::largestDifference(counted(outputs.logits, fixture), counted(fixture.expected.at("logits"), fixture));
    QVERIFY2(logits < kTolerance, qPrintable(QString::number(logits)));
    QVERIFY(tests::largestDifference(outputs.loss->reshape({1}), fixture.expected.at("loss").reshape({1})) <
            kTolerance);
  }

  void readsTheNewerDialectToTheSameNumbers() {
    Fixture fixture("decoders/llama3-rope-biases");
    nlohmann::json config = *fixture.folder.config;
    config["rope_parameters"] = config["rope_scaling"];
    config["rope_parameters"]["rope_theta"] = config["rope_theta"];
    config["dtype"] = config["torch_dtype"];
    for (const char* key : {"rope_scaling", "rope_theta", "torch_dtype"}) config.erase(key);
    fixture.reread(config);
    QVERIFY(tests::largestDifference(fixture.run(fixture.inputs()).logits, fixture.expected.at("logits")) < kTolerance);
  }

  /// Rotary positions are relative, so left padding does not change real tokens.
  void paddingDoesNotChangeRealTokens_data() {
    QTest::addColumn<bool>("isLeft");
    QTest::newRow("left") << true;
    QTest::newRow("right") << false;
  }
  void paddingDoesNotChangeRealTokens() {
    QFETCH(bool, isLeft);
    const Fixture fixture("models/llama");
    const at::Tensor ids = fixture.expected.at("input_ids");
    const at::Tensor pad = at::zeros({ids.size(0), 3}, at::kLong);
    const auto joined = [&](const at::Tensor& padding, const at::Tensor& real) {
      return isLeft ? at::cat({padding, real}, 1) : at::cat({real, padding}, 1);
    };
    const auto padded = fixture.run({joined(pad, ids), joined(pad, at::ones_like(ids)), {}, {}});
    const at::Tensor real = padded.logits.narrow(1, isLeft ? 3 : 0, ids.size(1));
    QVERIFY(tests::largestDifference(real, fixture.expected.at("logits")) < kTolerance);
  }

  void aWindowAsLongAsTheSequenceChangesNothing() {
    Fixture fixture("decoders/mistral-window");
    nlohmann::json config = *fixture.folder.config;
    config["sliding_window"] = nullptr;
    fixture.reread(config);
    const at::Tensor whole = fixture.run(fixture.inputs()).logits;
    config["sliding_window"] = 16;
    fixture.reread(config);
    QCOMPARE(tests::largestDifference(fixture.run(fixture.inputs()).logits, whole), 0.0);
    QVERIFY(tests::largestDifference(whole, fixture.expected.at("logits")) > 0.1);
  }

  void keepsTheLastLogits() {
    const Fixture fixture("models/qwen2");
    const auto outputs = fixture.run({fixture.expected.at("input_ids"), {}, {}, {}}, {.logitsToKeep = 2});
    QVERIFY(outputs.logits.sizes() == at::IntArrayRef({2, 2, 256}) && !outputs.loss);
    QVERIFY(tests::largestDifference(outputs.logits, fixture.expected.at("logits").narrow(1, 14, 2)) < kTolerance);
  }

  /// Half precision of parameters and activations: two layers keep logits of magnitude 4 within 0.15 (bfloat16 has 8
  /// bits).
  void halfPrecisionStaysNear_data() {
    QTest::addColumn<int>("dtype");
    QTest::addColumn<double>("tolerance");
    QTest::newRow("bfloat16") << int(at::kBFloat16) << 0.15;
    QTest::newRow("float16") << int(at::kHalf) << 0.02;
  }
  void halfPrecisionStaysNear() {
    QFETCH(int, dtype);
    QFETCH(double, tolerance);
    const Fixture fixture("models/llama");
    const auto outputs = fixture.run(fixture.inputs(), {.dtype = static_cast<at::ScalarType>(dtype)});
    QVERIFY(outputs.logits.scalar_type() == at::kFloat);
    const double difference = tests::largestDifference(outputs.logits, fixture.expected.at("logits"));
    QVERIFY2(difference > 0 && difference < tolerance, qPrintable(QString::number(difference)));
  }
};

QTEST_APPLESS_MAIN(TestModels)
#include "tst_models.moc"
