// The search box's language.
#include <QtTest>

#include "tests/support/cases.h"
#include "tests/support/panel_fixture.h"
#include "views/base/text.h"
#include "views/session/search_query.h"

using namespace cleave;
using namespace cleave::views;

namespace {

/// The names of the nodes that a query finds, or its error.
std::string found(const std::string& query) {
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
  const auto parsed = SearchQuery::parse(QString::fromStdString(query));
  if (!parsed) return "refused: " + parsed.error().message;
  QStringList names;
  for (const graph::NodeId node : parsed->hits(*graph, facts)) names << nodeName(*graph, node);
  return names.isEmpty() ? "nothing" : names.join(' ').toStdString();
}

}  // namespace

class TestSearch : public QObject {
  Q_OBJECT
  const cleave::test::Cases m_cases{"views/session", {{"queries", cleave::test::eachLine(found)}}};

 private slots:
  void answersAsWritten_data() { m_cases.list(); }
  void answersAsWritten() { m_cases.answer(); }
  void writesSizesAndCounts();
};

void TestSearch::writesSizesAndCounts() {
  QCOMPARE(countText(0), QStringLiteral("0"));
  QCOMPARE(countText(1'804'112), QStringLiteral("1,804,112"));
  QCOMPARE(bytesText(912), QStringLiteral("912 B"));
  QCOMPARE(bytesText(12ll << 30), QStringLiteral("12 GiB"));
  QCOMPARE(shapeText({8, 512, 4096}), QStringLiteral("8×512×4096"));
  QCOMPARE(shortScope("model.layers.3.self_attn.q_proj", 2), QStringLiteral("…self_attn.q_proj"));
  QCOMPARE(elideModeOf(QStringLiteral("model.layers.3.mlp")), Qt::ElideLeft);
  QCOMPARE(elideModeOf(QStringLiteral("layers 0–31")), Qt::ElideLeft);
  QCOMPARE(elideModeOf(QStringLiteral("gate_proj")), Qt::ElideRight);
  QCOMPARE(elideModeOf(QStringLiteral("Qwen2ForCausalLM")), Qt::ElideRight);
}

QTEST_APPLESS_MAIN(TestSearch)
#include "tst_search_query.moc"
