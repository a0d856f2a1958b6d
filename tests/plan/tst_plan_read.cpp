#include "tests/support/plan_fixture.h"
#include "tests/support/seeds.h"

#include <nlohmann/json.hpp>

#include <random>
#include "plan/build/plan_request.h"
#include "plan/file/plan_file.h"
#include "plan/text/dot.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;
using Json = nlohmann::ordered_json;

namespace {

/// A plan with every kind of node, read from a checkpoint.
const std::string& goodPlan() {
  static const std::string text = [] {
    PlanRequest request = requestFor(kDecoder, context(2, rules::SequenceParallel::On), kDecoderOnSequence);
    for (const graph::Node& node : request.problem->graph->nodes) {
      if (node.kind != graph::NodeKind::Parameter) continue;
      const graph::Value& value = request.problem->graph->value(node.results[0]);
      request.checkpoint[value.name] = {value.type, "model.safetensors"};
    }
    return toJson(planned(request));
  }();
  return text;
}

/// The plan with the value at a JSON pointer replaced; a null pointer text removes the field.
std::string changed(const QString& pointer, const QString& value) {
  Json json = Json::parse(goodPlan());
  const Json::json_pointer at(pointer.toStdString());
  if (value == "(removed)") {
    Json& parent = json[at.parent_pointer()];
    parent.is_array() ? parent.erase(std::stoul(at.back())) : (void)parent.erase(at.back());
  } else {
    json[at] = Json::parse(value.toStdString());
  }
  return json.dump();
}

}  // namespace

class TestPlanRead : public QObject {
  Q_OBJECT
 private slots:
  void acceptsTheUnchangedPlan() {
    const auto plan = planFromJson(goodPlan());
    QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
  }

  /// A plan that is slower than the fastest, because of the slack or a stopped search, has negative regrets.
  void aRegretMayBeNegative() {
    const auto plan = planFromJson(changed("/layers/0/regret_fs", "-10364088889"));
    QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
    QVERIFY(plan->layers[0].regretFs == Femtoseconds(-10364088889));
    QVERIFY(!planFromJson(changed("/layers/0/regret_fs", "\"soon\"")));
  }

  void refusesChangedPlans_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("phrase");
    const auto row = [](const char* name, const char* pointer, const char* value, const char* phrase) {
      QTest::newRow(name) << pointer << value << phrase;
    };
    row("later version", "/schema", "\"cleave.plan/2\"",
        "version \"cleave.plan/2\", but this program reads cleave.plan/1");
    row("another file", "/schema", "\"cleave.run/1\"", "is not a plan");
    row("no solution", "/solved", "false", "The file holds no plan, but the reason why no plan was found.");
    row("no schema", "/schema", "(removed)", "plan.schema is missing");
    row("no ranks", "/ranks", "0", "plan.ranks must be an integer from 1 to 4096, but it is 0");
    row("text for ranks", "/ranks", "\"2\"", "plan.ranks must be");
    row("huge ranks", "/ranks", "18446744073709551615", "plan.ranks must be");
    row("another world size", "/ranks", "4", "do not fit the operator on 4 ranks");
    row("unknown engine", "/engine", "\"quantum\"", "plan.engine is \"quantum\"");
    row("negative seed", "/seed", "-1", "plan.seed must be");
    row("model as text", "/model", "\"llama\"", "plan.model must be an object");
    row("slack below zero", "/cost/slack_percent", "-1",
        "plan.cost.slack_percent must be a number from 0 to 10000, but it is -1");
    row("slack as text", "/cost/slack_percent", "\"1\"", "plan.cost.slack_percent must be a number");
    row("fastest below zero", "/cost/fastest", "{\"step_fs\":-1,\"rank_bytes\":1}",
        "plan.cost.fastest.step_fs must be");
    row("warnings as text", "/warnings", "[1]", "plan.warnings");

