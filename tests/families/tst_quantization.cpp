// quantization_config → the packed form of weights, and the packed weights.
#include "families/model_config.h"
#include "families/packed_weights.h"
#include "tests/support/need.h"

#include <QTest>
#include <nlohmann/json.hpp>

using namespace cleave;
using families::PackedForm;
using families::Quantization;
using nlohmann::json;
using test::need;

namespace {

Result<std::optional<Quantization>> read(const char* text) {
  const json config{{"quantization_config", json::parse(text)}};
  const JsonObject fields = need(JsonObject::of(config, "config.json"));
  return families::readQuantization(fields);
}

Quantization quantization(const char* text) { return *need(read(text)); }

constexpr const char* kFloatQuantized = R"({"quant_method": "compressed-tensors", "format": "float-quantized",
  "ignore": ["lm_head", "re:.*mlp\\.gate$"], "config_groups": {"group_0": {"targets": ["Linear"],
  "input_activations": {"dynamic": false}, "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}})";
constexpr const char* kPackQuantized = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
  "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": true}}}})";

/// Two blocks of one linear layer each, and an output layer.
constexpr std::string_view kGraph = R"(x: f32[4,256] = input
model.layers.0.up_proj.weight: bf16[512,256] = parameter
model.layers.0.norm.weight: bf16[256] = parameter
lm_head.weight: bf16[128,512] = parameter
linear_0: f32[4,512] = aten::linear(x, model.layers.0.up_proj.weight, None)
linear_1: f32[4,128] = aten::linear(linear_0, lm_head.weight, None)
return y=linear_1
)";

families::ModelConfig llama(const char* quantization) {
  json config = json::parse(R"({"model_type": "llama", "hidden_size": 256, "num_attention_heads": 8})");
  if (quantization) config["quantization_config"] = json::parse(quantization);
  return need(families::readModelConfig(config));
}

formats::WeightSource stored(graph::DType dtype, graph::Shape shape) {
  formats::WeightSource source{{dtype, std::move(shape)}, "model.safetensors"};
  source.bytes = graph::sizeInBytes(source.type);
  return source;
}

}  // namespace

