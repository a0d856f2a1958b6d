// The decision panel and the conflict card: their texts, links and buttons.
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QTextBlock>
#include <QTextBrowser>
#include <QTextDocument>
#include <QTextLayout>
#include <QToolButton>
#include <QtTest>

#include "graph/graph_builder.h"
#include "plan/text/shares_text.h"
#include "tests/support/panel_fixture.h"
#include "tests/support/patience.h"
#include "views/base/text.h"
#include "views/panels/answer_offers.h"
#include "views/panels/conflict_card.h"
#include "views/panels/decision_panel.h"
#include "views/panels/figures.h"
#include "views/panels/why_text.h"
#include "views/widgets/link_text.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

namespace {
const TextColors kColors{"#555555", "#008000", "#d00000", "#806000"};
QString hrefOf(const Target& target) { return QStringLiteral("href=\"%1\"").arg(toLink(target)); }

void openLlama(Session& session) {
  session.settings().setEngine(solve::Engine::Learning);  // with the full candidate set a layer may stay replicated
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan() && session.debugger().state(), kPatience);
}

NodeId layerNamed(Session& session, std::string_view end) {
  const graph::Graph& graph = *session.opened().graph();
  for (const NodeId node : idRange<NodeId>(graph.nodes.size()))
    if (graph::layerShape(graph, node) && graph::layerName(graph, node).ends_with(end)) return node;
  return {};
}

QPushButton* visibleButton(QWidget& panel, const QString& text) {
  for (QPushButton* button : panel.findChildren<QPushButton*>())
    if (button->isVisible() && button->text().startsWith(text)) return button;
  return nullptr;
}

QAction* actionNamed(QMenu* menu, const QString& text) {
  for (QAction* action : menu->actions())
    if (action->text() == text) return action;
  return nullptr;
}

QString visibleText(QWidget& panel) {
  QStringList texts;
  for (const QLabel* label : panel.findChildren<QLabel*>())
    if (label->isVisible()) texts << label->text();
  for (const QTextBrowser* text : panel.findChildren<QTextBrowser*>())
    if (text->isVisible()) texts << text->toPlainText();
  return texts.join(QLatin1Char('\n'));
}

struct OwnSession {
  Session session;
};

/// The panel on the screen with its session, which is destroyed last.
class ShownDecision : public OwnSession, public DecisionPanel {
 public:
  ShownDecision()
      : DecisionPanel(session.opened(), session.settings(), session.plans(), session.debugger(), session.selection(),
                      session.answers(), session.notices()) {
    resize(320, 700);
    show();
  }
};
}  // namespace

class TestExplainPanels : public QObject {
  Q_OBJECT
 private slots:
  void figuresAndTheirChanges();
  void namesInProseBecomeLinks();
  void chainEndsWithTheAlternatives();
  void regretsStandBesideEachChoice();
  void layersLikeThisOneShareAPattern();
  void whyNotAnswersOfferWhatCanBeDone();
  void remediesShowBeforeAndAfter();
  void decisionPanelAsksAndPins();
  void aPinForAllLayersLikeIt();
  void aNarrowPanelBreaksBetweenWords();
  void domainsFollowTheStep();
  void linksMoveTheFocus();
  void conflictCardExplainsNoSolution();
  void longNamesDoNotWidenThePanel();
};

void TestExplainPanels::figuresAndTheirChanges() {
  QCOMPARE(bytesChange(0), QStringLiteral("±0"));
  QCOMPARE(bytesChange(-(5ll << 30) / 4), QStringLiteral("−1.25 GiB"));
  QCOMPARE(countChange(1200), QStringLiteral("+1,200"));
  QVERIFY(timeChange(INT64_MIN).startsWith(QStringLiteral("−")));
  QVERIFY(costChange(0, 1 << 20).contains(QStringLiteral("same time, +1 MiB")));
  QCOMPARE(percentText(0.0042), QStringLiteral("0.4 %"));
  QCOMPARE(percentText(0.00001), QStringLiteral("< 0.01 %"));
  QCOMPARE(percentText(0), QStringLiteral("0 %"));
}