    row("class of a scope as a number", "/graph/scopes/1/class", "5",
        "plan.graph: graph.scopes[1].class must be a text, but it is 5");
    row("scope without its parent", "/graph/scopes/1/path", "\"a.b.c\"", "its parent does not come before it");
    row("tensor of too many dimensions", "/graph/nodes/0/out/0/1",
        ("\"f32[1" + QByteArray(",1").repeated(1001) + "]\"").constData(),
        "graph.nodes[0].out[0][1] must be a tensor type such as f32[2,8], of at most 64 dimensions");
    row("many warnings", "/warnings", ("[\"\"" + QByteArray(",\"\"").repeated(10'000) + "]").constData(),
        "plan.warnings must be a list of at most 10000 texts");
    row("two values of a name", "/graph/nodes/1/out/0/0", "\"ids\"", "the name of another value");
    row("foreign operator", "/program/ops/3", "\"os::system\"", "\"os::system\" is not an operator");
    row("operator without a name", "/program/ops/3", "\"aten::\"", "not an operator");
    row("operator with a path", "/program/ops/3", "\"aten::linear/../x\"", "not an operator");
    row("unknown own operator", "/program/ops/3", "\"cleave::shell\"", "not an operator");
    row("foreign operator in the graph", "/graph/ops/0", "\"prim::Print\"", "plan.graph: \"prim::Print\"");
    row("collective on a wrong dimension", "/program/nodes/4/args/1", "7",
        "Node 4 (cleave::reduce_scatter, embedding_0)");
    row("collective of a wrong shape", "/program/nodes/4/out/0/1", "\"f32[1,4,8]\"", "Node 4 (cleave::reduce_scatter");
    row("collective without operand", "/program/nodes/4/args/0", "3", "Node 4 (cleave::reduce_scatter");
    row("a value from later", "/program/nodes/3/args/0", "{\"v\":30}", "plan.program");
    row("huge shape", "/program/nodes/2/out/0/1", "\"f32[4611686018427387904,4]\"", "plan.program");
    row("huge in total", "/graph/nodes/0/out/0/1", "\"f32[1152921504606846976]\"", "exceed 2^60 bytes in total");
    row("negative shape", "/program/nodes/2/out/0/1", "\"f32[-1,4]\"", "plan.program");

    row("fewer values", "/values/3", "(removed)", "plan.values has");
    row("another name", "/values/3/name", "\"x\"", "plan.values[3] is called \"x\"");
    row("no placement", "/values/3/placement", "\"Q\"", "\"Q\" is not a placement");
    row("placement that does not fit", "/values/3/placement", "\"S(7)\"", "does not fit shape");

    row("layer twice", "/layers/1/value", "\"embedding_0\"", "plan.layers[1]");
    row("layer that is not a layer", "/layers/1/value", "\"mul_0\"", "is the result of no layer");
    row("layer missing", "/layers/1", "(removed)", "plan.layers lacks attn.q");
    row("unknown strategy", "/layers/1/strategy", "\"diagonal\"", "plan.layers[1].strategy is \"diagonal\"");
    row("strategy of another input", "/layers/1/strategy", "\"row\"", "cannot be row on 2 ranks");

    row("parameter missing", "/parameters/0", "(removed)", "plan.parameters lacks attn.k.weight");
    row("parameter twice", "/parameters/1/name", "\"attn.k.weight\"", "plan.parameters[1]");
    row("parameter unknown", "/parameters/0/name", "\"w\"", "the program has no parameter \"w\"");
    row("local shape", "/parameters/0/local_shape", "[4,8]", "no parameter \"attn.k.weight\" of type f32[4,8]");
    row("shape of another size", "/parameters/0/shape", "[8,8]", "does not become [2, 8]");
    row("shape with an overflow", "/parameters/0/shape", "[18446744073709551612,8]",
        "plan.parameters[0].shape must be a list of at most 64 items, each an integer from 0");
    row("placement of another size", "/parameters/0/placement", "\"R\"", "R of shape");
    row("climbing file", "/parameters/0/pieces/0/file", "\"a/../../secret.safetensors\"", "inside the model folder");
    row("absolute file", "/parameters/0/pieces/0/file", "\"/etc/secret.safetensors\"", "inside the model folder");
    row("drive", "/parameters/0/pieces/0/file", "\"C:secret.safetensors\"", "inside the model folder");
    row("NUL", "/parameters/0/pieces/0/file", "\"a\\u0000.safetensors\"", "inside the model folder");
    row("other kind of file", "/parameters/0/pieces/0/file", "\"model.bin\"", "inside the model folder");
    row("piece of rank 2", "/parameters/0/pieces/0/rank", "2", "pieces[0].rank must be an integer from 0 to 1");
    row("piece outside", "/parameters/0/pieces/0/start", "3", "are outside dimension 0");
    row("piece with an overflow", "/parameters/0/pieces/0/start", "9223372036854775807", "pieces[0].start must be");
    row("piece of other rows", "/parameters/0/pieces/0/start", "2", "the pieces of rank 0 do not make up its part");
    row("piece twice", "/parameters/0/pieces/1/rank", "0", "the pieces of rank 0");
    row("piece missing", "/parameters/0/pieces/1", "(removed)", "the pieces of rank 1");
    row("whole piece of a split parameter", "/parameters/0/pieces/1",
        "{\"rank\":1,\"tensor\":\"t\",\"file\":\"\",\"dim\":0,\"start\":0,\"length\":4}", "the pieces of rank 1");
    row("piece of another dimension", "/parameters/0/pieces/0/dim", "5", "pieces[0].dim must be");

    row("collective missing", "/collectives/0", "(removed)", "plan.collectives");
    row("collective added", "/collectives/8", "{}", "plan.collectives has 9 entries, but the program performs 8");
    row("collective of other bytes", "/collectives/0/bytes", "4",
        "plan.collectives[0] is \"reduce_scatter\" of 4 bytes");
    row("collective of other kind", "/collectives/0/kind", "\"all_reduce\"", "plan.collectives[0] is \"all_reduce\"");
  }
  void refusesChangedPlans() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, phrase);
    const auto plan = planFromJson(changed(pointer, value));
    QVERIFY(!plan.has_value());
    QCOMPARE(plan.error().code, ErrorCode::BadInput);
    QVERIFY2(plan.error().message.find(phrase.toStdString()) != std::string::npos, plan.error().message.c_str());
  }

  void refusesTextsThatAreNotPlans_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("empty") << QByteArray() << "The plan is empty";
    QTest::newRow("list") << QByteArray("[]") << "plan must be an object, but it is []";
    QTest::newRow("truncated") << QByteArray(goodPlan().substr(0, 500).c_str()) << "not valid JSON";
    QTest::newRow("deep") << QByteArray("{\"a\":") + QByteArray(100'000, '[')
                          << "The plan is nested deeper than 32 levels";
    QTest::newRow("not UTF-8") << QByteArray("{\"schema\":\"\xff\"}") << "not valid JSON";
    QTest::newRow("a character cut in the message")
        << QByteArray("{\"schema\":\"cleave.plan/") + QByteArray("\xc3\xa4").repeated(40) + "\"}"
        << "version";
    QTest::newRow("brackets in a text") << QByteArray("{\"schema\":\"") + QByteArray(100, '[') + "\\\"\"}"
                                        << "is not a plan";
  }
  void refusesTextsThatAreNotPlans() {
    QFETCH(QByteArray, text);
    QFETCH(QString, phrase);
    const auto plan = planFromJson({text.constData(), static_cast<std::size_t>(text.size())});
    QVERIFY(!plan.has_value());
    nlohmann::json(plan.error().message).dump();  // throws on invalid UTF-8
    QVERIFY2(plan.error().message.find(phrase.toStdString()) != std::string::npos, plan.error().message.c_str());
  }

  /// Random damage: the reader returns, and accepted plans can be written again.
  void survivesMutations() {
    std::mt19937_64 random(test::seed());
    const auto pick = [&](std::size_t bound) {
      return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    const std::string& good = goodPlan();
    int accepted = 0, refused = 0;
    for (std::uint64_t left = test::rounds(150); left > 0; --left) {
      std::string text = good;
      const std::size_t edits = 1 + pick(3);
      for (std::size_t i = 0; i < edits; ++i) {
        const std::size_t at = pick(text.size());
        switch (pick(4)) {
          case 0: text[at] = "0123456789-.,:[]{}\"aeflnrstuvS()R"[pick(33)]; break;
          case 1: text.erase(at, 1 + pick(20)); break;
          case 2: text.insert(at, text.substr(pick(text.size()), 1 + pick(20))); break;
          case 3:
            if (const auto digit = text.find_first_of("0123456789", at); digit != std::string::npos)
              text[digit] = static_cast<char>('0' + pick(10));
            break;
        }
      }
      const auto plan = planFromJson(text);
      if (!plan) {
        QVERIFY(!plan.error().message.empty());
        ++refused;
        continue;
      }
      ++accepted;
      QVERIFY(planFromJson(toJson(*plan)).has_value());
      toDot(*plan);
    }
    qInfo("%d of %d accepted", accepted, accepted + refused);
    QVERIFY(refused > accepted);
  }
};

QTEST_APPLESS_MAIN(TestPlanRead)
#include "tst_plan_read.moc"
