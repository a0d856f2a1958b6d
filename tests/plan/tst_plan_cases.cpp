/// Text cases of plans: a graph and settings give the rank program, or its picture.
///
///     > ranks 2, > menu full, > sequence-parallel on
///     > layer up column        the strategy of a layer; other layers are replicated, other operators use their rule's
///                              first claim
///     > pin up=column          instead: solves with pins by engine `learning`
///     > redistribute relu_0    the same, with redistributable values
///     > outputs split          does not gather outputs
///     > layers                 also prints the annotation of each layer
///     > model decoder          uses kDecoder instead of a graph; `decoder 13` has 13 tokens
#include "plan/build/plan_request.h"
#include "plan/text/dot.h"
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
  if (!candidateSet || !sequence) qFatal("%s: unknown menu or sequence parallelism", asked.title.c_str());
  const auto where = context(asked.number("ranks", 2), *sequence, *candidateSet);
  std::string graph = asked.question;
  if (const std::string model = asked.setting("model", ""); model == "decoder")
    graph = kDecoder;
  else if (model.starts_with("decoder "))
    graph = decoderWithVocabulary(std::stoi(model.substr(8)));
  else if (!model.empty())
    qFatal("%s: unknown model", asked.title.c_str());
  Strategies strategies;
  for (const std::string& layer : asked.all("layer")) {
    const auto space = layer.find(' ');
    const auto strategy = rules::parseStrategy(layer.substr(space + 1));
    if (!strategy) qFatal("%s: unknown strategy: %s", asked.title.c_str(), layer.c_str());
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

/// The program, then its collectives, each with its result and the bytes of the full tensor.
std::string programOf(const Case& asked) {
  const Plan plan = planned(requestOf(asked));
  std::string text = programText(*plan.program);
  for (const CollectivePlan& c : plan.collectives)
    text += fmt::format("{} of {}, {} bytes\n", rules::toText(c.kind), c.after, c.bytes);
  if (asked.has("layers")) {
    for (const LayerPlan& layer : plan.layers) text += layerText(layer);
  }
  for (ValueId v : idRange<ValueId>(plan.graph->values.size())) {  // the part of a value has the same name
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