void TestExplainPanels::namesInProseBecomeLinks() {
  const auto graph = testing::smallGraph();
  const QString html = proseHtml("`linear_0` of `model.layers.0.up` and `model.layers.1` but <not> `this`.", *graph);
  QVERIFY(html.contains(hrefOf(graph->findValue("linear_0"))));
  const NodeId layer = graph->value(graph->findValue("linear_0")).producer;
  QVERIFY(html.contains(hrefOf(layer)));  // the module's layer itself
  QVERIFY(html.contains(hrefOf(graph->findScope("model.layers.1"))));
  QVERIFY(html.contains(QStringLiteral("&lt;not&gt; this.")));
  QCOMPARE(proseHtml("an odd ` quote", *graph), QStringLiteral("an odd  quote"));
}

void TestExplainPanels::chainEndsWithTheAlternatives() {
  const auto graph = testing::smallGraph();
  const ValueId relu = graph->findValue("relu_0"), linear = graph->findValue("linear_0");
  solve::WhyLink first{graph->value(relu).producer,
                       relu,
                       {{"relu_0", relu}, {" is S(1) because its input is: ", {}}, {"linear_0", linear}},
                       false,
                       {}};
  solve::WhyLink last{graph->value(linear).producer,
                      linear,
                      {{"linear_0", linear}, {" is column.", {}}},
                      true,
                      {"row: needs its input split"}};
  const QString html = whyChain({first, last}, *graph, kColors);
  QVERIFY(html.contains(hrefOf(relu)));
  QCOMPARE(html.count(hrefOf(linear)), 2);
  QVERIFY(html.contains(QStringLiteral("or row: needs its input split")));
}

