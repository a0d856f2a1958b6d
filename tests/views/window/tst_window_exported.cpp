// Exported programs in the window: opened, dropped, remembered; their source lines shown and found; 80 layers at once.
#include <QAction>
#include <QApplication>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QTemporaryDir>
#include <QTimer>

#include "tests/support/deep_program.h"
#include "tests/support/need.h"
#include "tests/views/window/window_fixture.h"
#include "views/panels/decision_text.h"
#include "views/session/search_query.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

const QString kTiny = QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.11.0.pt2");

void openArchive(MainWindow& window, const QString& path) {
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  window.openPath(path);
  QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.session().debugger().state() && window.isSettled(),
                           kPatience);
}

/// Presses Run and accepts or rejects the dialog that opens, if any. Returns true if it was accepted.
bool answerRun(MainWindow& window, const std::function<void(QDialog&)>& answer) {
  bool isAccepted = false;
  QTimer::singleShot(0, &window, [&] {
    auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
    if (!dialog) return;
    answer(*dialog);
    isAccepted = dialog->result() == QDialog::Accepted;
  });
  window.findChild<QAction*>(QStringLiteral("run"))->trigger();
  QCoreApplication::processEvents();
  return isAccepted;
}

std::vector<graph::NodeId> found(MainWindow& window, const char* text) {
  return test::need(SearchQuery::parse(QString::fromUtf8(text))).hits(*window.session().opened().graph());
}

}  // namespace

