// The pre-flight panel before any search, and the rank counts by mouse and keyboard.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTextBrowser>
#include <QtTest>

#include "tests/support/panel_fixture.h"
#include "tests/support/patience.h"
#include "views/panels/preflight_panel.h"
#include "views/panels/world_sizes.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;
using plan::WorldSizeVerdict;

namespace {
plan::WorldSize size(int ranks, WorldSizeVerdict verdict, const char* why = "") {
  plan::WorldSize size;
  size.ranks = ranks;
  size.verdict = verdict;
  size.hasPlan = verdict != WorldSizeVerdict::NoSolution && verdict != WorldSizeVerdict::OverBudget;
  size.layers = {verdict == WorldSizeVerdict::Works ? std::size_t{8} : std::size_t{3}, 8};
  size.flopsShare = size.layers.split / 8.0;
  size.weightShare = 0.25;
  size.rankBytes = 3 << 20;
  size.why = why;
  return size;
}

std::vector<plan::WorldSize> fourSizes() {
  return {size(1, WorldSizeVerdict::Works), size(2, WorldSizeVerdict::Works),
          size(3, WorldSizeVerdict::NoSolution, "`lm_head` cannot be row on 3 ranks"),
          size(4, WorldSizeVerdict::Partly, "3 heads do not divide by 4 ranks")};
}

std::unique_ptr<WorldSizeStrip> shownStrip(int width = 480) {
  auto strip = std::make_unique<WorldSizeStrip>();
  strip->setSizes(fourSizes(), 64);
  strip->resize(width, strip->heightForWidth(width));
  strip->show();
  return strip;
}
const TextColors kColors{"#555555", "#008000", "#d00000", "#806000"};
}  // namespace

class TestPreflightPanel : public QObject {
  Q_OBJECT
 private slots:
  void sizesSayTheirVerdictAndReason();
  void cellsFitAnyWidth_data();
  void cellsFitAnyWidth();
  void keysWalkTheCells();
  void clickAndEnterChoose();
  void textHasLinksNumbersAndVerdicts();
  void textSaysWhenNothingStandsInTheWay();
  void panelFollowsTheSession();
};

void TestPreflightPanel::sizesSayTheirVerdictAndReason() {
  const auto sizes = fourSizes();
  QVERIFY(worldSizeText(sizes[0]).startsWith(QStringLiteral("1 rank – works, there is nothing to split")));
  QVERIFY(worldSizeText(sizes[1]).contains(
      QStringLiteral("8 of 8 layers, 100 % of the FLOPs and 25.0 % of the weight bytes are split")));
  QVERIFY(worldSizeText(sizes[1]).contains(QStringLiteral("3 MiB per rank")));
  const QString none = worldSizeText(sizes[2]);
  QVERIFY2(none.contains(QStringLiteral("no solution: lm_head cannot be row")), qPrintable(none));
  QVERIFY(!none.contains(QStringLiteral("MiB")));  // without a plan there is no size
  QVERIFY(worldSizeText(sizes[3]).contains(
      QStringLiteral("works in part: 3 heads do not divide by 4 ranks; 3 of 8 layers, 37.5 %")));
  // Three reasons with one sign each: cannot split, does not pay, needs a setting.
  QVERIFY(worldSizeText(size(2, WorldSizeVerdict::Nothing, "a")).contains(QStringLiteral("nothing is split: a")));
  QVERIFY(worldSizeText(size(2, WorldSizeVerdict::DoesNotPay, "b")).contains(QStringLiteral("does not pay: b")));
  // The reason of a budget lists all memory of a rank: short in the text, in full in the tooltip.
  plan::WorldSize over = size(2, WorldSizeVerdict::OverBudget, "c: all memory per rank");
  over.overBytes = 1 << 20;
  QCOMPARE(worldSizeText(over),
           QStringLiteral("2 ranks – no plan fits: over by 1 MiB; the smallest plan found needs 3 MiB per rank"));
  QVERIFY(worldSizeReason(over).contains(QStringLiteral("c: all memory per rank")));
  QCOMPARE(worldSizeReason(sizes[1]), worldSizeText(sizes[1]));
  plan::WorldSize full = sizes[1];
  QVERIFY(!worldSizeText(full).contains(QStringLiteral("budget")));
  full.verdict = WorldSizeVerdict::OverBudget;
  full.overBytes = 1 << 20;
  full.why = "the engine does not look at it";
  QVERIFY2(worldSizeText(full).startsWith(
               QStringLiteral("2 ranks – over the budget: the engine does not look at it · 3 MiB per rank")),
           qPrintable(worldSizeText(full)));
  QVERIFY(worldSizeText(full).endsWith(QStringLiteral("over the memory budget by 1 MiB")));
  QCOMPARE(worldSizeReason(full), worldSizeText(full));
}

