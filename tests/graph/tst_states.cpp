/// The states of generation, recognised by their names.
#include "graph/states.h"

#include <QTest>

using namespace cleave;
using namespace cleave::graph;

namespace {

Graph parsed(const char* text) {
  auto graph = parseGraph(text);
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return *std::move(graph);
}

/// A decode step with one layer: it writes into the cache of keys and returns it.
constexpr const char* kStep = R"(
cache_position: i64[1] = input
past_key_values.0.key: f32[2,4,8,3] = input
past_key_values.0.value: f32[2,4,8,3] = input
own: f32[2,4,1,3] = input
keys: f32[2,4,8,3] = aten::index_put(past_key_values.0.key, [None, None, cache_position], own, false)
values: f32[2,4,8,3] = aten::index_put(past_key_values.0.value, [None, None, cache_position], own, false)
logits: f32[2,4,8,3] = aten::add.Tensor(keys, values, 1)
return logits=logits, present.0.key=keys, present.0.value=values
)";

std::vector<bool> inPlace(const Graph& graph) {
  std::vector<bool> answers;
  for (const auto id : idRange<NodeId>(graph.nodes.size())) {
    if (graph.opName(graph.node(id)) == "aten::index_put") answers.push_back(writesInPlace(graph, id));
  }
  return answers;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

class TestStates : public QObject {
  Q_OBJECT
 private slots:
  void pairsInputsWithOutputs() {
    const Graph step = parsed(kStep);
    const auto states = statesOf(step);
    QCOMPARE(states.size(), std::size_t{2});
    QCOMPARE(states[0].name, std::string("0.key"));
    QCOMPARE(step.value(states[0].past).name, pastName(0, "key"));
    QCOMPARE(step.value(states[0].present).name, std::string("keys"));
    QCOMPARE(step.outputs[states[1].output].name, presentName(0, "value"));
  }

  void aPrefillOnlyReturnsStates() {
    const auto states = statesOf(parsed("x: f32[2,4] = input\nreturn logits=x, present.3.value=x"));
    QCOMPARE(states.size(), std::size_t{1});
    QCOMPARE(states[0].name, std::string("3.value"));
    QVERIFY(!states[0].past.isValid());
  }

  void otherGraphsHaveNoStates() {
    QVERIFY(statesOf(parsed("x: f32[2,4] = input\nreturn logits=x")).empty());
    QVERIFY(statesOf(parsed("past_key_values_0_key: f32[2,4] = input\nreturn output_0=past_key_values_0_key")).empty());
  }

  void aCacheThatNothingElseReadsIsWrittenInPlace() {
    const std::vector<bool> both{true, true};
    QCOMPARE(inPlace(parsed(kStep)), both);
  }

  void aCacheThatIsReadBesideIsNot() {
    const std::string text = replaced(kStep, "aten::add.Tensor(keys,", "aten::add.Tensor(past_key_values.0.key,");
    const std::vector<bool> second{false, true};
    QCOMPARE(inPlace(parsed(text.c_str())), second);
  }

  void writesThatAreNotReturnedAreNot() {
    const std::string text = replaced(kStep, ", present.0.value=values", "");
    const std::vector<bool> first{true, false};
    QCOMPARE(inPlace(parsed(text.c_str())), first);
  }

  void usesGoByTheirNames() {
    for (const CacheUse use : {CacheUse::None, CacheUse::Fills, CacheUse::Reads})
      QCOMPARE(parseCacheUse(toText(use)), std::optional(use));
    QVERIFY(!parseCacheUse("empties"));
  }
};

QTEST_APPLESS_MAIN(TestStates)
#include "tst_states.moc"
