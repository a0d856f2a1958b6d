// The strip above the graph shows the same facts as the command line, with links to replicated layers.
#include <QRegularExpression>
#include <QTextDocumentFragment>
#include <QtTest>

#include "tests/support/cli_process.h"
#include "tests/support/patience.h"
#include "views/base/text.h"
#include "views/session/session.h"
#include "views/window/plan_strip.h"

using namespace cleave;
using namespace cleave::views;
using cleave::test::kPatience;

namespace {
QString plain(const PlanStrip& strip) {
  return QTextDocumentFragment::fromHtml(strip.text()).toPlainText().replace(QLatin1Char('\n'), QStringLiteral(" · "));
}

QStringList hrefs(const PlanStrip& strip) {
  static const QRegularExpression kHref(QStringLiteral("href=\"([^\"]*)\""));
  QStringList targets;
  for (auto found = kHref.globalMatch(strip.text()); found.hasNext();) targets << found.next().captured(1);
  return targets;
}
}  // namespace

class TestPlanStrip : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void figuresAreThoseOfTheCommandLine_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("engine");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("isTraining");
    QTest::newRow("all split") << CLEAVE_TEST_DATA "/models/llama"
                               << "reference" << 2 << false;
    QTest::newRow("nothing pays") << CLEAVE_TEST_DATA "/models/llama"
                                  << "optimal" << 4 << false;
    QTest::newRow("training") << CLEAVE_TEST_DATA "/models/llama"
                              << "learning" << 4 << true;
    QTest::newRow("heads do not divide") << CLEAVE_SOURCE_DIR "/resources/models/three-heads"
                                         << "reference" << 2 << false;
    QTest::newRow("one rank") << CLEAVE_TEST_DATA "/models/llama"
                              << "learning" << 1 << false;
  }

  void figuresAreThoseOfTheCommandLine() {
    QFETCH(QString, model);
    QFETCH(QString, engine);
    QFETCH(int, ranks);
    QFETCH(bool, isTraining);
    Session session;
    PlanStrip strip(session.opened(), session.plans(), session.jobs(), session.selection());
    session.settings().setEngine(*solve::parseEngine(toStd(engine)));
    session.settings().setRanks(ranks);
    session.settings().change([isTraining](spec::PlanSpec& spec) { spec.cost.isTraining = isTraining; });
    session.openSource(model);
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
    QStringList arguments{QStringLiteral("plan"), model, QStringLiteral("--engine"), engine, QStringLiteral("--ranks"),
                          QString::number(ranks)};
    if (isTraining) arguments << QStringLiteral("--train");
    const test::Finished cli = test::cli(arguments);
    QCOMPARE(cli.exitCode, 0);
    const QString told = QString::fromUtf8(cli.out);
    static const QRegularExpression kFigure(QStringLiteral("\\d[\\d.]*(?: (?:%|µs|ms|ns|KiB|MiB|GiB|of \\d+))?"));
    const QString said = plain(strip);
    int figures = 0;
    for (auto found = kFigure.globalMatch(said); found.hasNext(); ++figures) {
      const QString figure = found.next().captured();
      QVERIFY2(told.contains(figure), qPrintable(QStringLiteral("%1 of \"%2\" is not in\n%3").arg(figure, said, told)));
    }
    QVERIFY2(figures >= (ranks == 1 ? 4 : 7), qPrintable(said));
    QVERIFY(said.startsWith(QStringLiteral("%1 per %2 on %3 × h100 · ")
                                .arg(toQ(solve::timeText(session.plans().plan()->cost.femtoseconds())),
                                     isTraining ? QStringLiteral("training step") : QStringLiteral("step"))
                                .arg(ranks)));
    QVERIFY(said.contains(bytesText(session.plans().plan()->cost.bytes()) + QStringLiteral(" per rank")));
  }

  void whatStaysWholeIsCountedAndLeadsToTheFirst() {
    Session session;
    PlanStrip strip(session.opened(), session.plans(), session.jobs(), session.selection());
    session.settings().setEngine(solve::Engine::Reference);
    session.openSource(QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/three-heads"));
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
    const plan::Shares& shares = session.plans().plan()->shares;
    const auto whole = shares.layers.layers - shares.layers.split - shares.layers.gathered;
    QVERIFY(whole > 0);
    QVERIFY2(plain(strip).contains(QStringLiteral("%1 layers are replicated: ").arg(whole)), qPrintable(plain(strip)));
    const QStringList targets = hrefs(strip);
    QVERIFY(!targets.isEmpty());
    emit strip.linkActivated(targets.front());
    const NodeId node = session.selection().focus().node;
    QVERIFY(node.isValid());
    const auto& layers = session.plans().plan()->layers;
    const auto layer =
        std::find_if(layers.begin(), layers.end(), [&](const plan::LayerPlan& each) { return each.node == node; });
    QVERIFY(layer != layers.end() && !std::holds_alternative<plan::Split>(layer->replication));
  }

  /// A demand without effect is reported in the command line's words.
  void sequenceParallelismThatSplitsNothingSaysSo_data() {
    QTest::addColumn<int>("sequence");
    QTest::addColumn<bool>("isOptimal");
    QTest::addColumn<QString>("why");
    QTest::newRow("splits") << 16 << false << QString();
    QTest::newRow("odd") << 17 << false << QStringLiteral("17 positions do not divide by 2 ranks");
    QTest::newRow("whole") << 16 << true << QStringLiteral("no layer is split, so no result is scattered");
  }
  void sequenceParallelismThatSplitsNothingSaysSo() {
    QFETCH(int, sequence);
    QFETCH(bool, isOptimal);
    QFETCH(QString, why);
    Session session;
    PlanStrip strip(session.opened(), session.plans(), session.jobs(), session.selection());
    session.settings().setEngine(isOptimal ? solve::Engine::Optimal : solve::Engine::Reference);
    session.settings().change([](spec::PlanSpec& spec) { spec.sequenceParallel = rules::SequenceParallel::On; });
    spec::InputSpec options;
    options.sequence = sequence;
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), options);
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
    const QString idle = QStringLiteral("sequence parallelism is on, but the plan splits no sequence: ");
    if (why.isEmpty()) {
      QVERIFY2(!plain(strip).contains(idle), qPrintable(plain(strip)));
      return;
    }
    QVERIFY2(plain(strip).contains(idle + why), qPrintable(plain(strip)));
    const test::Finished cli =
        test::cli({QStringLiteral("plan"), QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), QStringLiteral("--seq"),
                   QString::number(sequence), QStringLiteral("--sequence-parallel"), QStringLiteral("on"),
                   QStringLiteral("--engine"), isOptimal ? QStringLiteral("optimal") : QStringLiteral("reference")});
    QVERIFY2(QString::fromUtf8(cli.out).contains(idle + why), cli.out.constData());
  }

  void whatIsOverTheBudgetSaysSo() {
    Session session;
    PlanStrip strip(session.opened(), session.plans(), session.jobs(), session.selection());
    session.settings().setEngine(solve::Engine::Reference);  // ignores the budget
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1 << 10; });
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    QTRY_VERIFY_WITH_TIMEOUT(session.isIdle() && session.plans().plan(), kPatience);
    QVERIFY2(plain(strip).contains(QStringLiteral("per rank (over the budget of 1 KiB)")), qPrintable(plain(strip)));
  }

  void withoutAPlanItSaysSo() {
    Session session;
    PlanStrip strip(session.opened(), session.plans(), session.jobs(), session.selection());
    QVERIFY(strip.isHidden());
    session.settings().change([](spec::PlanSpec& spec) { spec.cost.memoryBudget = 1 << 10; });
    session.openSource(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    QTRY_VERIFY_WITH_TIMEOUT(session.jobs().activity() == Activity::Idle && session.plans().solved(), kPatience);
    QVERIFY2(plain(strip).startsWith(QStringLiteral("There is no plan. The conflict card")), qPrintable(plain(strip)));
  }
};

QTEST_MAIN(TestPlanStrip)
#include "tst_plan_strip.moc"
