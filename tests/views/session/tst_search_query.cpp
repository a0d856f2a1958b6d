// The search box's language.
#include <QtTest>

#include "tests/support/panel_fixture.h"
#include "views/base/text.h"
#include "views/session/search_query.h"

using namespace cleave;
using namespace cleave::views;

class TestSearch : public QObject {
  Q_OBJECT
 private slots:
  void findsNodes_data();
  void findsNodes();
  void refusesWhatItCannotRead_data();
  void refusesWhatItCannotRead();
  void writesSizesAndCounts();
};

void TestSearch::findsNodes_data() {
  QTest::addColumn<QString>("query");
  QTest::addColumn<QStringList>("names");
  QTest::newRow("operator") << "op:relu in:layers.1" << QStringList{"relu_1"};
  QTest::newRow("operator in full") << "op:aten::relu in:layers.1" << QStringList{"relu_1"};
  QTest::newRow("whole parts of a path") << "in:layers.1 op:linear" << QStringList{"linear_2", "linear_3"};
  QTest::newRow("word") << "up.weight layers.3" << QStringList{"model.layers.3.up.weight"};
  QTest::newRow("shape") << "shape:*x16 op:relu layers.0" << QStringList{"relu_0"};
  QTest::newRow("whole shape") << "shape:16x8 layers.0" << QStringList{"model.layers.0.up.weight"};
  QTest::newRow("regex") << "/^relu_[12]$/" << QStringList{"relu_1", "relu_2"};
  QTest::newRow("axis by dimension") << "axis:1" << QStringList{"linear_0"};
  QTest::newRow("axis by strategy") << "axis:column" << QStringList{"linear_0"};
  QTest::newRow("replicated") << "axis:R" << QStringList{"linear_1"};
  QTest::newRow("nothing") << "" << QStringList{};
}

void TestSearch::findsNodes() {
  QFETCH(QString, query);
  QFETCH(QStringList, names);
  const auto graph = testing::smallGraph();
  const ValueId split = graph->findValue("linear_0"), whole = graph->findValue("linear_1");
  const SearchFacts facts{[&](graph::ValueId v) -> std::optional<rules::Placement> {
                            if (v == split) return rules::Placement::split(1);
                            return v == whole ? std::optional(rules::Placement()) : std::nullopt;
                          },
                          [&](graph::NodeId n) {
                            return n == graph->value(split).producer ? std::optional(rules::Strategy::Column)
                                                                     : std::nullopt;
                          }};
  const auto parsed = SearchQuery::parse(query);
  QVERIFY(parsed.has_value());
  QStringList found;
  for (const graph::NodeId node : parsed->hits(*graph, facts)) found << nodeName(*graph, node);
  QCOMPARE(found, names);
}

void TestSearch::refusesWhatItCannotRead_data() {
  QTest::addColumn<QString>("query");
  QTest::addColumn<QString>("phrase");
  QTest::newRow("unknown key") << "colour:red"
                               << "colour:";
  QTest::newRow("broken pattern") << "/[/"
                                  << "cannot be read";
}

void TestSearch::refusesWhatItCannotRead() {
  QFETCH(QString, query);
  QFETCH(QString, phrase);
  const auto parsed = SearchQuery::parse(query);
  QVERIFY(!parsed);
  QVERIFY2(toQ(parsed.error().message).contains(phrase), parsed.error().message.c_str());
}

void TestSearch::writesSizesAndCounts() {
  QCOMPARE(countText(0), QStringLiteral("0"));
  QCOMPARE(countText(1'804'112), QStringLiteral("1,804,112"));
  QCOMPARE(bytesText(912), QStringLiteral("912 B"));
  QCOMPARE(bytesText(12ll << 30), QStringLiteral("12 GiB"));
  QCOMPARE(shapeText({8, 512, 4096}), QStringLiteral("8×512×4096"));
  QCOMPARE(shortScope("model.layers.3.self_attn.q_proj", 2), QStringLiteral("…self_attn.q_proj"));
}

QTEST_APPLESS_MAIN(TestSearch)
#include "tst_search_query.moc"