void TestPreflightPanel::cellsFitAnyWidth_data() {
  QTest::addColumn<int>("width");
  for (const int width : {40, 180, 310, 640, 2400}) QTest::addRow("%d", width) << width;
}

void TestPreflightPanel::cellsFitAnyWidth() {
  QFETCH(int, width);
  const auto strip = shownStrip(width);
  for (int ranks = 1; ranks <= 64; ++ranks) {
    const QRect cell = strip->cellOf(ranks);
    QVERIFY(cell.bottom() < strip->heightForWidth(width));
    if (width >= 180) QVERIFY(cell.right() < width);
    QCOMPARE(strip->ranksAt(cell.center()), ranks);
    for (int other = 1; other < ranks; ++other) QVERIFY(!cell.intersects(strip->cellOf(other)));
  }
}

void TestPreflightPanel::keysWalkTheCells() {
  const auto strip = shownStrip();
  QSignalSpy detail(strip.get(), &WorldSizeStrip::detailChanged);
  QTest::keyClick(strip.get(), Qt::Key_Right);
  QCOMPARE(strip->current(), 2);
  QCOMPARE(detail.count(), 1);
  QVERIFY(strip->detail().contains(QStringLiteral("8 of 8")));
  QCOMPARE(strip->accessibleDescription(), strip->detail());
  QTest::keyClick(strip.get(), Qt::Key_Down);
  QCOMPARE(strip->cellOf(strip->current()).left(), strip->cellOf(2).left());
  QVERIFY(strip->current() > 2);
  QVERIFY(strip->detail().contains(QStringLiteral("not tried")));
  QTest::keyClick(strip.get(), Qt::Key_Up);
  QCOMPARE(strip->current(), 2);
  QTest::keyClick(strip.get(), Qt::Key_Up);
  QCOMPARE(strip->current(), 2);
  QTest::keyClick(strip.get(), Qt::Key_End);
  QTest::keyClick(strip.get(), Qt::Key_Right);
  QCOMPARE(strip->current(), 64);
}

void TestPreflightPanel::clickAndEnterChoose() {
  const auto strip = shownStrip();
  QSignalSpy chosen(strip.get(), &WorldSizeStrip::chosen);
  QTest::mouseClick(strip.get(), Qt::LeftButton, {}, strip->cellOf(4).center());
  QCOMPARE(chosen.takeLast(), QVariantList{4});
  QTest::mouseClick(strip.get(), Qt::LeftButton, {}, QPoint(2, strip->height() - 3));  // the legend
  QVERIFY(chosen.isEmpty());
  QTest::keyClick(strip.get(), Qt::Key_Right);
  QTest::keyClick(strip.get(), Qt::Key_Return);
  QCOMPARE(chosen.takeLast(), QVariantList{5});
}

