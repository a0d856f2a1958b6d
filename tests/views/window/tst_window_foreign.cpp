// Plans of transformers and PyTorch in the window: demands on the open model, next to the previous plan.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

#include "tests/support/cli_process.h"
#include "tests/support/files_below.h"
#include "tests/support/rows.h"
#include "tests/views/window/window_fixture.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

class TstWindowForeign : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;
  const QString m_model = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");

  QString written(const QString& name, const QByteArray& text) {
    const QString path = m_folder.filePath(name);
    QFile file(path);
    const bool isWritten = file.open(QIODevice::WriteOnly) && file.write(text) == text.size();
    return isWritten ? path : QString();
  }
  QString exported(const QString& format) {
    const QString file = m_folder.filePath(format + QStringLiteral(".json"));
    const auto done = test::cli({"export", m_model, "--engine", "reference", "--menu", "full", "--ranks", "4",
                                 "--format", format, "--out", file});
    return done.exitCode == 0 ? file : QString();
  }

 private slots:
  void itStandsBesideThePlanThatWasThere_data() {
    const cleave::test::Rows<QString> row("format");
    row("transformers", "tp-plan");
    row("PyTorch", "dtensor-json");
  }
  void itStandsBesideThePlanThatWasThere() {
    QFETCH(QString, format);
    const QString file = exported(format);
    QVERIFY(!file.isEmpty());
    SessionWindow window;
    openModel(window);
    Session& session = window.session();
    const auto before = session.settings().spec();
    window.openPath(file);
    QTRY_COMPARE_WITH_TIMEOUT(session.plans().branches().size(), 2u, kPatience);
    settle(window);
    QVERIFY(session.plans().plan());
    QCOMPARE(session.plans().plan()->spec.ranks, 4);
    QCOMPARE(session.plans().branches()[1].label, QStringLiteral("Plan of %1.json, 4 ranks").arg(format));
    QVERIFY(!session.settings().pins().empty());
    QCOMPARE(session.undoStack().undoText(), QStringLiteral("Plan of %1.json").arg(format));
    session.undoStack().undo();
    settle(window);
    QVERIFY(spec::isSameProblem(session.settings().spec(), before));
    QVERIFY(session.settings().pins().empty());
  }

  void withoutAModelItSaysWhatToDo() {
    SessionWindow window;
    window.show();
    window.openPath(exported(QStringLiteral("tp-plan")));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("Open the model first")), kPatience);
    QVERIFY(!window.session().opened().model());
  }

  void whatDoesNotFitLeavesThePlan_data() {
    const cleave::test::Rows<QByteArray, QString> row("text", "said");
    row("a norm", QByteArray(R"({"model.norm": "colwise"})"), "`model.norm` is colwise");
    row("too large", QByteArray(R"({"x": ")") + QByteArray(5 << 20, 'y') + "\"}", "the limit is 4194304");
    row("nobody's", QByteArray(R"({"a": 1})"), "the style of \"a\" must be a text, but it is 1");
  }
  void whatDoesNotFitLeavesThePlan() {
    QFETCH(QByteArray, text);
    QFETCH(QString, said);
    SessionWindow window;
    openModel(window);
    const auto plan = window.session().plans().plan();
    window.openPath(written(QStringLiteral("theirs.json"), text));
    QTRY_VERIFY2_WITH_TIMEOUT(message(window).contains(said), qPrintable(message(window)), kPatience);
    settle(window);
    QCOMPARE(window.session().plans().plan(), plan);
    QCOMPARE(window.session().plans().branches().size(), 1u);
  }

  /// Other programs write the fields of a plan in their own order.
  void aPlanOfCleaveInAnotherOrderIsOne() {
    const QString first = m_folder.filePath("first.json");
    QCOMPARE(test::cli({"plan", m_model, "--engine", "reference", "--json", first}).exitCode, 0);
    const QByteArray sorted = QJsonDocument::fromJson(test::contentOf(first)).toJson();
    QVERIFY(sorted.indexOf("\"schema\": \"cleave.plan/1\"") > 64 << 10);
    SessionWindow window;
    window.show();
    window.openPath(written(QStringLiteral("sorted.json"), sorted));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().openedPlan(), kPatience);
    settle(window);
  }
};

QTEST_MAIN(TstWindowForeign)
#include "tst_window_foreign.moc"
