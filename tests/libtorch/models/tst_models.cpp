// config.json → DecoderConfig: both dialects, defaults, and one clear sentence for everything that cannot be used.
#include "libtorch/models/architectures.h"
#include "libtorch/models/decoder_config.h"

#include <QtTest>
#include <nlohmann/json.hpp>

using namespace cleave;
using nlohmann::json;

namespace {

json llama() {
  return json::parse(
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 112,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256,)"
      R"( "torch_dtype": "float32"})");
}

json with(json config, const char* patch) {
  config.merge_patch(json::parse(patch));
  return config;
}

models::DecoderConfig read(const json& config) {
  const auto result = models::readDecoderConfig(config);
  if (!result) qFatal("%s", result.error().message.c_str());
  return *result;
}

}  // namespace

class TestModels : public QObject {
  Q_OBJECT
 private slots:
  void fillsWhatTheConfigLeavesOut() {
    const auto config = read(llama());
    QCOMPARE(config.headDim, 8);
    QCOMPARE(config.normEps, 1e-6);
    QCOMPARE(config.rope.theta, 10000.0);
    QVERIFY(config.rope.kind == models::RopeKind::Default);
    QVERIFY(!config.isTied && !config.hasQkvBias && !config.hasMlpBias);
    QVERIFY(config.windows == std::vector<std::int64_t>({0, 0}));
  }

