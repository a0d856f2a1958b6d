// Model folder → captured graph and ATen graph: contents, origins, and refusals.
#include "graph/verify.h"
#include "libtorch/capture/capture.h"
#include "libtorch/capture/joins.h"
#include "libtorch/capture/mixtures.h"
#include "libtorch/capture/products.h"
#include "tests/support/cases.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include <cstring>
#include <set>
#include <thread>

using namespace cleave;
using spec::InputSpec;
using torch_capture::CapturedModel;

namespace {

fs::path modelPath(const std::string& name) { return fs::path(CLEAVE_TEST_DATA) / name; }

CapturedModel capture(const std::string& name, const spec::InputSpec& options = {.batch = 2, .sequence = 16}) {
  const auto folder = formats::openModelFolder(modelPath(name));
  if (!folder) qFatal("%s", folder.error().message.c_str());
  auto model = torch_capture::captureModel(*folder, options);
  if (!model) qFatal("%s", model.error().message.c_str());
  return std::move(*model);
}

std::size_t count(const graph::Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.nodes, [&](const graph::Node& node) { return graph.opName(node) == op; }));
}

/// Captures a model folder in tests/data. `> depth captured` or `aten`, `> mask`, `> loss`.
std::string graphOf(const test::Case& asked) {
  const std::string folder = asked.question.substr(0, asked.question.find('\n'));
  const auto captured =
      capture(folder, {.batch = 1, .sequence = 8, .mask = asked.has("mask"), .loss = asked.has("loss")});
  const std::string depth = asked.setting("depth", "aten");
  if (depth != "aten" && depth != "captured") qFatal("no such depth: %s", depth.c_str());
  return graph::toText(depth == "aten" ? *captured.aten : *captured.captured);
}

/// A graph after the passes that recognise layers in their operators.
std::string layersOf(const test::Case& asked) {
  auto graph = graph::parseGraph(asked.question);
  if (!graph) qFatal("%s: %s", asked.title.c_str(), graph.error().message.c_str());
  const std::string before = graph::toText(*graph);
  torch_capture::makeJoins(*graph);
  torch_capture::makeLinear(*graph);
  torch_capture::makeExperts(*graph);
  const auto sound = graph::verify(*graph);
  if (!sound) return sound.error().message;
  const std::string after = graph::toText(*graph);
  return after == before ? "as it was\n" : after;
}

}  // namespace