void TestExplainPanels::regretsStandBesideEachChoice() {
  std::vector<solve::Regret> regrets(5);
  regrets[0] = {.placement = rules::Placement::split(1),
                .strategy = rules::Strategy::Column,
                .isChosen = true,
                .extraFs = 0,
                .extraBytes = 0};
  regrets[1] = {.strategy = rules::Strategy::Row, .extraFs = 800'000'000'000, .extraBytes = -(1 << 20)};
  regrets[2] = {.strategy = rules::Strategy::ColumnGather};
  regrets[3] = {.strategy = rules::Strategy::Vocab, .extraFs = -13'000'000'000, .extraBytes = 1 << 20};
  regrets[4] = {.strategy = rules::Strategy::ByExpert, .isProved = false};
  const QString html = regretTable(regrets, 2, 1, kColors);
  QVERIFY(html.contains(QStringLiteral("in the plan")) && !html.contains(QStringLiteral("whynot:column\"")));
  QVERIFY(html.contains(timeChange(800'000'000'000)) && html.contains(QStringLiteral("−1 MiB")));
  QVERIFY(html.contains(QStringLiteral("whynot:column+gather")));
  // Each sign in the table has an explanation.
  for (const char* words : {"over budget: every plan", "unknown: the search stopped", "within the slack of 1 %"})
    QVERIFY2(html.contains(QLatin1String(words)), words);
  // The canvas's heat shows the fastest plan with another choice. If that plan is not the answer here, it is named too.
  QVERIFY(!html.contains(QStringLiteral("(fastest ")));
  regrets[3].fastestExtraFs = -18'400'000'000;
  const QString both = regretTable(regrets, 2, 1, kColors);
  QVERIFY2(both.contains(QStringLiteral("(fastest %1)").arg(timeChange(-18'400'000'000))), qPrintable(both));
  const QString plain = regretTable({regrets[0], regrets[1]}, 2, 1, kColors);
  for (const char* words : {"budget", "unknown", "slack"}) QVERIFY2(!plain.contains(QLatin1String(words)), words);
}

void TestExplainPanels::layersLikeThisOneShareAPattern() {
  const auto graph = testing::smallGraph();
  const LikeLayers up = layersLike(*graph, graph->value(graph->findValue("linear_4")).producer);
  QCOMPARE(up.pattern, std::string("model.layers.*.up"));
  QCOMPARE(up.count, std::size_t(4));
  QCOMPARE(layersLike(*graph, graph->value(graph->findValue("relu_0")).producer).count, std::size_t(0));

  graph::GraphBuilder b("uneven");  // same names with other sizes: a pattern would match layers that differ
  ValueId at = b.addInput("x", {graph::DType::Float32, {2, 8}});
  for (int i = 0; i < 2; ++i) {
    const std::string path = "layers." + std::to_string(i) + ".fc";
    const ValueId w = b.addParameter(path + ".weight", {graph::DType::Float32, {8 + 8 * i, 8}}, b.scope(path));
    at = b.addCall("aten::linear", {b.current().nodes[0].results[0], w, graph::Argument{}},
                   {{graph::DType::Float32, {2, 8 + 8 * i}}}, b.scope(path))[0];
  }
  b.addOutput("y", at);
  const auto uneven = std::move(b).finish();
  QVERIFY(uneven.has_value());
  QCOMPARE(layersLike(*uneven, uneven->value(at).producer).count, std::size_t(0));
}

void TestExplainPanels::whyNotAnswersOfferWhatCanBeDone() {
  Session session;
  openLlama(session);
  const NodeId layer = layerNamed(session, "lm_head");
  WhyNotReply reply;
  reply.node = layer;
  QVERIFY(answerText(session.plans(), *session.opened().graph(), reply, kColors)
              .html.contains(QStringLiteral("Solving with this choice")));
  reply.failure = QStringLiteral("It has <no> dimension 7.");
  QVERIFY(answerText(session.plans(), *session.opened().graph(), reply, kColors)
              .html.contains(QStringLiteral("&lt;no&gt;")));

  reply.failure.clear();
  reply.answer.emplace();
  reply.answer->answer = solve::WhyNotAnswer::Forbidden;
  reply.answer->sentences = {{{"lm_head cannot be row.", {}}}};
  reply.answer->core.isIrreducible = true;
  reply.answer->core.constraints = {
      {solve::ConstraintKind::Pin,
       layer,
       {},
       "You demand `lm_head` replicated.",
       "lm_head=replicated",
       solve::Change{solve::ChangeKind::LiftPin, "lm_head=replicated"}},
      {solve::ConstraintKind::Sizes, layer, {}, "257 rows do not divide by 2.", std::nullopt}};
  AnswerText text = answerText(session.plans(), *session.opened().graph(), reply, kColors);
  QVERIFY(text.html.contains(QStringLiteral("each one is needed")));
  QCOMPARE(text.offers.size(), std::size_t(2));
  QVERIFY(!text.offers[0].button.isEmpty());
  QVERIFY(text.offers[1].button.isEmpty());  // arithmetic cannot be lifted
  QVERIFY(text.offers[1].html.contains(hrefOf(layer)));

  QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")).has_value());
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), kPatience);
  text.offers[0].act();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.settings().pins().empty(), kPatience);

  reply.answer.emplace();
  reply.answer->answer = solve::WhyNotAnswer::Costs;
  reply.answer->extraFs = 800'000'000'000;
  reply.answer->extraBytes = 1 << 20;
  reply.answer->pin = "lm_head=replicated";
  text = answerText(session.plans(), *session.opened().graph(), reply, kColors);
  QVERIFY(text.html.contains(costChange(800'000'000'000, 1 << 20)));
  QCOMPARE(text.offers.size(), std::size_t(1));
  text.offers[0].act();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.settings().pins().size() == 1, kPatience);
}

void TestExplainPanels::remediesShowBeforeAndAfter() {
  Session session;
  openLlama(session);
  solve::Remedy remedy;
  remedy.change = {solve::ChangeKind::FullCandidateSet, {}};
  remedy.text = "The full candidate set splits `lm_head` too.";
  remedy.before = {false, 0, 16, 0, 0};
  remedy.after = {true, 16, 16, 3 << 20, 1'000'000'000};
  const auto offers = remedyOffers(session.plans(), *session.opened().graph(), {remedy}, kColors);
  QCOMPARE(offers.size(), std::size_t(1));
  QVERIFY(offers[0].html.contains(QStringLiteral("16 of 16")) && offers[0].html.contains(QStringLiteral("3 MiB")));
  QCOMPARE(offers[0].html.count(QStringLiteral("no plan")), 3);
  QVERIFY(!offers[0].button.isEmpty());
}

void TestExplainPanels::decisionPanelAsksAndPins() {
  ShownDecision panel;
  Session& session = panel.session;
  QVERIFY(!visibleButton(panel, QStringLiteral("Why not")));
  openLlama(session);
  session.selection().focusNode(layerNamed(session, "layers.0.mlp.up_proj"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && visibleButton(panel, QStringLiteral("Why not")), kPatience);
  QMenu* menu = visibleButton(panel, QStringLiteral("Why not"))->menu();
  QTRY_VERIFY_WITH_TIMEOUT(actionNamed(menu, QStringLiteral("R?")), kPatience);
  QVERIFY(!actionNamed(menu, QStringLiteral("column?")));  // this is the current choice
  actionNamed(menu, QStringLiteral("R?"))->trigger();
  QVERIFY(session.answers().whyNot());
  QTRY_VERIFY_WITH_TIMEOUT(!session.answers().whyNot()->isPending(), kPatience);
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(panel).contains(session.answers().whyNot()->question), kPatience);
  auto* close = panel.findChild<QToolButton*>();
  QVERIFY(close->isVisible());
  close->click();
  QVERIFY(!close->isVisible());
}

/// At any width, candidates and other text wrap between words.
void TestExplainPanels::aNarrowPanelBreaksBetweenWords() {
  ShownDecision panel;
  Session& session = panel.session;
  openLlama(session);
  session.selection().focusNode(layerNamed(session, "layers.0.self_attn.o_proj"));
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(panel).contains(QStringLiteral("Candidates at this step")), kPatience);
  for (const int width : {420, 300, 230}) {
    panel.resize(width, 700);
    QTest::qWait(50);
    const QTextDocument& document = *panel.findChild<LinkText*>()->document();
    int lines = 0;
    bool isInCandidates = false;
    for (QTextBlock block = document.begin(); block.isValid(); block = block.next()) {
      if (block.text().startsWith(QStringLiteral("Candidates"))) isInCandidates = true;
      if (block.text().startsWith(QStringLiteral("Domain"))) isInCandidates = false;
      for (int i = 0; isInCandidates && i + 1 < block.layout()->lineCount(); ++i) {
        const QTextLine line = block.layout()->lineAt(i);
        const QString before = block.text().mid(line.textStart(), line.textLength());
        ++lines;
        QVERIFY2(before.endsWith(QLatin1Char(' ')) || before.endsWith(QLatin1Char('-')), qPrintable(before));
      }
    }
    QVERIFY(lines > 0 || width > 300);  // some text wraps
  }
}

void TestExplainPanels::aPinForAllLayersLikeIt() {
  ShownDecision panel;
  Session& session = panel.session;
  openLlama(session);
  session.selection().focusNode(layerNamed(session, "layers.0.mlp.up_proj"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && visibleButton(panel, QStringLiteral("Pin")), kPatience);
  QMenu* menu = visibleButton(panel, QStringLiteral("Pin"))->menu();
  QAction* all = nullptr;
  for (QAction* action : menu->actions())
    if (action->text().startsWith(QStringLiteral("column on all "))) all = action;
  QVERIFY(all);
  all->trigger();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
  QCOMPARE(session.settings().pins().size(), std::size_t(1));
  QCOMPARE(session.settings().pins()[0].text,
           std::string("model.layers.*.mlp.up_proj==column"));  // not column+gather
  int pinned = 0;
  for (const plan::LayerPlan& layer : session.plans().plan()->layers) {
    if (!layer.name.ends_with(".up_proj")) continue;
    ++pinned;
    QVERIFY(layer.strategy == rules::Strategy::Column);
  }
  QVERIFY(pinned > 1);
}

/// At the beginning a layer's result has several possible placements. The step that excludes one is shown next to it,
/// and its link leads to the first moment without it.
void TestExplainPanels::domainsFollowTheStep() {
  ShownDecision panel;
  Session& session = panel.session;
  openLlama(session);
  const NodeId layer = layerNamed(session, "layers.1.mlp.down_proj");
  const ValueId result = session.opened().graph()->node(layer).results.front();
  session.selection().focusNode(layer);
  Debugger& debugger = session.debugger();
  const auto domainAt = [&](StepId step) {
    debugger.visit(step);
    const bool isRead = QTest::qWaitFor(
        [&] { return debugger.state()->step == step && debugger.domains() && debugger.domains()->step == step; },
        kPatience);
    return isRead ? debugger.domains()->domains.at(0) : solve::LiveDomain{};
  };
  const solve::LiveDomain before = domainAt(0);
  QCOMPARE(before.value, result);
  QVERIFY(!before.isAssigned && before.open.size() > 1);
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(panel).contains(QStringLiteral("Still possible")), kPatience);
  const solve::LiveDomain after = domainAt(debugger.stepCount());
  QVERIFY(after.isAssigned);
  QCOMPARE(after.open.size(), std::size_t{1});
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(panel).contains(QStringLiteral("Placed:")), kPatience);
  const auto gone = std::find_if(after.gone.begin(), after.gone.end(),
                                 [](const solve::GonePlacement& g) { return g.by == solve::RemovedBy::Step; });
  QVERIFY(gone != after.gone.end());
  QVERIFY(visibleText(panel).contains(QStringLiteral(" chose ")));
  QVERIFY(panel.findChild<QTextBrowser*>()->toHtml().contains(hrefOf(StepTarget{*gone->at})));
  const auto has = [&](const solve::LiveDomain& domain) {
    return std::find(domain.open.begin(), domain.open.end(), gone->placement) != domain.open.end();
  };
  QVERIFY(has(domainAt(*gone->at - 1)));
  QVERIFY(!has(domainAt(*gone->at)));
}

void TestExplainPanels::linksMoveTheFocus() {
  ShownDecision panel;
  Session& session = panel.session;
  openLlama(session);
  const NodeId layer = layerNamed(session, "layers.0.mlp.up_proj");
  session.selection().focusNode(layer);
  auto* text = panel.findChild<QTextBrowser*>();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && text->toPlainText().contains(QStringLiteral("Inputs")), kPatience);
  text->setFocus();
  for (int i = 0; i < 3 && session.selection().focus().node == layer &&
                  session.selection().focus().scope == session.opened().graph()->node(layer).scope;
       ++i) {
    QTest::keyClick(text, Qt::Key_Tab);  // link by link
    QTest::keyClick(text, Qt::Key_Return);
  }
  QVERIFY(session.selection().canGoBack());
}

void TestExplainPanels::conflictCardExplainsNoSolution() {
  Session session;
  ConflictCard card(session.opened(), session.plans(), session.debugger(), session.selection(), session.answers());
  card.resize(320, 700);
  card.show();
  openLlama(session);
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(card).contains(QStringLiteral("no conflict")), kPatience);
  session.settings().setEngine(solve::Engine::Learning);
  session.settings().change([](spec::PlanSpec& spec) { spec.candidateSet = rules::CandidateSet::Optimum; });
  QVERIFY(session.settings().addPin(QStringLiteral("lm_head=row")).has_value());
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().solved(), kPatience);
  QVERIFY(!session.plans().solved()->result.solution);
  session.debugger().seek(0);
  QTRY_VERIFY_WITH_TIMEOUT(visibleText(card).contains(QStringLiteral("no solution")), kPatience);
  QTRY_VERIFY_WITH_TIMEOUT(visibleButton(card, QStringLiteral("Lift")), kPatience);
  visibleButton(card, QStringLiteral("Lift"))->click();
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
  QVERIFY(session.settings().pins().empty());
}

void TestExplainPanels::longNamesDoNotWidenThePanel() {
  OfferList list;
  list.resize(300, 400);
  const QString name = QStringLiteral("model.language_model.layers.*.self_attn.a_very_long_projection_name_indeed=row");
  list.setOffers(QString(),
                 {{QStringLiteral("A sentence about %1.").arg(name), QStringLiteral("Pin %1").arg(name), {}, {}}});
  auto* button = list.findChild<QPushButton*>();
  QCOMPARE(button->text(), QStringLiteral("Pin %1").arg(name));  // the full name for screen readers
  QTRY_VERIFY_WITH_TIMEOUT(button->width() > 0 && button->geometry().right() <= list.width(), kPatience);
  QVERIFY(list.plainText().contains(name));
}

QTEST_MAIN(TestExplainPanels)
#include "tst_explain_panels.moc"