class TestQuantization : public QObject {
  Q_OBJECT
 private slots:
  void readsTheMethodsOfPublishedModels_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("bytes");  // of a weight [512, 256]
    constexpr qint64 kCount = 512 * 256;
    QTest::newRow("fp8 in blocks") << R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"
                                   << "fp8, 8 bit, blocks of 128 × 128" << kCount + 4 * 2 * 4;
    QTest::newRow("fp8") << R"({"quant_method": "fp8"})"
                         << "fp8, 8 bit, blocks of 128 × 128" << kCount + 4 * 2 * 4;
    QTest::newRow("fp8, powers of two") << R"({"quant_method": "fp8", "scale_fmt": "ue8m0"})"
                                        << "fp8, 8 bit, blocks of 128 × 128" << kCount + 4 * 2;
    QTest::newRow("fp8 without blocks")
        << R"({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": null})"
        << "fp8, 8 bit, one scale for each weight" << kCount + 8;
    QTest::newRow("fbgemm") << R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})"
                            << "fbgemm_fp8, 8 bit, a scale for each row" << kCount + 512 * 4;
    QTest::newRow("float-quantized") << kFloatQuantized
                                     << "compressed-tensors, float-quantized, 8 bit, one scale for each weight"
                                     << kCount + 4;
    QTest::newRow("pack-quantized") << kPackQuantized << "compressed-tensors, pack-quantized, 4 bit, groups of 128"
                                    << kCount / 2 + 512 * 2 * 2 + 16;
    QTest::newRow("awq") << R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true})"
                         << "awq, 4 bit, groups of 128" << kCount / 2 + 512 * 2 * 2 + 512 * 2 / 2;
    QTest::newRow("gptq") << R"({"quant_method": "gptq", "bits": 4, "group_size": 128})"
                          << "gptq, 4 bit, groups of 128" << kCount / 2 + 512 * 2 * 2 + 512 * 2 / 2 + 256 * 4;
    QTest::newRow("gptq, rows") << R"({"quant_method": "gptq", "bits": 8, "group_size": -1})"
                                << "gptq, 8 bit, a scale for each row" << kCount + 512 * 2 + 512 + 256 * 4;
    QTest::newRow("bitsandbytes, 8 bit") << R"({"load_in_8bit": true})"
                                         << "bitsandbytes, 8 bit, a scale for each row" << kCount + 512 * 4;
    QTest::newRow("bitsandbytes, 4 bit") << R"({"quant_method": "bitsandbytes", "load_in_4bit": true,
      "bnb_4bit_use_double_quant": true})"
                                         << "bitsandbytes, 4 bit, groups of 64"
                                         << kCount / 2 + kCount / 64 + kCount / 64 / 256 * 4 + 64 + 1024;
    QTest::newRow("mxfp4") << R"({"quant_method": "mxfp4"})"
                           << "mxfp4, 4 bit, groups of 32" << kCount / 2 + kCount / 32;
  }
  void readsTheMethodsOfPublishedModels() {
    QFETCH(QString, config);
    QFETCH(QString, text);
    QFETCH(qint64, bytes);
    const Quantization made = quantization(config.toUtf8().constData());
    QCOMPARE(QString::fromStdString(made.text()), text);
    QCOMPARE(made.groups.front().form.bytes(512, 256), bytes);
  }

  void refusesFormsOfUnknownSize_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("another method") << R"({"quant_method": "aqlm"})"
                                    << "quantization_config.quant_method must be one of awq, bitsandbytes";
    QTest::newRow("no method") << R"({"bits": 4})"
                               << "quantization_config.quant_method is missing";
    QTest::newRow("bits") << R"({"quant_method": "gptq", "bits": 5, "group_size": 128})"
                          << "quantization_config.bits must be one of 2, 3, 4, 8";
    QTest::newRow("group") << R"({"quant_method": "gptq", "bits": 4, "group_size": -7})"
                           << "quantization_config.group_size must be";
    QTest::newRow("block") << R"({"quant_method": "fp8", "weight_block_size": [128]})"
                           << "quantization_config.weight_block_size must be two sizes";
    QTest::newRow("scales") << R"({"quant_method": "fp8", "scale_fmt": "e4m3"})"
                            << "quantization_config.scale_fmt must be float or ue8m0";
    QTest::newRow("fp4 experts") << R"({"quant_method": "fp8", "expert_dtype": "fp4"})"
                                 << "quantization_config.expert_dtype must be fp8";
    QTest::newRow("pattern") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.(layers\"]}"
                             << "pattern \"model.(layers\" has a ( without its ).";
    QTest::newRow("closed") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"model.layers)\"]}"
                            << "pattern \"model.layers)\" has a ) without its (";
    QTest::newRow("class") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"layers.[0-3\"]}"
                           << "pattern \"layers.[0-3\" has a [ without its ]";
    QTest::newRow("escape") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"layers.\\\\y1\"]}"
                            << "has an unknown escape at \"";
    QTest::newRow("lookahead") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"layers.(?!1)\"]}"
                               << "has a group that Cleave does not support at \"(?!\"";
    QTest::newRow("states") << "{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"((a{100}){100}){100}\"]}"
                            << "pattern \"((a{100}){100}){100}\" has ";
    QTest::newRow("no object") << "[]"
                               << "quantization_config must be";
  }
  void refusesFormsOfUnknownSize() {
    QFETCH(QString, config);
    QFETCH(QString, phrase);
    const auto result = read(config.toUtf8().constData());
    QVERIFY(!result);
    const QString message = QString::fromStdString(result.error().message);
    QVERIFY2(message.startsWith("config.json") && message.contains(phrase), qPrintable(message));
  }

  /// Results of Python's `re` and transformers' should_convert_module.
  void patternsNameModules_data() {
    QTest::addColumn<QString>("pattern");
    QTest::addColumn<QString>("module");
    QTest::addColumn<bool>("isSkipped");
    const auto row = [](const char* pattern, const char* module, bool isSkipped) {
      QTest::addRow("%s %s", pattern, module) << pattern << module << isSkipped;
    };
    row("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj", true);
    row("model.layers.*.self_attn", "model.layers.3.mlp.up_proj", false);
    row("model.layers.1", "model.layers.1.mlp.up_proj", true);
    row("model.layers.1", "model.layers.11.mlp.up_proj", false);
    row("mlp.gate", "model.layers.0.mlp.gate", true);
    row("mlp.gate", "model.layers.0.mlp.gate_proj", false);
    row("lm_head", "lm_head", true);
    row("model.layers.(0|2).*", "model.layers.2.mlp", true);
    row("model.layers.(0|2).*", "model.layers.1.mlp", false);
    row("model.layers.[0-2]+.mlp", "model.layers.12.mlp.up_proj", true);
    row("model.layers.[^1].mlp", "model.layers.1.mlp.up_proj", false);
    row(".*\\.\\d?\\.mlp$", "model.layers.4.mlp", true);
    row("model.layers.$", "model.layers.4.mlp", false);
    row("model.layers.", "model.layers.4.mlp", true);
    row("model.visual.", "model.visually.mlp", false);
    row("layers.\\d{2}", "layers.12.mlp", true);
    row("(?:a?a?a?a?a?a?)+b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false);
  }
  void patternsNameModules() {
    QFETCH(QString, pattern);
    QFETCH(QString, module);
    QFETCH(bool, isSkipped);
    const json config{
        {"quantization_config", {{"quant_method", "fp8"}, {"modules_to_not_convert", {pattern.toStdString()}}}}};
    const auto made = need(families::readQuantization(need(JsonObject::of(config, "config.json"))));
    QCOMPARE(made->formOf(module.toStdString(), true, false) == nullptr, isSkipped);
  }

  void compressedTensorsNamesModulesItsOwnWay() {
    const Quantization made = quantization(kFloatQuantized);
    QVERIFY(!made.formOf("lm_head", false, false));
    QVERIFY(!made.formOf("model.layers.0.mlp.gate", true, false));
    QVERIFY(made.formOf("model.layers.0.mlp.gate_proj", true, false));
    const Quantization parts = quantization(R"({"quant_method": "compressed-tensors", "format": "int-quantized",
      "config_groups": {"group_0": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "strategy": "channel"}},
                        "group_1": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "strategy": "channel"}}}})");
    QCOMPARE(parts.formOf("model.layers.0.self_attn.q_proj", true, false)->bits, 8);
    QCOMPARE(parts.formOf("model.layers.0.mlp.up_proj", true, false)->bits, 4);
    QVERIFY(!parts.formOf("model.layers.0.other", true, false));
  }

  /// Embeddings, norms, routers and the output layer are not packed.
  void aConfigAlonePacksLinearLayers() {
    auto graph = need(graph::parseGraph(kGraph));
    formats::WeightSources none;
    QVERIFY(families::packWeights(llama(nullptr), graph, none));
    QVERIFY(graph.packedBytes.empty());
    QVERIFY(families::packWeights(llama(R"({"quant_method": "fp8"})"), graph, none));
    QCOMPARE(graph.packedBytes.size(), 1);
    QCOMPARE(graph.packedBytes.at("model.layers.0.up_proj.weight"), 512 * 256 + 4 * 2 * 4);
    QVERIFY(families::packWeights(llama(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": true})"),
                                  graph, none));
    QCOMPARE(graph.packedBytes.size(), 2);
  }

  /// The stored tensors determine the size, not the config.
  void aCheckpointSaysWhatAParameterTakes_data() {
    using graph::DType;
    using Tensors = std::vector<std::pair<std::string, formats::WeightSource>>;
    QTest::addColumn<QString>("method");
    QTest::addColumn<Tensors>("tensors");
    QTest::newRow("gptq") << R"({"quant_method": "gptq", "bits": 4, "group_size": 64})"
                          << Tensors{{"qweight", stored(DType::Int32, {32, 512})},
                                     {"qzeros", stored(DType::Int32, {4, 64})},
                                     {"scales", stored(DType::Float16, {4, 512})},
                                     {"g_idx", stored(DType::Int32, {256})}};
    QTest::newRow("fp8") << R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"
                         << Tensors{{"weight", stored(DType::Float8E4M3, {512, 256})},
                                    {"weight_scale_inv", stored(DType::Float32, {4, 2})}};
    QTest::newRow("compressed") << kPackQuantized
                                << Tensors{{"weight_packed", stored(DType::Int32, {512, 32})},
                                           {"weight_scale", stored(DType::BFloat16, {512, 2})},
                                           {"weight_shape", stored(DType::Int64, {2})}};
    QTest::newRow("bitsandbytes") << R"({"load_in_4bit": true})"
                                  << Tensors{{"weight", stored(DType::UInt8, {512 * 128, 1})},
                                             {"weight.absmax", stored(DType::UInt8, {2048})},
                                             {"weight.nested_absmax", stored(DType::Float32, {8})},
                                             {"weight.nested_quant_map", stored(DType::Float32, {256})},
                                             {"weight.quant_map", stored(DType::Float32, {16})},
                                             {"weight.quant_state.bitsandbytes__nf4", stored(DType::UInt8, {83})}};
  }
  void aCheckpointSaysWhatAParameterTakes() {
    QFETCH(QString, method);
    using Tensors = std::vector<std::pair<std::string, formats::WeightSource>>;
    QFETCH(Tensors, tensors);
    auto graph = need(graph::parseGraph(kGraph));
    formats::WeightSources sources;
    std::int64_t bytes = 0;
    for (const auto& [name, source] : tensors) {
      sources.emplace("model.layers.0.up_proj." + name, source);
      bytes += source.bytes;
    }
    sources.emplace("lm_head.weight", stored(graph::DType::BFloat16, {128, 512}));
    sources.emplace("model.layers.0.up_proj.bias", stored(graph::DType::BFloat16, {512}));
    const auto packed = families::packWeights(llama(method.toUtf8().constData()), graph, sources);
    QVERIFY2(packed, packed ? "" : packed.error().message.c_str());
    QCOMPARE(graph.packedBytes.size(), 1);
    QCOMPARE(graph.packedBytes.at("model.layers.0.up_proj.weight"), bytes);
    for (const auto& [name, source] : sources) {
      const bool isPart = name != "lm_head.weight" && !name.ends_with("bias");
      QCOMPARE(source.partOf, std::string(isPart ? "model.layers.0.up_proj.weight" : ""));
    }
  }

  void moreBytesThanAnyQuantizationNeedsAreRefused() {
    auto graph = need(graph::parseGraph(kGraph));
    formats::WeightSources sources;
    sources.emplace("model.layers.0.up_proj.qweight", stored(graph::DType::Int32, {512, 1024}));
    const auto packed =
        families::packWeights(llama(R"({"quant_method": "gptq", "bits": 4, "group_size": 64})"), graph, sources);
    QVERIFY(!packed);
    QVERIFY(packed.error().message.find("above the limit for any quantization") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestQuantization)
#include "tst_quantization.moc"
