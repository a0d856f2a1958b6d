#include "solve/checker.h"
#include "tests/support/llama_graph.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

Problem withPin(const std::string& text) {
  Problem problem = *test::problemOf(test::llamaGraph(), 2);
  problem.pins.push_back(*Pin::parse(text));
  return problem;
}

}  // namespace

class TestProblem : public QObject {
  Q_OBJECT
 private slots:
  void matchesStars_data() {
    QTest::addColumn<QString>("pattern");
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("isMatch");
    QTest::newRow("equal") << "lm_head"
                           << "lm_head" << true;
    QTest::newRow("part") << "lm_head"
                          << "lm_head2" << false;
    QTest::newRow("star") << "*"
                          << "anything" << true;
    QTest::newRow("star matches nothing") << "a*b"
                                          << "ab" << true;
    QTest::newRow("middle") << "model.layers.*.q_proj"
                            << "model.layers.12.self_attn.q_proj" << true;
    QTest::newRow("needs the end") << "model.layers.*.q_proj"
                                   << "model.layers.12.self_attn.q_proj.x" << false;
    QTest::newRow("goes back") << "*aab"
                               << "aaab" << true;
    QTest::newRow("two stars") << "*.3.*"
                               << "layers.3.mlp" << true;
    QTest::newRow("empty") << ""
                           << "" << true;
    QTest::newRow("empty pattern") << ""
                                   << "a" << false;
  }
  void matchesStars() {
    QFETCH(QString, pattern);
    QFETCH(QString, name);
    QFETCH(bool, isMatch);
    QCOMPARE(matches(pattern.toStdString(), name.toStdString()), isMatch);
  }

