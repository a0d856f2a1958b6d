/// Runs every rule against its kernel. A failure prints a call for `cleave-cli rules --eval` or a test.
#include "libtorch/verify/verify_rules.h"
#include "rules/rule.h"
#include "tests/support/seeds.h"

#include <QTest>

using namespace cleave;
using torch_verify::Finding;

class TstRulesProperty : public QObject {
  Q_OBJECT

 private slots:
  void everyClaimIsTrueAndNoTrueSplitIsRefused_data() {
    QTest::addColumn<QString>("family");
    for (const rules::Family& family : rules::families()) {
      const std::string name(family.name);
      QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
  }
  void everyClaimIsTrueAndNoTrueSplitIsRefused() {
    QFETCH(QString, family);
    torch_verify::VerifyOptions options;
    options.family = family.toStdString();
    options.seed = test::seed();
    options.draws = static_cast<int>(test::rounds(1));  // `rules --verify` draws six
    const auto report = torch_verify::verifyRules(options);
    QVERIFY2(report.has_value(), report ? "" : report.error().message.c_str());
    qInfo("%lld calls, %lld claims run, %lld conflicts", static_cast<long long>(report->calls),
          static_cast<long long>(report->claims), static_cast<long long>(report->conflicts));
    for (const Finding& finding : report->findings) {
      qWarning("%s: %s => %s\n    %s", std::string(torch_verify::toText(finding.kind)).c_str(), finding.call.c_str(),
               finding.claim.c_str(), finding.detail.c_str());
    }
    for (const std::string& op : report->unproved) qWarning("no claim of %s was run", op.c_str());
    QCOMPARE(report->findings.size(), std::size_t{0});
    QVERIFY(report->unproved.empty());
  }

  void namesAnOperatorThatHasNoRule() {
    const auto report = torch_verify::verifyRules({.op = "aten::no_such_thing"});
    QVERIFY(!report.has_value());
    QVERIFY(report.error().code == ErrorCode::BadUsage);
    QVERIFY(report.error().message.find("no_such_thing") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(TstRulesProperty)
#include "tst_rules_property.moc"