class TestCapture : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"libtorch/capture", {{"graphs", graphOf}, {"layers", layersOf}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }

  void tracesEveryNodeBack_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<bool>("mask");
    for (const char* model : {"models/llama", "models/llama-tied", "models/qwen2", "decoders/mistral-window"}) {
      QTest::addRow("%s", model) << model << false;
      QTest::addRow("%s with mask", model) << model << true;
    }
  }
  void tracesEveryNodeBack() {
    QFETCH(QString, model);
    QFETCH(bool, mask);
    const auto captured = capture(model.toStdString(), {.batch = 2, .sequence = 16, .mask = mask});
    std::vector<bool> isReached(captured.captured->nodes.size());
    for (const graph::Node& node : captured.aten->nodes) {
      QVERIFY(node.origin.isValid() && node.origin.index() < isReached.size());
      isReached[node.origin.index()] = true;
      const graph::Node& origin = captured.captured->node(node.origin);
      QVERIFY(origin.kind == node.kind);
      QCOMPARE(captured.aten->scope(node.scope).path, captured.captured->scope(origin.scope).path);
    }
    const auto lost = std::ranges::find(isReached, false);
    if (lost != isReached.end()) {
      const auto index = static_cast<std::size_t>(lost - isReached.begin());
      QFAIL(captured.captured->opName(captured.captured->nodes[index]).c_str());
    }
  }

  void keepsLeavesWholeAndNormalises() {
    const auto captured = capture("models/llama");
    const graph::Graph& aten = *captured.aten;
    QCOMPARE(count(aten, "aten::linear"), std::size_t(15));
    QCOMPARE(count(aten, "aten::embedding"), std::size_t(1));
    QCOMPARE(count(aten, "aten::scaled_dot_product_attention"), std::size_t(2));
    QCOMPARE(count(aten, "aten::cross_entropy_loss"), std::size_t(1));
    for (const char* gone : {"aten::silu", "aten::transpose.int", "aten::_unsafe_view", "aten::to.dtype",
                             "aten::arange", "aten::matmul"}) {
      QCOMPARE(count(aten, gone), std::size_t(0));
    }
    QVERIFY(count(*captured.captured, "aten::silu") == 2 && count(*captured.captured, "aten::to.dtype") > 10);
  }

  void namesInputsOutputsAndParameters() {
    const auto captured = capture("models/qwen2", {.batch = 2, .sequence = 16, .mask = true});
    const auto folder = formats::openModelFolder(modelPath("models/qwen2"));
    std::vector<std::string> inputs;
    std::set<std::string> parameters, stored;
    for (const graph::Node& node : captured.aten->nodes) {
      const graph::Value* value = node.results.empty() ? nullptr : &captured.aten->value(node.results[0]);
      if (node.kind == graph::NodeKind::Input) inputs.push_back(value->name);
      if (node.kind != graph::NodeKind::Parameter) continue;
      parameters.insert(value->name);
      QVERIFY(folder->tensors.at(value->name).type == value->type);
    }
    for (const auto& [name, tensor] : folder->tensors) stored.insert(name);
    QVERIFY(inputs == std::vector<std::string>({"input_ids", "attention_mask", "labels"}));
    QVERIFY(parameters == stored);
    QCOMPARE(captured.aten->outputs.size(), std::size_t(2));
    QCOMPARE(captured.aten->outputs[0].name, std::string("logits"));
    QCOMPARE(captured.aten->outputs[1].name, std::string("loss"));
    QCOMPARE(captured.architecture, std::string("Qwen2ForCausalLM"));
  }

  void sharesTiedParameters() {
    const auto captured = capture("models/llama-tied");
    const auto tied = captured.aten->tiedNames.find("model.embed_tokens.weight");
    QVERIFY(tied != captured.aten->tiedNames.end() && tied->second == std::vector<std::string>{"lm_head.weight"});
    QVERIFY(!captured.aten->findValue("lm_head.weight").isValid());
    QCOMPARE(captured.aten->value(captured.aten->findValue("model.embed_tokens.weight")).users.size(), std::size_t(2));
  }

  void holdsTheRotaryFrequencies() {
    const auto captured = capture("models/llama");
    const graph::ValueId value = captured.aten->findValue("model.rotary_emb.inv_freq");
    QVERIFY(value.isValid());
    const auto& bytes = captured.aten->constants.at(captured.aten->value(value).producer.raw());
    QCOMPARE(bytes.size(), std::size_t(16));
    float first = 0;
    std::memcpy(&first, bytes.data(), sizeof first);
    QCOMPARE(first, 1.0f);
  }

  void takesAnotherDtype() {
    const auto captured = capture("models/llama", {.batch = 1, .sequence = 4, .dtype = graph::DType::BFloat16});
    QVERIFY(captured.dtype == graph::DType::BFloat16);
    QVERIFY(captured.aten->value(captured.aten->findValue("lm_head.weight")).type.dtype == graph::DType::BFloat16);
    QVERIFY(captured.aten->value(captured.aten->outputs[0].value).type.dtype == graph::DType::Float32);
  }

  void keepsTheLastLogits() {
    const auto captured = capture("models/llama", {.batch = 1, .sequence = 8, .loss = false, .logitsToKeep = 1});
    QCOMPARE(captured.aten->outputs.size(), std::size_t(1));
    QVERIFY(captured.aten->shapeOf(captured.aten->outputs[0].value) == graph::Shape({1, 1, 256}));
    QVERIFY(!captured.aten->findValue("labels").isValid());
  }

  void refusesOptions_data() {
    QTest::addColumn<int>("batch");
    QTest::addColumn<int>("sequence");
    QTest::addColumn<int>("keep");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("no batch") << 0 << 8 << 0 << "batch is 0";
    QTest::newRow("negative sequence") << 1 << -3 << 0 << "sequence length is -3";
    QTest::newRow("loss of one position") << 1 << 1 << 0 << "the loss compares each position with the next";
    QTest::newRow("loss of some logits") << 1 << 8 << 1 << "the loss needs the logits of all positions";
    QTest::newRow("negative logits") << 1 << 8 << -1 << "logits-to-keep is -1";
  }
  void refusesOptions() {
    QFETCH(int, batch);
    QFETCH(int, sequence);
    QFETCH(int, keep);
    QFETCH(QString, phrase);
    const auto folder = formats::openModelFolder(modelPath("models/llama"));
    const auto result =
        torch_capture::captureModel(*folder, {.batch = batch, .sequence = sequence, .logitsToKeep = keep});
    QVERIFY(!result);
    QVERIFY2(QString::fromStdString(result.error().message).contains(phrase), result.error().message.c_str());
    QCOMPARE(exitCode(result.error().code), 2);
  }

  void refusesUnknownArchitectures() {
    auto folder = formats::openModelFolder(modelPath("models/gpt2"));
    nlohmann::json config = *folder->config;
    config["architectures"] = {"GPT2DoubleHeadsModel"};
    folder->config = std::make_shared<const nlohmann::json>(std::move(config));
    const auto result = torch_capture::captureModel(*folder, {});
    QVERIFY(!result);
    QVERIFY2(result.error().message.find("GPT2DoubleHeadsModel") != std::string::npos, result.error().message.c_str());
    QCOMPARE(exitCode(result.error().code), 3);
  }

  void stopsWhenAsked() {
    const auto folder = formats::openModelFolder(modelPath("models/llama"));
    std::stop_source source;
    source.request_stop();
    const auto result = torch_capture::captureModel(*folder, {}, Progress(source.get_token()));
    QVERIFY(!result);
    QCOMPARE(exitCode(result.error().code), 130);
    QVERIFY(torch_capture::captureModel(*folder, {}).has_value());
  }

  void isDeterministicAndThreadSafe() {
    const std::string expected = graph::toText(*capture("models/qwen2").aten);
    std::vector<std::jthread> threads;
    std::vector<std::string> texts(4);
    for (std::string& text : texts)
      threads.emplace_back([&text] { text = graph::toText(*capture("models/qwen2").aten); });
    threads.clear();
    for (const std::string& text : texts) QVERIFY(text == expected);
  }

  /// The size of Llama 3.1 405B. The time is only logged, because machines differ.
  void capturesALargeModel() {
    const auto captured = capture("models/llama-126-layers", {.batch = 1, .sequence = 4096});
    const double perLayer = static_cast<double>(captured.aten->nodes.size()) / 126;
    qInfo("%zu ATen nodes, %.1f per layer, capture %.0f ms, decompose %.0f ms", captured.aten->nodes.size(), perLayer,
          captured.captureMs, captured.decomposeMs);
    QVERIFY(perLayer > 60 && perLayer < 75);
  }
};

QTEST_APPLESS_MAIN(TestCapture)
#include "tst_capture.moc"
