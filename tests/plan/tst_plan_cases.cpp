/// Plans as text in, text out: the program that ranks run for a graph, and the picture of it.
///
///     > ranks 2, > menu full, > sequence-parallel on
///     > layer up column        this layer so, those not named whole, everything else by its rule's first claim
///     > pin up=column          or: what `learning` answers to pins,
///     > redistribute relu_0    and to values that may change
///     > outputs split          outputs are not gathered
///     > layers                 the answer tells how each layer is annotated as well
///     > model decoder          instead of a graph: kDecoder, `decoder 13` with 13 tokens
#include "tests/support/cases.h"
#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;
using test::Case;

namespace {

PlanRequest requestOf(const Case& asked) {
  const auto candidateSet = rules::parseCandidateSet(asked.setting("menu", "optimum"));
  const auto sequence = rules::parseSequenceParallel(asked.setting("sequence-parallel", "off"));
  if (!candidateSet || !sequence) qFatal("%s: no such menu or sequence parallelism", asked.title.c_str());
  const auto where = context(asked.number("ranks", 2), *sequence, *candidateSet);
  std::string graph = asked.question;
  if (const std::string model = asked.setting("model", ""); model == "decoder")
    graph = kDecoder;
  else if (model.starts_with("decoder "))
    graph = decoderWithVocabulary(std::stoi(model.substr(8)));
  else if (!model.empty())
    qFatal("%s: no such model", asked.title.c_str());
  Strategies strategies;
  for (const std::string& layer : asked.all("layer")) {
    const auto space = layer.find(' ');
    const auto strategy = rules::parseStrategy(layer.substr(space + 1));
    if (!strategy) qFatal("%s: no such strategy: %s", asked.title.c_str(), layer.c_str());
    strategies[layer.substr(0, space)] = *strategy;
  }
  const Demands demands{asked.all("pin"), {}, asked.all("redistribute")};
  const bool isSearched = !demands.pins.empty() || !demands.redistributable.empty();
  PlanRequest request = isSearched ? solvedFor(graph, where, demands) : requestFor(graph, where, strategies);
  request.gatherOutputs = asked.setting("outputs", "gathered") != "split";
  return request;
}

std::string layerText(const LayerPlan& layer) {
  return fmt::format("{}: {}, {}{}{}{}: {}\n", layer.name, rules::toText(layer.strategy), layer.axis,
                     layer.gatherOutput ? ", gathers its output" : "", layer.inputIsParallel ? ", parallel input" : "",
                     layer.sequenceParallel ? ", on the sequence" : "", layer.reason);
}

/// The program, then its collectives, each with the value that it completes and the bytes of the whole tensor.
std::string programOf(const Case& asked) {
  const Plan plan = planned(requestOf(asked));
  std::string text = programText(*plan.program);
  for (const CollectivePlan& c : plan.collectives)
    text += fmt::format("{} of {}, {} bytes\n", rules::toText(c.kind), c.after, c.bytes);
  if (asked.has("layers")) {
    for (const LayerPlan& layer : plan.layers) text += layerText(layer);
  }
  for (ValueId v : idRange<ValueId>(plan.graph->values.size())) {  // what ranks hold of a value has its name
    const std::string& name = plan.graph->value(v).name;
    const std::string& held = plan.program->value(plan.programValueOf[v.index()]).name;
    if (held != name) text += fmt::format("{} is held as {}\n", name, held);
  }
  return text + lostInAFile(plan);
}

std::string dotOf(const Case& asked) { return toDot(planned(requestOf(asked))); }

}  // namespace

class TestPlanCases : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"plan", {{"programs", programOf}, {"dots", dotOf}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }
};

QTEST_APPLESS_MAIN(TestPlanCases)
#include "tst_plan_cases.moc"