  void parsesPins_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("meaning");
    QTest::newRow("axis") << "lm_head=row"
                          << "lm_head = row row+scatter";
    QTest::newRow("replicated") << " a.* = replicated "
                                << "a.* = whole gather+whole whole-on-sequence";
    QTest::newRow("one strategy") << "a=column+gather"
                                  << "a = column+gather";
    QTest::newRow("that form alone") << "a==column"
                                     << "a = column";
    QTest::newRow("not that form alone") << "a !== row"
                                         << "a != row";
    QTest::newRow("an axis that is no form") << "a==replicated"
                                             << "a = whole gather+whole whole-on-sequence";
    QTest::newRow("forbid") << "a!=vocab"
                            << "a != vocab vocab+scatter";
    QTest::newRow("value") << "add_4=S(1)"
                           << "add_4 = S(1)";
    QTest::newRow("forbidden value") << "add_4!=R"
                                     << "add_4 != R";
  }
  void parsesPins() {
    QFETCH(QString, text);
    QFETCH(QString, meaning);
    const auto pin = Pin::parse(text.toStdString());
    QVERIFY2(pin.has_value(), pin ? "" : pin.error().message.c_str());
    std::string parsed = fmt::format("{} {}", pin->pattern, pin->forbids ? "!=" : "=");
    for (const auto s : pin->strategies) parsed += fmt::format(" {}", rules::toText(s));
    if (pin->placement) parsed += " " + pin->placement->text();
    QCOMPARE(QString::fromStdString(parsed), meaning);
  }

  void refusesPinsWithOneSentence_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("no equals") << "lm_head"
                               << "has no `=`";
    QTest::newRow("no name") << "=row"
                             << "nothing before";
    QTest::newRow("no value") << "lm_head="
                              << "nothing after";
    QTest::newRow("unknown word") << "lm_head=diagonal"
                                  << "neither a placement";
    QTest::newRow("bad placement") << "lm_head=S("
                                   << "neither a placement";
    QTest::newRow("empty") << ""
                           << "has no `=`";
  }
  void refusesPinsWithOneSentence() {
    QFETCH(QString, text);
    QFETCH(QString, phrase);
    const auto pin = Pin::parse(text.toStdString());
    QVERIFY(!pin.has_value());
    QCOMPARE(pin.error().code, ErrorCode::BadUsage);
    QVERIFY2(QString::fromStdString(pin.error().message).contains(phrase), pin.error().message.c_str());
  }

  /// As many copies as ranks are no way around a pin that forbids whole values, and no way to meet one that demands
  /// them.
  void copiesOnEveryRankAreWhole() {
    const auto pin = [](const char* text) { return *Pin::parse(text); };
    const auto placed = [](const char* text) { return *Placement::parse(text); };
    QVERIFY(!pin("a!=R").admits(placed("R"), 4));
    QVERIFY(!pin("a!=R").admits(placed("S(1,x4)"), 4));
    QVERIFY(pin("a!=R").admits(placed("S(1,x2)"), 4));
    QVERIFY(pin("a!=S(1)").admits(placed("S(1,x4)"), 4));
    QVERIFY(pin("a=R").admits(placed("R"), 4));
    QVERIFY(!pin("a=R").admits(placed("S(1,x4)"), 4));
  }

  void checksThatPinsNameSomething_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("typing error") << "lm_hed=row"
                                  << "Did you mean lm_head";
    QTest::newRow("part of a name") << "q_proj=row"
                                    << "model.layers.0.self_attn.q_proj";
    QTest::newRow("not a layer") << "sigmoid_0=row"
                                 << "not a layer";
    QTest::newRow("unknown value") << "linaer_3=R"
                                   << "linear_3";
    QTest::newRow("too few dimensions") << "linear_3=S(7)"
                                        << "dimensions 0 to 2";
    QTest::newRow("a module") << "model.layers.0.self_attn=column"
                              << "`model.layers.0.self_attn.*` names the layers in it";
    QTest::newRow("nothing like it") << "zzzzzzzz=row"
                                     << "matches no layer";
  }
  void checksThatPinsNameSomething() {
    QFETCH(QString, text);
    QFETCH(QString, phrase);
    const auto checked = withPin(text.toStdString()).checkPins();
    QVERIFY(!checked.has_value());
    QCOMPARE(checked.error().code, ErrorCode::BadUsage);
    QVERIFY2(QString::fromStdString(checked.error().message).contains(phrase), checked.error().message.c_str());
  }

  void findsWhatPinsSpeakOf() {
    const auto graph = test::llamaGraph();
    QCOMPARE(targetsOf(*Pin::parse("model.layers.*.q_proj=column"), *graph).layers.size(), std::size_t{2});
    QCOMPARE(targetsOf(*Pin::parse("linear_0=row"), *graph).layers.size(), std::size_t{1});
    QCOMPARE(targetsOf(*Pin::parse("linear_*=R"), *graph).values.size(), std::size_t{15});
    // A layer's name stands for its result where no value has it.
    QCOMPARE(targetsOf(*Pin::parse("lm_head=R"), *graph).values.size(), std::size_t{1});
  }

  void honoursPinsInTheSolution_data() {
    QTest::addColumn<QString>("pin");
    for (const char* pin :
         {"lm_head=replicated", "model.layers.*.mlp.*=replicated", "model.layers.1.self_attn.q_proj!=column", "add_3=R",
          "model.layers.0.mlp.up_proj.weight=R", "lm_head=S(2)"}) {
      QTest::newRow(pin) << pin;
    }
  }
  void honoursPinsInTheSolution() {
    QFETCH(QString, pin);
    const auto problem = test::problemOf(test::llamaGraph(), 2, {pin.toStdString()});
    const auto recorded = test::record(problem);
    QCOMPARE(recorded.result.outcome, Outcome::Solved);
    const auto violations = check(*problem, *recorded.result.solution);
    QVERIFY2(violations.empty(), violations.empty() ? "" : violations.front().c_str());
  }
};

QTEST_APPLESS_MAIN(TestProblem)
#include "tst_problem.moc"
