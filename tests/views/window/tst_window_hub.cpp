// A model by its Hub name in the window: opened with its config only, with a question about its weights before a run.
#include <QAbstractButton>
#include <QApplication>
#include <QMessageBox>
#include <QTimer>

#include "tests/support/hub_server.h"
#include "tests/views/window/window_fixture.h"
#include "views/run/run_view.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;
using test::HubServer;

namespace {
/// Clicks the button with this prefix in the next message box, and stores the box's text.
void answerBox(const QString& button, QString* said) {
  auto* timer = new QTimer(qApp);
  QObject::connect(timer, &QTimer::timeout, timer, [timer, button, said] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!box) return;
    timer->deleteLater();
    *said = box->text() + QLatin1Char(' ') + box->informativeText();
    for (QAbstractButton* each : box->buttons())
      if (each->text().remove(QLatin1Char('&')).startsWith(button)) return each->click();
    said->append(QStringLiteral(" (no such button)"));
    box->reject();
  });
  timer->start(20);
}
}  // namespace

class TstWindowHub : public QObject {
  Q_OBJECT

  test::TinyHub m_hub;

 private slots:
  void initTestCase() { QVERIFY2(m_hub.begin(), "python3 is needed to serve models"); }

  void aModelOpensByItsName() {
    Session session;
    MainWindow window(session, false);
    window.show();
    session.settings().setEngine(solve::Engine::Reference);
    window.openPath(QStringLiteral("org/tiny"));
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().plan() && window.isSettled(), kPatience);
    QCOMPARE(session.title(), QStringLiteral("org/tiny"));
    QVERIFY(window.windowTitle().startsWith(QStringLiteral("org/tiny")));
    QVERIFY(!session.opened().model()->info.hasWeights);

    // The run asks first and shows the size.
    QString said;
    answerBox(QStringLiteral("Fetch 395 KiB and Run"), &said);
    window.runView().run(2);
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->report, kPatience);
    QVERIFY2(
        said.contains(QStringLiteral("The weights of org/tiny are not in the cache yet. They are 395 KiB in 3 files")),
        qPrintable(said));
    QVERIFY(session.opened().model()->info.hasWeights);
    QCOMPARE(session.title(), QStringLiteral("org/tiny"));
    QVERIFY(session.runs().state()->report->verdict == pipeline::RunVerdict::Passed);
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled(), kPatience);
  }

  void aNameThatIsNoneLeavesWhatIsOpen() {
    Session session;
    MainWindow window(session, false);
    openModel(window);
    const auto before = session.opened().model();
    window.openPath(QStringLiteral("org/nowhere"));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("has no model org/nowhere")), kPatience);
    QCOMPARE(session.opened().model(), before);
    QVERIFY2(message(window).contains(QStringLiteral("(There is no file or folder org/nowhere.)")),
             qPrintable(message(window)));
  }
};

QTEST_MAIN(TstWindowHub)
#include "tst_window_hub.moc"
