// Targets as links and back: all kinds, and rejection of other text.
#include <QStandardItemModel>
#include <QtTest>

#include "tests/support/rows.h"
#include "views/base/target.h"
#include "views/base/text.h"

using namespace cleave;
using namespace cleave::views;

class TestTarget : public QObject {
  Q_OBJECT
 private slots:
  void comesBackFromItsLink_data();
  void comesBackFromItsLink();
  void refusesWhatNoTargetWrites_data();
  void refusesWhatNoTargetWrites();
  void aHostileNameStaysText();
  void rowsAnswerIt();
};

void TestTarget::comesBackFromItsLink_data() {
  const test::Rows<Target, QString> row("target", "link");
  const auto split = rules::Placement::split(1);
  row("node", Target(graph::NodeId(12)), "node:12");
  row("value", Target(graph::ValueId(0)), "value:0");
  row("scope", Target(graph::ScopeId(4'294'967'294u)), "scope:4294967294");
  row("step", Target(StepTarget{~std::uint64_t(0)}), "step:18446744073709551615");
  row("strategy", Target(WhyNotTarget{rules::Strategy::Row}), "whynot:row");
  row("form", Target(WhyNotTarget{rules::Strategy::ColumnGather}), "whynot:column+gather");
  row("whole", Target(WhyNotTarget{rules::Placement()}), "whynot:R");
  row("split", Target(WhyNotTarget{split}), "whynot:S(1)");
}

void TestTarget::comesBackFromItsLink() {
  QFETCH(Target, target);
  QFETCH(QString, link);
  QCOMPARE(toLink(target), link);
  QVERIFY(parseLink(link) == std::optional(target));
}

void TestTarget::refusesWhatNoTargetWrites_data() {
  const test::Rows<QString> row("link");
  for (const char* bad : {"",
                          ":",
                          "node",
                          "node:",
                          "node:-1",
                          "node:+1",
                          "node: 1",
                          "node:01",
                          "node:1x",
                          "node:0x1",
                          "node:4294967295",
                          "node:99999999999999999999",
                          "Node:1",
                          " node:1",
                          "value:linear_3",
                          "value:1\"><a href=\"node:2",
                          "scope:a.b",
                          "scope:",
                          "step:x",
                          "whynot:",
                          "whynot:upside down",
                          "whynot:S(",
                          "whynot:row ",
                          "file:///etc/passwd",
                          "javascript:node:1",
                          "else:1",
                          "node:1\nvalue:2"})
    row(bad, QString::fromLatin1(bad));
  row("no text at all", QStringLiteral("node:1") + QChar(0));
}

void TestTarget::refusesWhatNoTargetWrites() {
  QFETCH(QString, link);
  QVERIFY(!parseLink(link));
}

/// A name from a model appears in a link's text only, never in its target.
void TestTarget::aHostileNameStaysText() {
  const QString name = QStringLiteral("\"><a href=\"node:7\">%1 value:3 &quot;");
  const QString html = link(graph::ValueId(5), name);
  QCOMPARE(html.count(QStringLiteral("href=")), 1 + html.count(QStringLiteral("href=&quot;")));
  QVERIFY(html.startsWith(QStringLiteral("<a href=\"value:5\">&quot;&gt;&lt;a ")));
  QVERIFY(html.endsWith(QStringLiteral("&amp;quot;</a>")));
}

void TestTarget::rowsAnswerIt() {
  QStandardItemModel model(2, 1);
  model.setData(model.index(0, 0), QVariant::fromValue(Target(graph::NodeId(3))), kTargetRole);
  QVERIFY(targetOf(model.index(0, 0)) == std::optional<Target>(graph::NodeId(3)));
  QVERIFY(!targetOf(model.index(1, 0)));
  QVERIFY(!targetOf({}));
}

QTEST_GUILESS_MAIN(TestTarget)
#include "tst_target.moc"
