/// Rules and strategies as text in, text out: cases/verdicts, placements, parts, strategies, ...
#include "rules/examples.h"
#include "rules/rule_text.h"
#include "tests/rules/strategy_graphs.h"
#include "tests/support/cases.h"

using namespace cleave;
using namespace cleave::test;

namespace {

/// "S(1) | S(2)", or a conflict with the operands that cause it.
std::string verdictOf(const std::string& text) {
  const auto call = rules::parseCall(text);
  if (!call) return call.error().message;
  const auto graph = rules::oneNodeGraph(*call);
  if (!graph) return graph.error().message;
  std::vector<rules::Placement> placements;
  for (const auto& operand : call->operands) placements.push_back(operand.placement);
  const auto verdict = rules::applyRule({*graph, graph::NodeId(graph->nodes.size() - 1), placements, call->ranks});
  const auto* conflict = std::get_if<rules::Conflict>(&verdict);
  return rules::toText(verdict) + (conflict ? fmt::format(" [operands {}]", fmt::join(conflict->culprits, ", ")) : "");
}

/// One line for each call of the question.
std::string verdictsOf(const Case& asked) {
  std::string text;
  for (const std::string& call : linesOf(asked.question)) text += verdictOf(call) + "\n";
  return text;
}

/// `> size a=2`: the value of a letter.
std::string callsOf(const Case& asked) {
  std::map<char, std::int64_t> sizes;
  for (const std::string& size : asked.all("size")) sizes[size[0]] = std::stoll(size.substr(2));
  std::string text;
  for (const std::string& line : linesOf(asked.question)) {
    const auto call = rules::parseCall(line, sizes);
    text += (call ? rules::toText(*call) + fmt::format("  letters \"{}\"", rules::sizeLetters(line))
                  : call.error().message) +
            "\n";
  }
  return text;
}

/// The missing facts of each named operator; empty if nothing is missing.
std::string gapsOf(const Case& asked) {
  std::set<std::string> withExample;
  for (const rules::Example& example : rules::examples())
    withExample.insert(example.call.substr(0, example.call.find('(')));
  std::string text;
  const auto names = linesOf(asked.question);
  for (const std::string& name : names) {
    if (!rules::hasRule("aten::" + name)) text += name + " has no rule\n";
    if (!withExample.contains("aten::" + name)) text += name + " has no example\n";
  }
  return text + fmt::format("{} operators\n", std::set<std::string>(names.begin(), names.end()).size());
}

std::string placementOf(const std::string& text) {
  const auto placement = rules::Placement::parse(text);
  if (!placement) return "no placement";
  const auto again = rules::Placement::parse(placement->text());
  const bool isSame = again && *again == *placement && again->hash() == placement->hash();
  return placement->text() + (isSame ? "" : ", which reads back as another");
}

/// `S(0) of [12] on 8`: the shape per rank, or the reason why it does not divide.
std::string partOf(const std::string& text) {
  const auto of = text.find(" of ["), on = text.find("] on ");
  graph::Shape shape;
  std::istringstream sizes(text.substr(of + 5, on - of - 5));
  for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
  const int ranks = std::stoi(text.substr(on + 5));
  const auto placement = *rules::Placement::parse(text.substr(0, of));
  const auto local = placement.localShape(shape, ranks);
  const std::string why = placement.whyNotDivisible(shape, ranks);
  if (local) return graph::toText(*local) + (why.empty() ? "" : ", yet " + why);
  return "none: " + why;
}

/// The layer of a question and its strategies. `> ranks 2`, `> menu full`, `> sequence-parallel auto`.
struct Offer {
  Asked asked;
  LayerStrategies options;
};

Offer offerTo(const Case& question) {
  const auto candidateSet = rules::parseCandidateSet(question.setting("menu", "optimum"));
  const auto sequence = rules::parseSequenceParallel(question.setting("sequence-parallel", "off"));
  auto asked = ask(question.question);
  if (!candidateSet || !sequence || !asked)
    qFatal("%s: no such menu, sequence parallelism or layer", question.title.c_str());
  LayerStrategies options = layerStrategiesOf(*asked, on(question.number("ranks", 2), *candidateSet, *sequence));
  return {*std::move(asked), std::move(options)};
}

std::string strategiesOf(const Case& question) {
  const Offer offer = offerTo(question);
  std::string text;
  for (const auto& option : offer.options.offered) text += textOf(option, offer.asked.layer) + "\n";
  return text;
}

std::string reasonsOf(const Case& question) {
  std::string text;
  for (const auto& option : offerTo(question).options.offered)
    text += fmt::format("{}: {}\n", toText(option.strategy), option.reason);
  return text;
}

std::string refusalsOf(const Case& question) {
  std::string text;
  for (const auto& refusal : offerTo(question).options.refused)
    text += fmt::format("{}: {}\n", toText(refusal.strategy), refusal.reason);
  return text.empty() ? "none" : text;
}

/// The column strategies with a split other than the plain one.
std::string lanesOf(const Case& question) {
  std::string text;
  for (const auto& option : offerTo(question).options.offered) {
    if (option.strategy != Strategy::Column || option.result.isPlainSplit()) continue;
    text += fmt::format("{}: weight {}, bias {}\n", option.result.text(), option.weight.text(), option.bias.text());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

class TestRuleCases : public QObject {
  Q_OBJECT
  const Cases m_cases{"rules",
                      {{"verdicts", verdictsOf},
                       {"calls", callsOf},
                       {"operators", gapsOf},
                       {"placements", eachLine(placementOf)},
                       {"parts", eachLine(partOf)},
                       {"strategies", strategiesOf},
                       {"reasons", reasonsOf},
                       {"refusals", refusalsOf},
                       {"lanes", lanesOf}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }
};

QTEST_APPLESS_MAIN(TestRuleCases)
#include "tst_rule_cases.moc"
