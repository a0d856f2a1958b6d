// The window as a user uses it: dropped folders, keys, and closing while work runs.
#include <QLabel>
#include <QLineEdit>
#include <QSemaphore>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTextDocument>
#include <QWindow>

#include "tests/views/window/window_fixture.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

void openModel(MainWindow& window, const QString& path) {
  window.show();
  drop(window, path);
  QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
}

}  // namespace

class TestWindowUse : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void aDroppedFolderIsOpenedAndSolved() {
    SessionWindow window;
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/qwen2"));
    QCOMPARE(window.session().plans().plan()->model.modelType, std::string("qwen2"));
  }

  /// Qt interprets some characters in titles and menus. A folder's name is shown unchanged.
  void aFolderIsCalledByItsName() {
    const QTemporaryDir folder;
    const QString odd = folder.filePath(QStringLiteral("a[*]&b"));
    QVERIFY(QDir().mkpath(odd));
    QVERIFY(QFile::copy(QStringLiteral(CLEAVE_TEST_DATA "/models/llama/config.json"), odd + "/config.json"));
    SessionWindow window;
    openModel(window, odd);
    QCOMPARE(window.windowHandle()->title(), QStringLiteral("a[*]&b – Cleave"));
  }

  /// The panels shrink, not the picture.
  void aSmallWindowHasRoomForThePicture() {
    SessionWindow window;
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    window.session().settings().setRanks(4);
    window.session().settings().setEngine(solve::Engine::Reference);
    window.session().solve();
    settle(window);
    window.resize(900, 600);
    QCoreApplication::processEvents();
    const auto* view = window.findChild<GraphView*>();
    QVERIFY2(view->viewport()->height() >= 96, qPrintable(QString::number(view->viewport()->height())));
    QVERIFY(window.height() <= 600);
    QVERIFY2(view->width() >= window.width() * 9 / 20 - 8, qPrintable(QString::number(view->width())));
    // A long path to the selection keeps its end, and the tooltip has the full path.
    const graph::Graph& graph = *window.session().opened().graph();
    window.session().selection().focusNode(graph.value(graph.findValue("mul_4")).producer);
    QCoreApplication::processEvents();
    const auto labels = view->parentWidget()->findChildren<QLabel*>();
    const auto path = std::find_if(labels.begin(), labels.end(), [](QLabel* l) { return l->text().contains("mul_4"); });
    QVERIFY(path != labels.end() && (*path)->toolTip().endsWith("self_attn › mul_4"));
    QTextDocument shown;
    shown.setDefaultFont((*path)->font());
    shown.setHtml((*path)->text());
    QVERIFY2(shown.idealWidth() <= (*path)->width(), qPrintable((*path)->text()));
    QVERIFY((*path)->text().contains(QStringLiteral("…")));
  }

  void aBadDropSaysSoAndLosesNothing() {
    SessionWindow window;
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    const auto before = window.session().plans().plan();
    QTemporaryDir unknown;
    QFile config(unknown.filePath(QStringLiteral("config.json")));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba"})");
    config.close();
    drop(window, unknown.path());
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("MambaForCausalLM"), kPatience);
    QCOMPARE(window.session().plans().plan(), before);
    const QString below = window.statusBar()->findChild<QLabel*>()->text();  // not repeated below
    QVERIFY2(!below.contains("Mamba") && below.startsWith("Every node has a placement"), qPrintable(below));
    drop(window, QStringLiteral("/no/such/folder"));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("/no/such/folder"), kPatience);
    QCOMPARE(window.session().plans().plan(), before);
  }

  void keysWalkTheSearch() {
    SessionWindow window;
    window.session().settings().setEngine(solve::Engine::Reference);  // this engine meets conflicts
    openModel(window, QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head"));
    const auto step = [&] { return window.session().debugger().wantedStep(); };
    const StepId end = step();
    QTest::keyClick(&window, Qt::Key_F10, Qt::ShiftModifier);
    QTRY_COMPARE_WITH_TIMEOUT(step(), end - 1, kPatience);
    QTest::keyClick(&window, Qt::Key_F8, Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(step() < end - 1, kPatience);
    const StepId conflict = step();
    QTest::keyClick(&window, Qt::Key_F10);
    QTRY_COMPARE_WITH_TIMEOUT(step(), conflict + 1, kPatience);
  }

  void closingDuringASearchStopsIt() {
    auto window = std::make_unique<SessionWindow>();
    window->show();
    for (const auto& sample : *window->samples()) {
      if (sample.name == "exploding-16") window->session().openSample(sample);
    }
    QTRY_VERIFY_WITH_TIMEOUT(
        window->session().debugger().trace() && window->session().debugger().trace()->size() > 1000, kPatience);
    window.reset();  // joins the worker; the test's timeout is the check that it ends
  }

  void closingDoesNotWaitForWorkThatDoesNotStop() {
    const auto gate = std::make_shared<QSemaphore>();
    const auto started = std::make_shared<QSemaphore>(), ended = std::make_shared<QSemaphore>();
    bool completed = false;
    {
      SessionWindow window;
      openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
      window.session().debugger().reads().post(QStringLiteral("deaf"), {},
                                               [=, &completed](const Progress& progress) -> Worker::Completion {
                                                 started->release();
                                                 gate->acquire();  // opened only after the window is gone
                                                 progress.report("late", 1, 2);
                                                 ended->release();
                                                 return [&completed] { completed = true; };
                                               });
      started->acquire();  // queued work is dropped
      window.close();
      QVERIFY(!window.isVisible());
    }
    QVERIFY(Worker::hasAbandonedThread());
    gate->release();
    ended->acquire();
    QTest::qWait(50);
    QVERIFY(!completed);
  }

  void widgetsGoBeforeTheSession() {
    auto window = std::make_unique<SessionWindow>();
    openModel(*window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    QList<QPointer<QWidget>> widgets;
    for (QWidget* widget : window->findChildren<QWidget*>())
      if (QByteArray(widget->metaObject()->className()).startsWith("cleave::")) widgets << widget;
    QVERIFY(widgets.size() > 10);
    QStringList left;
    connect(&window->session(), &QObject::destroyed, this, [&] {
      for (const auto& widget : widgets)
        if (widget) left << QString::fromLatin1(widget->metaObject()->className());
    });
    window.reset();
    QCOMPARE(left, QStringList());
  }

  /// In the program's own style, which other tests do not use: this one comes last.
  void theSearchShowsItsWholeHintWhereThereIsRoom() {
    applyTheme(false);
    SessionWindow window;
    window.resize(1440, 900);
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    const auto* search = window.findChild<QLineEdit*>(QStringLiteral("search"));
    QVERIFY(search);
    const int hint = search->fontMetrics().horizontalAdvance(search->placeholderText());
    QTRY_VERIFY2(search->isVisible() && search->width() > hint,
                 qPrintable(QStringLiteral("%1 of %2").arg(search->width()).arg(hint)));
    window.resize(1280, 800);
    QTRY_COMPARE_WITH_TIMEOUT(window.width(), 1280, kPatience);
    QTRY_VERIFY_WITH_TIMEOUT(
        search->isVisible() && search->mapTo(&window, search->rect().bottomRight()).x() < window.width(), kPatience);
  }
};

QTEST_MAIN(TestWindowUse)
#include "tst_window_use.moc"
