/// Problems as text and results as text: the steps of a search, its conflict cards, and the targets of pins.
#include "base/wildcard.h"
#include "solve/checker.h"
#include "solve/explain/conflict_card.h"
#include "solve/explain/decision.h"
#include "solve/problem/variables.h"
#include "tests/support/cases.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

using namespace cleave;
using namespace cleave::solve;
using test::Case;

namespace {

std::string textOf(const std::vector<Sentence>& sentences) {
  std::string text;
  for (const Sentence& s : sentences) text += "  " + plainText(s) + "\n";
  return text;
}

/// The card of every conflict, then the decision about every layer.
std::string cardsOf(const std::shared_ptr<const Trace>& trace) {
  std::string text;
  Cursor cursor(trace);
  while (const auto at = cursor.next(EventType::Conflict)) {
    cursor.seek(*at);
    const auto card = conflictAt(cursor);
    text += fmt::format("conflict at step {}\n{}", *at, textOf(sentencesOf(*card)));
    for (const std::string& pin : card->pinsToTry) text += fmt::format("  [pin {}]\n", pin);
  }
  cursor.seek(trace->size());
  for (NodeId n : trace->variables().deciders()) {
    if (trace->variables().layer(n)) text += fmt::format("decision\n{}", textOf(decisionAt(cursor, n).sentences));
  }
  for (const StuckNode& node : stuck(*trace)) {
    text += fmt::format(
        "stuck {} times at {}\n", node.conflicts,
        describe(*trace, {.type = EventType::Conflict, .node = node.node.raw(), .detail = node.mostFrequent.raw()}));
  }
  return text;
}

/// The steps of `reference`, and the causes if it finds no solution; `> cards` adds the explanations. `> ranks 2`, `>
/// pin head=row`, `> sequence-parallel on`.
std::string searchOf(const Case& asked) {
  const auto sequence = rules::parseSequenceParallel(asked.setting("sequence-parallel", "off"));
  if (!sequence) qFatal("%s: no such sequence parallelism", asked.title.c_str());
  const auto problem =
      test::problemOf(test::parsedGraph(asked.question), asked.number("ranks", 2), asked.all("pin"), *sequence);
  const auto recorded = test::record(problem);
  std::string text = test::textOf(*recorded.trace);
  for (const ConflictRecord& cause : recorded.result.causes) text += fmt::format("cause: {}\n", cause.reason);
  if (recorded.result.solution) {
    for (const std::string& violation : check(*problem, *recorded.result.solution)) text += "violated: " + violation;
  }
  return text + (asked.has("cards") ? cardsOf(recorded.trace) : "");
}

/// "`a*b` on `ab`"
std::string coverageOf(const std::string& line) {
  const auto end = line.find('`', 1), name = line.find('`', end + 1) + 1;
  const bool isCovered = matchesWildcard(line.substr(1, end - 1), line.substr(name, line.size() - name - 1));
  return isCovered ? "covers" : "no";
}

std::string refusalText(const Error& error) {
  return (error.code == ErrorCode::BadUsage ? "bad usage: " : "not a matter of usage: ") + error.message;
}

std::string demandOf(const std::string& text) {
  const auto pin = Pin::parse(text);
  if (!pin) return refusalText(pin.error());
  std::string demand = fmt::format("{} {}", pin->pattern, pin->forbids ? "!=" : "=");
  for (const auto s : pin->strategies) demand += fmt::format(" {}", rules::toText(s));
  return demand + (pin->placement ? " " + pin->placement->text() : "");
}

std::string checkedOnALlama(const std::string& pin) {
  const auto checked = test::problemOf(test::llamaGraph(), 2, {pin})->checkPins();
  return checked ? "fits" : refusalText(checked.error());
}

}  // namespace

class TestSolveCases : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"solve",
                            {{"searches", searchOf},
                             {"patterns", test::eachLine(coverageOf)},
                             {"pins", test::eachLine(demandOf)},
                             {"pins_of_a_llama", test::eachLine(checkedOnALlama)}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }
};

QTEST_APPLESS_MAIN(TestSolveCases)
#include "tst_solve_cases.moc"
