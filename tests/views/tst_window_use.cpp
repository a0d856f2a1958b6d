// The window as a person uses it: folders dropped on it, keys, and closing while work runs.
#include <QMimeData>
#include <QtTest>

#include "main_window.h"
#include "message_bar.h"

using namespace cleave;
using namespace cleave::views;

namespace {

constexpr int kPatience = 20'000;

void drop(MainWindow& window, const QString& path) {
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path)});
  QDragEnterEvent enter({200, 200}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &enter);
  QVERIFY(enter.isAccepted());
  QDropEvent event({200, 200}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &event);
}

void openModel(MainWindow& window, const QString& path) {
  window.show();
  drop(window, path);
  QTRY_VERIFY_WITH_TIMEOUT(window.document().plan() && window.isSettled(), kPatience);
}

QString message(MainWindow& window) { return window.findChild<MessageBar*>()->text(); }

}  // namespace

class TestWindowUse : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void aDroppedFolderIsOpenedAndSolved() {
    MainWindow window(false);
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/qwen2"));
    QCOMPARE(window.document().plan()->model.modelType, std::string("qwen2"));
  }

  void aBadDropSaysSoAndLosesNothing() {
    MainWindow window(false);
    openModel(window, QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
    const auto before = window.document().plan();
    drop(window, QStringLiteral(CLEAVE_TEST_DATA "/models/gpt2"));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("GPT2LMHeadModel"), kPatience);
    QCOMPARE(window.document().plan(), before);
    drop(window, QStringLiteral("/no/such/folder"));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("/no/such/folder"), kPatience);
    QCOMPARE(window.document().plan(), before);
  }

  void keysWalkTheSearch() {
    MainWindow window(false);
    window.document().setEngine(solve::Engine::Reference);  // this one meets conflicts
    openModel(window, QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/one-kv-head"));
    const auto step = [&] { return window.document().wantedStep(); };
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
    auto window = std::make_unique<MainWindow>(false);
    window->show();
    for (const auto& sample : *window->samples()) {
      if (sample.name == "exploding-16") window->document().openSample(sample);
    }
    QTRY_VERIFY_WITH_TIMEOUT(window->document().trace() && window->document().trace()->size() > 1000, kPatience);
    window.reset();  // joins the worker; the test's timeout is the check that it ends
  }
};

QTEST_MAIN(TestWindowUse)
#include "tst_window_use.moc"
