// config.json → ModelConfig: both dialects, defaults, and one clear sentence for every config that cannot be used.
#include "families/family_table.h"
#include "families/model_config.h"
#include "families/near_names.h"

#include <QRegularExpression>
#include <QTest>
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

families::ModelConfig read(const json& config) {
  const auto result = families::readModelConfig(config);
  if (!result) qFatal("%s", result.error().message.c_str());
  return *result;
}

const families::SelfAttention& attentionOf(const families::ModelConfig& config) {
  return std::get<families::SelfAttention>(config.family.attention);
}

std::vector<std::int64_t> windowsOf(const families::ModelConfig& config) {
  std::vector<std::int64_t> windows;
  for (const families::LayerConfig& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

using Windows = std::vector<std::int64_t>;

}  // namespace

class TestModelConfig : public QObject {
  Q_OBJECT
 private slots:
  void fillsWhatTheConfigLeavesOut() {
    const auto config = read(llama());
    QCOMPARE(attentionOf(config).headDim.value, 8);
    QCOMPARE(std::get<families::RmsNorm>(config.family.norm).eps.value, 1e-6);
    QCOMPARE(config.ropes.front().theta, 10000.0);
    QVERIFY(config.ropes.front().kind == families::RopeKind::Default);
    QVERIFY(!config.family.isTied.value && !attentionOf(config).qkvBias.value && !config.family.mlp.hasBias.value);
    QVERIFY(windowsOf(config) == Windows({0, 0}));
  }

  /// A config with only a model type equals the defaults of transformers' configuration class.
  void aNameAloneIsAModel() {
    for (const families::Family* family : families::families()) {
      const auto config = read({{"model_type", std::string(family->modelType)}});
      QVERIFY(!config.layers.empty() && config.family.vocab.value > 0);
    }
    const auto neox = read({{"model_type", "gpt_neox"}});
    QCOMPARE(neox.ropes.front().dim, 24);  // a quarter of 96
    const auto deepseek = read({{"model_type", "deepseek_v3"}});
    QVERIFY(!deepseek.layers[2].isSparse && deepseek.layers[3].isSparse);
    QCOMPARE(deepseek.family.experts.sharedSize.value, 2048);
    const auto oss = read({{"model_type", "gpt_oss"}});
    QVERIFY(oss.ropes.front().kind == families::RopeKind::Yarn && oss.layers[0].window == 128 && !oss.layers[1].window);
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
    QCOMPARE(newer.ropes.front().theta, older.ropes.front().theta);
    QCOMPARE(newer.ropes.front().factor, older.ropes.front().factor);
    QVERIFY(newer.ropes.front().kind == families::RopeKind::Linear &&
            older.ropes.front().kind == newer.ropes.front().kind);
  }

  void distinguishesNullFromAbsentAsTransformersDoes() {
    auto config = llama();
    config["model_type"] = "mistral";
    config["architectures"] = {"MistralForCausalLM"};
    QCOMPARE(windowsOf(read(config)).front(), 4096);
    QCOMPARE(windowsOf(read(with(config, R"({"sliding_window": 16})"))).front(), 16);
    config["sliding_window"] = nullptr;
    QCOMPARE(windowsOf(read(config)).front(), 0);
    config["num_key_value_heads"] = nullptr;
    QCOMPARE(std::get<families::SelfAttention>(read(config).family.attention).keyValueHeads.value, 8);
    config.erase("num_key_value_heads");
    QCOMPARE(std::get<families::SelfAttention>(read(config).family.attention).keyValueHeads.value, 8);
  }

  void placesMinistralWindows() {
    auto config = llama();
    config["model_type"] = "ministral";
    config["architectures"] = {"MinistralForCausalLM"};
    QVERIFY(windowsOf(read(config)) == Windows({4096, 4096}));
    config["layer_types"] = {"full_attention", "sliding_attention"};
    QVERIFY(windowsOf(read(config)) == Windows({0, 4096}));
  }

  void placesQwen2Windows() {
    auto config = llama();
    config["model_type"] = "qwen2";
    config["architectures"] = {"Qwen2ForCausalLM"};
    config["sliding_window"] = 16;
    config["max_window_layers"] = 1;
    QVERIFY(windowsOf(read(config)) == Windows({0, 0}));
    config["use_sliding_window"] = true;
    QVERIFY(windowsOf(read(config)) == Windows({0, 16}));
    config["layer_types"] = {"sliding_attention", "full_attention"};
    QVERIFY(windowsOf(read(config)) == Windows({16, 0}));
    const auto read2 = read(config);
    QVERIFY(attentionOf(read2).qkvBias.value && !attentionOf(read2).outputBias.value);
  }

  void readsYarnsAttentionFactor() {
    const auto plain = read(with(llama(), R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})"));
    QCOMPARE(plain.ropes.front().attentionFactor, 0.1 * std::log(4.0) + 1.0);
    const auto scaled = read(with(
        llama(), R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0}})"));
    QCOMPARE(scaled.ropes.front().attentionFactor, 1.0);
  }

  /// transformers can rotate one more feature in some families; YaRN's ramp and LongRoPE's lists need pairs.
  void anOddPartOfFeaturesRotatesWhereTransformersDoes() {
    const char* kPhi3 = R"({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "partial_rotary_factor": %1})";
    const auto phi3 = [&](double part) { return with(llama(), QString(kPhi3).arg(part).toStdString().c_str()); };
    QCOMPARE(read(phi3(0.4)).ropes.front().dim, std::int64_t{3});
    auto yarn = phi3(0.4);
    yarn["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
    const auto refused = families::readModelConfig(yarn);
    QVERIFY(!refused);
    QVERIFY2(refused.error().message.find("rope_type must be another type, because the number of rotated features is "
                                          "odd (3)") != std::string::npos,
             refused.error().message.c_str());
  }

  void theUnknownIsToldInFewWords() {
    for (const char* patch : {R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"]})",
                              R"({"model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"]})"}) {
      const auto refused = families::readModelConfig(with(llama(), patch));
      QVERIFY(!refused);
      QVERIFY2(refused.error().message.size() < 500, refused.error().message.c_str());
    }
  }

  void refusesWhatItCannotUse_data() {
    QTest::addColumn<QString>("patch");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("unknown architecture") << R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"]})"
                                          << "\"MambaForCausalLM\" (model_type \"mamba\")";
    QTest::newRow("says where the known ones are listed") << R"({"model_type": "mamba"})"
                                                          << "cleave-cli info --families";
    QTest::newRow("near by type") << R"({"model_type": "llama4_text", "architectures": ["Llama4ForCausalLM"]})"
                                  << "; similar: LlamaForCausalLM (llama). Set ";
    QTest::newRow("near by letters") << R"({"model_type": "mistrel", "architectures": null})"
                                     << "; similar: MistralForCausalLM (mistral). ";
    QTest::newRow("near by class") << R"({"model_type": null, "architectures": ["Qwen4ForCausalLM"]})"
                                   << "; similar: Qwen2ForCausalLM (qwen2), Qwen3ForCausalLM (qwen3). ";
    QTest::newRow("other head") << R"({"architectures": ["LlamaForSequenceClassification"]})"
                                << "unknown architecture \"LlamaForSequenceClassification\"";
    QTest::newRow("names that disagree") << R"({"model_type": "qwen2", "architectures": ["LlamaForCausalLM"]})"
                                         << "model_type is \"qwen2\", which belongs to Qwen2ForCausalLM";
    QTest::newRow("no type") << R"({"model_type": null, "architectures": null})"
                             << "no model_type and no architectures";
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
    QTest::newRow("odd head")
        << R"({"head_dim": 7})"
        << "head_dim must be even, because rotary embeddings rotate pairs of features, but it is 7.";
    QTest::newRow("activation") << R"({"hidden_act": "mish"})"
                                << "hidden_act must be one of silu";
    QTest::newRow("dtype") << R"({"torch_dtype": "int8"})"
                           << "torch_dtype must be float32";
    QTest::newRow("quantized") << R"({"quantization_config": {"bits": 4}})"
                               << "quantization_config.quant_method is missing";
    QTest::newRow("epsilon") << R"({"rms_norm_eps": -1e-6})"
                             << "rms_norm_eps must be a number from 0 to 1";
    QTest::newRow("flag") << R"({"tie_word_embeddings": "yes"})"
                          << "tie_word_embeddings must be";
    QTest::newRow("rope kind") << R"({"rope_scaling": {"rope_type": "ntk"}})"
                               << "rope_scaling.rope_type must be one of default";
    QTest::newRow("rope type key") << R"({"rope_scaling": {"type": "mrope"}})"
                                   << "rope_scaling.type must be one of default";
    QTest::newRow("rope list") << R"({"rope_scaling": []})"
                               << "rope_scaling must be";
    QTest::newRow("rope factor") << R"({"rope_scaling": {"rope_type": "linear", "factor": 0}})"
                                 << "rope_scaling.factor must be";
    QTest::newRow("rope factor missing") << R"({"rope_parameters": {"rope_type": "linear"}})"
                                         << "rope_parameters.factor is missing";
    QTest::newRow("partial rotation")
        << R"({"model_type": "phi", "architectures": ["PhiForCausalLM"], "partial_rotary_factor": 0.4})"
        << "partial_rotary_factor must be a fraction that gives an even number of the 8 features of a head";
    QTest::newRow("factors") << R"({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "rope_scaling":
      {"type": "longrope", "short_factor": [1, 1], "long_factor": [1, 1, 1, 1]}})"
                             << "rope_scaling.short_factor has 2 numbers: expected 4";
    QTest::newRow("what is not computed")
        << R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
      "add_cross_attention": true})"
        << "add_cross_attention must be false, the only value that Cleave supports for gpt2 models";
    QTest::newRow("bloom in the parts of pretraining")
        << R"({"model_type": "bloom", "architectures": ["BloomForCausalLM"], "slow_but_exact": true,
      "pretraining_tp": 2})"
        << "slow_but_exact must be false, the only value that Cleave supports for bloom models";
    QTest::newRow("attention by distance")
        << R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "position_embedding_type": "relative_key"})"
        << "position_embedding_type must be absolute, the only value that Cleave supports for bert models";
    QTest::newRow("more experts than there are")
        << R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 2,
      "num_experts_per_tok": 3})"
        << "num_experts_per_tok must be at most num_local_experts (2)";
    QTest::newRow("groups of experts") << R"({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
      "n_routed_experts": 12})"
                                       << "n_routed_experts must be a multiple of n_group (8)";
  }
  void refusesWhatItCannotUse() {
    QFETCH(QString, patch);
    QFETCH(QString, phrase);
    const auto result = families::readModelConfig(with(llama(), patch.toUtf8().constData()), "model/config.json");
    QVERIFY(!result);
    const QString message = QString::fromStdString(result.error().message);
    QVERIFY2(message.contains(phrase) && message.startsWith("model/config.json"), qPrintable(message));
    QCOMPARE(exitCode(result.error().code), 3);
  }

  /// The advice lists only names that open.
  void theAdviceOnAnUnknownArchitectureHolds() {
    const json stranger = with(llama(), R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"]})");
    const QString message = QString::fromStdString(families::readModelConfig(stranger).error().message);
    QVERIFY2(message.contains("torch.export.save") && message.contains("see cleave-cli info --families"),
             qPrintable(message));
    static const QRegularExpression named("(\\w+) +(\\w+)\n");
    std::size_t opened = 0;
    for (const auto& match : named.globalMatch(QString::fromStdString(families::listOfFamilies()))) {
      json config = stranger;
      config["architectures"] = {match.captured(1).toStdString()};
      config["model_type"] = match.captured(2).toStdString();
      const auto read = families::readModelConfig(config);
      QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
      ++opened;
    }
    std::size_t classes = 0;
    for (const families::Family* family : families::families()) classes += family->heads.size();
    QCOMPARE(opened, classes);
  }

  void refusesValuesThatAreNotObjects() { QVERIFY(!families::readModelConfig(json::array())); }
};

QTEST_APPLESS_MAIN(TestModelConfig)
#include "tst_model_config.moc"