  void readsBothDialectsAlike() {
    const auto older = read(
        with(llama(),
             R"({"torch_dtype": "bfloat16", "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}})"));
    auto newerJson = with(llama(), R"({"dtype": "bfloat16", "head_dim": null,
      "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0}})");
    newerJson.erase("torch_dtype");
    const auto newer = read(newerJson);
    QVERIFY(older.dtype == graph::DType::BFloat16 && newer.dtype == older.dtype);
    QCOMPARE(newer.rope.theta, older.rope.theta);
    QCOMPARE(newer.rope.factor, older.rope.factor);
    QVERIFY(newer.rope.kind == models::RopeKind::Linear && older.rope.kind == newer.rope.kind);
  }

  void tellsNullFromAbsentWhereTransformersDoes() {
    auto config = llama();
    config["model_type"] = "mistral";
    config["architectures"] = {"MistralForCausalLM"};
    QCOMPARE(read(config).windows.front(), 4096);
    QCOMPARE(read(with(config, R"({"sliding_window": 16})")).windows.front(), 16);
    config["sliding_window"] = nullptr;
    QCOMPARE(read(config).windows.front(), 0);
    config["num_key_value_heads"] = nullptr;
    QCOMPARE(read(config).keyValueHeads, 8);
    config.erase("num_key_value_heads");
    QCOMPARE(read(config).keyValueHeads, 8);
  }

  void placesMinistralWindows() {
    auto config = llama();
    config["model_type"] = "ministral";
    config["architectures"] = {"MinistralForCausalLM"};
    QVERIFY(read(config).windows == std::vector<std::int64_t>({4096, 4096}));
    config["layer_types"] = {"full_attention", "sliding_attention"};
    QVERIFY(read(config).windows == std::vector<std::int64_t>({0, 4096}));
  }

  void placesQwen2Windows() {
    auto config = llama();
    config["model_type"] = "qwen2";
    config["architectures"] = {"Qwen2ForCausalLM"};
    config["sliding_window"] = 16;
    config["max_window_layers"] = 1;
    QVERIFY(read(config).windows == std::vector<std::int64_t>({0, 0}));
    config["use_sliding_window"] = true;
    QVERIFY(read(config).windows == std::vector<std::int64_t>({0, 16}));
    config["layer_types"] = {"sliding_attention", "full_attention"};
    QVERIFY(read(config).windows == std::vector<std::int64_t>({16, 0}));
    QVERIFY(read(config).hasQkvBias && !read(config).hasOutputBias);
  }

  void readsYarnsAttentionFactor() {
    const auto plain = read(with(llama(), R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})"));
    QCOMPARE(plain.rope.attentionFactor, 0.1 * std::log(4.0) + 1.0);
    const auto scaled = read(with(
        llama(), R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0}})"));
    QCOMPARE(scaled.rope.attentionFactor, 1.0);
  }

  void refusesWhatItCannotUse_data() {
    QTest::addColumn<QString>("patch");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("unknown architecture") << R"({"model_type": "falcon", "architectures": ["FalconForCausalLM"]})"
                                          << "\"FalconForCausalLM\" (model_type \"falcon\")";
    QTest::newRow("lists the known ones")
        << R"({"model_type": "falcon"})"
        << "LlamaForCausalLM (llama), MistralForCausalLM (mistral), Qwen2ForCausalLM (qwen2)";
    QTest::newRow("other head") << R"({"architectures": ["LlamaForSequenceClassification"]})"
                                << "unknown architecture \"LlamaForSequenceClassification\"";
    QTest::newRow("names that disagree") << R"({"model_type": "qwen2", "architectures": ["LlamaForCausalLM"]})"
                                         << "model_type says \"qwen2\", which belongs to Qwen2ForCausalLM";
    QTest::newRow("no type") << R"({"model_type": null, "architectures": null})"
                             << "neither model_type nor architectures";
    QTest::newRow("missing size") << R"({"hidden_size": null})"
                                  << "hidden_size is missing";
    QTest::newRow("text for a number") << R"({"hidden_size": "64"})"
                                       << "hidden_size must be";
    QTest::newRow("negative") << R"({"num_hidden_layers": -1})"
                              << "num_hidden_layers must be";
    QTest::newRow("zero") << R"({"vocab_size": 0})"
                          << "vocab_size must be";
    QTest::newRow("huge") << R"({"hidden_size": 4611686018427387904})"
                          << "hidden_size must be";
    QTest::newRow("fraction") << R"({"num_attention_heads": 2.5})"
                              << "num_attention_heads must be";
    QTest::newRow("heads do not divide") << R"({"num_attention_heads": 7, "num_key_value_heads": 7})"
                                         << "a multiple of num_attention_heads (7)";
    QTest::newRow("groups do not divide") << R"({"num_key_value_heads": 3})"
                                          << "a multiple of num_key_value_heads (3)";
    QTest::newRow("odd head") << R"({"head_dim": 7})"
                              << "head_dim must be even, as rotary embeddings turn pairs of features, but it is 7.";
    QTest::newRow("activation") << R"({"hidden_act": "mish"})"
                                << "hidden_act must be one of silu";
    QTest::newRow("dtype") << R"({"torch_dtype": "int8"})"
                           << "torch_dtype must be float32";
    QTest::newRow("quantized") << R"({"quantization_config": {"bits": 4}})"
                               << "quantization_config is set";
    QTest::newRow("epsilon") << R"({"rms_norm_eps": -1e-6})"
                             << "rms_norm_eps must be a number from 0 to 1";
    QTest::newRow("flag") << R"({"tie_word_embeddings": "yes"})"
                          << "tie_word_embeddings must be";
    QTest::newRow("rope kind") << R"({"rope_scaling": {"rope_type": "longrope"}})"
                               << "rope_scaling.rope_type must be one of default";
    QTest::newRow("rope type key") << R"({"rope_scaling": {"type": "su"}})"
                                   << "rope_scaling.type must be one of default";
    QTest::newRow("rope list") << R"({"rope_scaling": []})"
                               << "rope_scaling must be";
    QTest::newRow("rope factor") << R"({"rope_scaling": {"rope_type": "linear", "factor": 0}})"
                                 << "rope_scaling.factor must be";
    QTest::newRow("rope factor missing") << R"({"rope_parameters": {"rope_type": "linear"}})"
                                         << "rope_parameters.factor is missing";
    QTest::newRow("partial rotation") << R"({"partial_rotary_factor": 0.5})"
                                      << "partial_rotary_factor must be 1";
  }
  void refusesWhatItCannotUse() {
    QFETCH(QString, patch);
    QFETCH(QString, phrase);
    const auto result = models::readDecoderConfig(with(llama(), patch.toUtf8().constData()), "model/config.json");
    QVERIFY(!result);
    const QString message = QString::fromStdString(result.error().message);
    QVERIFY2(message.contains(phrase) && message.startsWith("model/config.json"), qPrintable(message));
    QCOMPARE(exitCode(result.error().code), 3);
  }

  /// What is said to open does, and nothing else is advised.
  void theAdviceOnAnUnknownArchitectureHolds() {
    const json stranger = with(llama(), R"({"model_type": "falcon", "architectures": ["FalconForCausalLM"]})");
    const QString message = QString::fromStdString(models::readDecoderConfig(stranger).error().message);
    QVERIFY2(!message.contains("pt2") && !message.contains("export"), qPrintable(message));
    static const QRegularExpression named("(\\w+ForCausalLM) \\((\\w+)\\)[,.]");
    std::size_t opened = 0;
    for (const auto& match : named.globalMatch(message)) {
      json config = stranger;
      config["architectures"] = {match.captured(1).toStdString()};
      config["model_type"] = match.captured(2).toStdString();
      const auto read = models::readDecoderConfig(config);
      QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
      ++opened;
    }
    QCOMPARE(opened, models::architectures().size());
  }

  void refusesWhatIsNoObject() { QVERIFY(!models::readDecoderConfig(json::array())); }
};

QTEST_APPLESS_MAIN(TestModels)
#include "tst_models.moc"