void TestPreflightPanel::textHasLinksNumbersAndVerdicts() {
  const auto graph = testing::smallGraph();
  const NodeId layer = graph->value(graph->findValue("linear_0")).producer;
  plan::Preflight preflight;
  preflight.unknownOperators.push_back(
      {"aten::cumsum", 3, layer, true, "Its operands must be replicated: `linear_1` is not."});
  preflight.heads.push_back({"model.layers.*.self_attn", 4, layer, {3, 3}, "3 heads do not divide by 2 ranks."});
  preflight.indivisible.push_back({"model.layers.*.up", 4, layer, "3 heads do not divide by 2 ranks", 96 << 20});
  preflight.replicated.push_back({"model.norm.<odd>", 1, layer, 4096, "a norm has no split form"});
  preflight.replicatedBytes = (96 << 20) + 4096;
  const QString html = preflightText(preflight, *graph, 2, kColors);
  const QString target = QStringLiteral("href=\"%1\"").arg(toLink(layer));
  QCOMPARE(html.count(target), 4);
  // Heads come first, because a count of split layers hides them.
  const auto heads = html.indexOf(QStringLiteral("3 heads do not divide")),
             rest = html.indexOf(QStringLiteral("This affects the plan."));
  QVERIFY2(heads >= 0 && heads < rest, qPrintable(html));
  QVERIFY(html.contains(valueLink(*graph, graph->findValue("linear_1"))));
  QVERIFY(html.contains(QStringLiteral("This affects the plan.")) && html.contains(QStringLiteral("×3")));
  QVERIFY(html.contains(QStringLiteral("do not divide by 2 ranks")) && html.contains(QStringLiteral("96\u00a0MiB")));
  QVERIFY(html.contains(QStringLiteral("&lt;odd&gt;")));
  preflight.unknownOperators[0].matters = false;
  QVERIFY(preflightText(preflight, *graph, 2, kColors).contains(QStringLiteral("This does not affect the plan.")));
}

void TestPreflightPanel::textSaysWhenNothingStandsInTheWay() {
  const auto graph = testing::smallGraph();
  QVERIFY(preflightText({}, *graph, 4, kColors)
              .contains(QStringLiteral("Every operator has a rule, and every layer has a strategy that splits it.")));
  QVERIFY(preflightText({}, *graph, 1, kColors).contains(QStringLiteral("there is nothing to split.")));
  plan::Preflight noStrategy;
  noStrategy.unsplitLayers = 1;
  QVERIFY(!preflightText(noStrategy, *graph, 4, kColors).contains(QStringLiteral("splits it")));
}

void TestPreflightPanel::panelFollowsTheSession() {
  Session session;
  PreflightPanel panel(session.opened(), session.settings(), session.answers(), session.selection());
  panel.resize(320, 600);
  panel.show();
  auto* strip = panel.findChild<WorldSizeStrip*>();
  QVERIFY(!strip->isVisible());
  session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.answers().preflight(), kPatience);
  QPushButton* all = nullptr;
  for (QPushButton* button : panel.findChildren<QPushButton*>())
    if (button->text() == QStringLiteral("Try all rank counts")) all = button;
  QVERIFY(all);
  QTRY_VERIFY_WITH_TIMEOUT(all->isVisible(), kPatience);
  all->click();
  QTRY_VERIFY_WITH_TIMEOUT(session.answers().worldSizes() && strip->isVisible(), 120'000);
  QCOMPARE(session.answers().worldSizes()->rows.size(), std::size_t(64));
  QVERIFY(strip->sizeOf(2));
  QVERIFY(!strip->detail().isEmpty());
  QTest::mouseClick(strip, Qt::LeftButton, {}, strip->cellOf(4).center());
  QCOMPARE(session.settings().spec().ranks, 4);
  QVERIFY(session.answers().worldSizes());  // other rank counts are other rows of the same answer
  // Other settings would give other verdicts: the panel shows those of the current settings, or nothing.
  session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1 << 20; });
  QVERIFY(!session.answers().worldSizes());
  QTRY_VERIFY_WITH_TIMEOUT(!strip->isVisible(), kPatience);
  session.answers().computeWorldSizes();
  session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = std::nullopt; });
  QTRY_VERIFY_WITH_TIMEOUT(session.isIdle(), 120'000);
  QVERIFY(!session.answers().worldSizes());
  QVERIFY(!panel.findChild<QTextBrowser*>()->toPlainText().isEmpty());
}

QTEST_MAIN(TestPreflightPanel)
#include "tst_preflight_panel.moc"
