// Dropout in a training step of a model that is built from its config: it must equal transformers' model.train().
#include "families/dropouts.h"
#include "families/family_table.h"
#include "graph/operators.h"
#include "libtorch/capture/capture.h"
#include "tests/support/need.h"

#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace cleave;
using nlohmann::json;

namespace {

/// A family's config with a probability for each of its keys, and transformers' dropouts for it (tools/dropouts.py).
const json& expected() {
  static const json kExpected = test::need(readJsonFile(fs::path(CLEAVE_TEST_DATA) / "dropouts.json"));
  return kExpected;
}

const json& caseOf(const std::string& name) {
  const json& cases = expected().at("cases");
  const auto found = std::ranges::find_if(cases, [&](const json& each) { return each.at("name") == name; });
  if (found == cases.end()) qFatal("no case %s", name.c_str());
  return *found;
}

Result<torch_capture::CapturedModel> captured(const json& config, bool dropout) {
  const QTemporaryDir where;
  const fs::path folder = where.path().toStdString();
  std::ofstream(folder / "config.json") << config.dump();
  CLEAVE_TRY(const auto opened, formats::openModelFolder(folder));
  return torch_capture::captureModel(opened, {.batch = expected().at("batch").get<std::int64_t>(),
                                              .sequence = expected().at("sequence").get<std::int64_t>(),
                                              .dropout = dropout});
}

/// [path of the module, probability, elements], in order.
json dropoutsOf(const graph::Graph& aten) {
  json found = json::array();
  for (const graph::Node& node : aten.nodes) {
    if (!graph::isDropout(aten, node)) continue;
    found.push_back({aten.scope(node.scope).path, std::get<double>(node.args[1]),
                     graph::elementCount(aten.shapeOf(node.results[0]))});
  }
  return found;
}

}  // namespace

class TestDropouts : public QObject {
  Q_OBJECT
 private slots:
  void dropsWhereTransformersDoes_data() {
    QTest::addColumn<std::string>("name");
    for (const json& each : expected().at("cases")) {
      const std::string name = each.at("name").get<std::string>();
      QTest::newRow(name.c_str()) << name;
    }
  }
  void dropsWhereTransformersDoes() {
    QFETCH(std::string, name);
    const json& wanted = caseOf(name);
    const auto training = test::need(captured(wanted.at("config"), true));
    const std::string found = dropoutsOf(*training.aten).dump(), all = wanted.at("dropouts").dump();
    QVERIFY2(found == all, ("\n" + found + "\nbut transformers\n" + all).c_str());
    const auto evaluation = test::need(captured(wanted.at("config"), false));
    QCOMPARE(dropoutsOf(*evaluation.aten).dump(), std::string("[]"));
  }

  /// Every family must be present, so a new one needs a case.
  void knowsEveryFamily() {
    std::set<std::string> known;
    for (const json& each : expected().at("cases")) known.insert(each.at("config").at("model_type"));
    for (const families::Family* family : families::families())
      QVERIFY2(known.contains(std::string(family->modelType)), std::string(family->modelType).c_str());
  }

  void dropsNothingWithProbabilitiesOfZero() {
    json config = caseOf("gpt2").at("config");
    for (const char* key : {"attn_pdrop", "resid_pdrop", "embd_pdrop"}) config[key] = 0.0;
    const auto with = test::need(captured(config, true)), without = test::need(captured(config, false));
    QCOMPARE(graph::toText(*with.aten), graph::toText(*without.aten));
    QVERIFY(with.dropouts.empty());
  }

  void hasTheDefaultsOfTransformers_data() {
    QTest::addColumn<std::string>("name");
    QTest::addColumn<std::string>("words");
    QTest::newRow("gpt2") << std::string("gpt2") << std::string("attn_pdrop 0.1, embd_pdrop 0.1, resid_pdrop 0.1");
    QTest::newRow("opt") << std::string("opt") << std::string("dropout 0.1");
    QTest::newRow("bert") << std::string("bert-classification")
                          << std::string("attention_probs_dropout_prob 0.1, hidden_dropout_prob 0.1");
    QTest::newRow("llama") << std::string("llama") << std::string();
  }
  void hasTheDefaultsOfTransformers() {
    QFETCH(std::string, name);
    QFETCH(std::string, words);
    json config = caseOf(name).at("config");
    for (const char* key : {"attn_pdrop", "resid_pdrop", "embd_pdrop", "dropout", "hidden_dropout_prob",
                            "attention_probs_dropout_prob", "classifier_dropout", "attention_dropout"})
      config.erase(key);
    QCOMPARE(families::dropoutText(test::need(families::readModelConfig(config))), words);
  }

  void refusesInvalidProbabilities_data() {
    QTest::addColumn<std::string>("name");
    QTest::addColumn<std::string>("key");
    QTest::addColumn<std::string>("value");
    const auto add = [](const char* row, const char* name, const char* key, const char* value) {
      QTest::newRow(row) << std::string(name) << std::string(key) << std::string(value);
    };
    add("below 0", "gpt2", "resid_pdrop", "-0.1");
    add("1", "llama", "attention_dropout", "1");
    add("above 1", "opt", "dropout", "1.5");
    add("a text", "gpt_neox", "hidden_dropout", "\"0.1\"");
    add("of a classifier", "bert-classification", "classifier_dropout", "2.0");
    add("of layers", "opt", "layerdrop", "-1");
  }
  void refusesInvalidProbabilities() {
    QFETCH(std::string, name);
    QFETCH(std::string, key);
    QFETCH(std::string, value);
    json config = caseOf(name).at("config");
    config[key] = json::parse(value);
    const auto refused = captured(config, false);
    QVERIFY(!refused);
    QVERIFY(refused.error().code == ErrorCode::BadInput);
    QVERIFY2(refused.error().message.find(key) != std::string::npos &&
                 refused.error().message.find("it is " + value + ".") != std::string::npos,
             refused.error().message.c_str());
  }

  void leavesOutNoWholeLayer() {
    json config = caseOf("opt").at("config");
    config["layerdrop"] = 0.25;
    QVERIFY(captured(config, false));
    const auto refused = captured(config, true);
    QVERIFY(!refused && refused.error().code == ErrorCode::BadInput);
    QVERIFY2(refused.error().message.find("layerdrop is 0.25") != std::string::npos, refused.error().message.c_str());
  }
};

QTEST_GUILESS_MAIN(TestDropouts)
#include "tst_dropouts.moc"