class TestWindowExported : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void anArchiveIsOpenedDroppedAndTitledByItsFile() {
    SessionWindow window;
    window.resize(1400, 900);
    window.show();
    drop(window, kTiny);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.isSettled(), kPatience);
    QCOMPARE(window.session().title(), QString("tiny-2.11.0.pt2"));
    QVERIFY(window.session().opened().model()->exported != nullptr);
    QCOMPARE(QString::fromStdString(window.session().plans().plan()->model.source),
             QFileInfo(kTiny).absoluteFilePath());
  }

  void aBrokenArchiveIsASentence() {
    QTemporaryDir folder;
    const QString path = folder.filePath("broken.pt2");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("PK\x03\x04 and no more") > 0);
    file.close();
    SessionWindow window;
    openModel(window);
    const auto before = window.session().opened().model();
    window.openPath(path);
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains("not a complete zip archive"), kPatience);
    QCOMPARE(window.session().opened().model(), before);
  }

  void linesOfCodeAreShownAndFound() {
    SessionWindow window;
    openArchive(window, kTiny);
    const auto hits = found(window, "s.qkv(s.norm(x)).chunk(3,-1)");
    QCOMPARE(hits.size() >= 2, true);
    QCOMPARE(found(window, "source:tiny.py").empty(), false);
    const std::string line =
        window.session().opened().graph()->sourceOf(window.session().opened().graph()->node(hits.front()));
    const std::string place = line.substr(0, line.find(": "));
    QVERIFY(!found(window, place.c_str()).empty());
    window.session().selection().focusNode(hits.front());
    Session& session = window.session();
    const DecisionText text = decisionText({session.opened(), session.settings(), session.plans(), session.debugger(),
                                            session.selection(), session.answers()},
                                           TextColors::of(window.palette()));
    QVERIFY2(text.html.contains("Source") && text.html.contains("s.qkv"), qPrintable(text.html));
  }

  /// Archives of torch 2.6 have pickled weights: the window asks for others.
  void weightsBesideAreAskedFor() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.6.0.pt2"));
    QVERIFY(!window.session().opened().model()->info.hasWeights);
    bool wasAsked = false;
    QTimer::singleShot(0, &window, [&wasAsked] {
      auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
      auto* weights = dialog ? dialog->findChild<QLineEdit*>(QStringLiteral("weights")) : nullptr;
      if (weights) weights->setText(QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny.weights.safetensors"));
      wasAsked = weights != nullptr;
      if (dialog) dialog->accept();
    });
    window.findChild<QAction*>(QStringLiteral("capture"))->trigger();
    QVERIFY(wasAsked);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().opened().model()->info.hasWeights && window.isSettled(), kPatience);
    QVERIFY(window.session().plans().plan()->model.input.weights.ends_with("tiny.weights.safetensors"));
  }

  /// Random weights must not surprise: the window asks before a run, and the run continues with the answer.
  void aRunAsksForTheWeightsThatAnArchiveLacks() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny-2.6.0.pt2"));
    Session& session = window.session();
    QVERIFY(!answerRun(window, [](QDialog& dialog) { dialog.reject(); }));
    QVERIFY(!session.runs().state() && session.jobs().activity() == Activity::Idle);
    QVERIFY(answerRun(window, [](QDialog& dialog) {
      dialog.findChild<QLineEdit*>(QStringLiteral("weights"))
          ->setText(QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/tiny.weights.safetensors"));
      dialog.accept();
    }));
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->report, kPatience);
    QVERIFY(session.runs().state()->plan->model.input.weights.ends_with("tiny.weights.safetensors"));
    QVERIFY(session.runs().state()->report->verdict == pipeline::RunVerdict::Passed);
  }

  void whoWantsRandomWeightsIsAskedOnce() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/exported/fake-weights.pt2"));
    Session& session = window.session();
    QVERIFY(answerRun(window, [](QDialog& dialog) { dialog.accept(); }));
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state() && session.runs().state()->report && window.isSettled(), kPatience);
    bool isAskedAgain = false;
    answerRun(window, [&](QDialog& dialog) { isAskedAgain = true, dialog.reject(); });
    QVERIFY(!isAskedAgain);
    QTRY_VERIFY_WITH_TIMEOUT(session.runs().state()->report && window.isSettled(), kPatience);
  }

  /// A plan without layers must not look like a running search.
  void aProgramWithoutLayersSaysSo() {
    SessionWindow window;
    openArchive(window, QStringLiteral(CLEAVE_TEST_DATA "/exported/no-parameters.pt2"));
    QStringList texts;
    for (const QLabel* label : window.findChildren<QLabel*>()) texts << label->text();
    const QString all = texts.join('\n');
    QVERIFY2(all.contains("The plan has no layers") && !all.contains("plan's layers appear here when it ends"),
             qPrintable(all));
  }

  void eightyLayersOpenAsOneStack_data() {
    QTest::addColumn<bool>("namesModules");
    QTest::newRow("as exported") << true;
    QTest::newRow("without modules") << false;
  }
  void eightyLayersOpenAsOneStack() {
    QFETCH(bool, namesModules);
    QTemporaryDir folder;
    const QString path = folder.filePath("deep.pt2");
    const std::string bytes = test::DeepProgram(kTiny.toStdString()).bytes(80, namesModules);
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(bytes.data(), std::ssize(bytes)) == std::ssize(bytes));
    file.close();
    SessionWindow window;
    openArchive(window, path);
    QVERIFY(window.session().opened().model()->captured->nodes.size() > 1600);
    const auto hits = found(window, "source:s.qkv(s.norm(x)).chunk(3,-1)");
    QVERIFY(!hits.empty() && hits.size() % 80 == 0);
    const auto& graph = *window.session().opened().graph();
    const auto first = graph.findScope("layers.0"), last = graph.findScope("layers.79");
    QVERIFY(last.isValid() && graph.scope(first).className == graph.scope(last).className);
    const GraphModel& model = *window.graphArea().view().model();
    QVERIFY(model.tree().stackOf(first, last).isValid());
    // The embedding, the norm, the head and their inputs are outside the stack.
    QVERIFY2(model.module(model.root()).members.size() < 80 + 12, "operators of the layers are outside of them");
  }
};

QTEST_MAIN(TestWindowExported)
#include "tst_window_exported.moc"
