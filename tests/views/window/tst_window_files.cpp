// The window's output: regular files, written off the GUI thread.
#include <sys/stat.h>

#include <QClipboard>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <atomic>
#include <thread>

#include "tests/support/files_below.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/save_file.h"
#include "views/base/text.h"
#include "views/window/export_dialog.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

/// Answers the next file dialog like a user.
void choose(const QString& file) {
  QTimer::singleShot(0, [file] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (!dialog) return choose(file);
    dialog->setOption(QFileDialog::DontConfirmOverwrite);
    dialog->selectFile(file);
    static_cast<QDialog*>(dialog)->done(QDialog::Accepted);
  });
}

struct ExportShown {
  QString text, unsaid;
};

/// Opens the dialog, waits for the preview of the row's format, and saves it.
ExportShown exportAs(MainWindow& window, int row, const QString& file) {
  window.findChild<QAction*>(QStringLiteral("export-plan"))->trigger();
  auto* const dialog = window.findChild<ExportDialog*>();
  dialog->findChild<QListWidget*>()->setCurrentRow(row);
  const auto texts = dialog->findChildren<QPlainTextEdit*>();
  (void)QTest::qWaitFor([&] { return !dialog->isBusy(); }, kPatience);
  ExportShown shown{texts[0]->toPlainText(), texts[1]->isVisible() ? texts[1]->toPlainText() : QString()};
  choose(file);
  dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save)->click();
  return shown;
}

}  // namespace

class TestWindowFiles : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources");
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
  }

  void exportsAreWrittenAndSaidSo_data() {
    QTest::addColumn<QString>("action");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("begin");
    QTest::newRow("trace") << "save-trace"
                           << "s.trace" << QByteArray("");
    QTest::newRow("SVG") << "save-picture"
                         << "p.svg" << QByteArray("<?xml");
    QTest::newRow("PDF") << "save-picture"
                         << "p.pdf" << QByteArray("%PDF");
    QTest::newRow("PNG") << "save-picture"
                         << "p.png" << QByteArray("\x89PNG");
  }
  void exportsAreWrittenAndSaidSo() {
    QFETCH(QString, action);
    QFETCH(QString, name);
    QFETCH(QByteArray, begin);
    QTemporaryDir folder;
    SessionWindow window;
    openModel(window);
    // A pipe without a reader: the window refuses it at once and continues.
    const QString pipe = folder.filePath(QStringLiteral("pipe-") + name), file = folder.filePath(name);
    QCOMPARE(::mkfifo(pipe.toUtf8(), 0600), 0);
    choose(pipe);
    window.findChild<QAction*>(action)->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("is not a regular file")), kPatience);
    choose(file);
    window.findChild<QAction*>(action)->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(message(window).startsWith(QStringLiteral("Written to %1.").arg(file)), kPatience);
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    QVERIFY(written.size() > 100);
    QVERIFY2(written.readAll().startsWith(begin), "the file begins otherwise");
  }

  /// Every format's file equals its preview.
  void plansAreShownAndExported_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < exchange::formats().size(); ++i)
      QTest::newRow(std::string(exchange::formats()[i].name).c_str()) << static_cast<int>(i);
  }
  void plansAreShownAndExported() {
    QFETCH(int, row);
    const exchange::Format& format = exchange::formats()[static_cast<std::size_t>(row)];
    QTemporaryDir folder;
    SessionWindow window;
    openModel(window);
    const QString pipe = folder.filePath(QStringLiteral("pipe"));
    QCOMPARE(::mkfifo(pipe.toUtf8(), 0600), 0);
    const ExportShown shown = exportAs(window, row, pipe);
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("is not a regular file")), kPatience);
    const QString file = folder.filePath(QStringLiteral("x.") + toQ(format.extension));
    exportAs(window, row, file);
    QTRY_VERIFY_WITH_TIMEOUT(
        message(window).startsWith(QStringLiteral("Written to %1 (%2).").arg(file, toQ(format.name))), kPatience);
    const QByteArray written = test::contentOf(file);
    QVERIFY(written.size() > 100);
    const QMap<std::string_view, QByteArray> begins{
        {"json", "{"}, {"dot", "digraph"}, {"svg", "<?xml"}, {"pdf", "%PDF"}, {"png", "\x89PNG"}};
    QVERIFY2(written.startsWith(begins.value(format.name)), "the file begins otherwise");
    if (format.isPicture) return;
    QVERIFY(QString::fromUtf8(written).startsWith(shown.text.section(QStringLiteral("…\n("), 0, 0)));
    const QStringList unsaid = shown.unsaid.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    QCOMPARE(message(window).contains(QStringLiteral("Not included")), !unsaid.isEmpty());
    for (const QString& sentence : unsaid.mid(0, 1)) QVERIFY(message(window).contains(sentence));
  }

  void theExportFollowsThePlanShown() {
    SessionWindow window;
    openModel(window);
    window.findChild<QAction*>(QStringLiteral("export-plan"))->trigger();
    auto* const dialog = window.findChild<ExportDialog*>();
    dialog->findChild<QListWidget*>()->setCurrentRow(1);  // tp-plan
    auto* const text = dialog->findChild<QPlainTextEdit*>();
    QTRY_VERIFY_WITH_TIMEOUT(text->toPlainText().contains(QStringLiteral("\"tp_size\":2")), kPatience);
    window.session().settings().setRanks(4);
    window.findChild<QAction*>(QStringLiteral("solve"))->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(text->toPlainText().contains(QStringLiteral("\"tp_size\":4")), kPatience);
    auto* const copy = dialog->findChild<QPushButton*>(QStringLiteral("copy"));
    QVERIFY(copy->isEnabled());
    copy->click();
    QCOMPARE(QApplication::clipboard()->text(), text->toPlainText());
    // The selected row decides, not the file's ending.
    QTemporaryDir folder;
    exportAs(window, 1, folder.filePath(QStringLiteral("p.dot")));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("p.dot (tp-plan).")), kPatience);
    QVERIFY(test::contentOf(folder.filePath(QStringLiteral("p.dot"))).contains("tp_size"));
  }

  /// Enter on a row saves, and asks only once.
  void enterAsksOnce() {
    SessionWindow window;
    openModel(window);
    window.findChild<QAction*>(QStringLiteral("export-plan"))->trigger();
    auto* const dialog = window.findChild<ExportDialog*>();
    int asked = 0;
    QTimer cancel;
    connect(&cancel, &QTimer::timeout, this, [&] {
      auto* file = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (file) ++asked, file->reject();
    });
    cancel.start(20);
    QTest::keyClick(dialog->findChild<QListWidget*>(), Qt::Key_Return);
    QTest::qWait(200);
    QCOMPARE(asked, 1);
  }

  /// Other writes do not wait for a picture. Esc stops the picture, and closing the window keeps the other writes.
  void aPictureHoldsNothingUp() {
    static std::atomic<bool> isStopped;
    isStopped = false;
    const exchange::Format slow{"slow", "", "svg",
                                [](const plan::Plan&, const exchange::Options& options) -> Result<exchange::Exported> {
                                  while (!options.progress.cancelled()) std::this_thread::yield();
                                  isStopped = true;
                                  return options.progress.cancelledError("drawing the graph");
                                },
                                true};
    QTemporaryDir folder;
    SessionWindow window;
    openModel(window);
    Files& files = window.session().files();
    files.exportPlan(folder.filePath(QStringLiteral("x.svg")), window.session().plans().plan(), slow);
    QTRY_VERIFY_WITH_TIMEOUT(!files.drawing().isEmpty(), kPatience);
    const QString session = folder.filePath(QStringLiteral("x.cleave"));
    window.session().save(session, window.graphArea().savedView());
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(session), kPatience);
    QVERIFY(!isStopped);
    window.activateWindow();
    QTest::keyClick(&window, Qt::Key_Escape);
    QTRY_VERIFY_WITH_TIMEOUT(files.drawing().isEmpty(), kPatience);
    QVERIFY(isStopped && !QFile::exists(folder.filePath(QStringLiteral("x.svg"))));
    // Writes requested before the close are finished.
    files.exportPlan(folder.filePath(QStringLiteral("x.svg")), window.session().plans().plan(), slow);
    const QString last = folder.filePath(QStringLiteral("last"));
    for (const char* name : {"1", "2", "3", "last"})
      files.save(folder.filePath(QLatin1String(name)), [] { return QByteArray(1 << 20, 'x'); });
    window.close();
    QCOMPARE(QFileInfo(last).size(), qint64(1 << 20));
  }

  /// A plan of transformers becomes demands on the open model, as a plan next to the shown one.
  void aPlanOfAnotherLibraryIsSolvedFor() {
    QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("tp_plan.json"));
    const auto write = [&](const char* text) {
      QFile out(file);
      QVERIFY(out.open(QIODevice::WriteOnly) && out.write(text) > 0);
    };
    SessionWindow window;
    Session& session = window.session();
    write(
        "{\"model.layers.*.mlp.up_proj\": \"colwise\", \"model.layers.*.mlp.gate_proj\": \"colwise\", "
        "\"model.layers.*.mlp.down_proj\": \"rowwise\"}");
    window.show();
    window.openPath(file);
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("Open the model first")), kPatience);
    openModel(window);
    window.openPath(file);
    QTRY_VERIFY_WITH_TIMEOUT(session.plans().branches().size() == 2 && session.plans().plan() && window.isSettled(),
                             kPatience);
    QVERIFY(session.undoStack().canUndo());
    int split = 0;
    for (const plan::LayerPlan& layer : session.plans().plan()->layers) {
      const bool isMlp = layer.name.find(".mlp.") != std::string::npos;
      const bool isSplit = layer.strategy != rules::Strategy::Replicated;
      QVERIFY2(isMlp == isSplit || layer.name == "loss", layer.name.c_str());
      split += isSplit ? 1 : 0;
    }
    QVERIFY(split >= 6);
    // A disagreement is reported, and nothing changes.
    const auto before = session.plans().plan();
    write("{\"model.layers.*.mlp.up_proj\": \"colwise\"}");
    window.openPath(file);
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("up_proj")), kPatience);
    QCOMPARE(session.plans().plan(), before);
  }

  void whatIsNoRegularFileIsRefused() {
    QTemporaryDir folder;
    const QString pipe = folder.filePath(QStringLiteral("pipe"));
    QCOMPARE(::mkfifo(pipe.toUtf8(), 0600), 0);
    QVERIFY(QFile::link(pipe, folder.filePath(QStringLiteral("link"))));
    for (const QString& name : {pipe, folder.filePath(QStringLiteral("link"))}) {
      const auto refused = saveFile(name, "x");
      QVERIFY(!refused);
      QCOMPARE(refused.error().message,
               name.toStdString() + " is not a regular file. Choose a file, or use cleave-cli for pipes and devices.");
    }
    QVERIFY(!saveFile(folder.path(), "x"));
    QVERIFY(saveFile(folder.filePath(QStringLiteral("new")), "x").has_value());
    QVERIFY(saveFile(folder.filePath(QStringLiteral("new")), "y").has_value());
  }

  /// A disk that does not respond blocks only the write, and Esc ends it.
  void aSlowDiskHoldsNothingUp() {
    SessionWindow window;
    openModel(window);
    const auto gate = std::make_shared<QSemaphore>();
    window.session().files().save(QStringLiteral("/nowhere/x"), [gate] {
      gate->acquire();
      return QByteArray("x");
    });
    const StepId step = window.session().debugger().wantedStep();
    window.session().debugger().stepBy(-1);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().debugger().state()->step == step - 1, kPatience);
    QVERIFY(window.session().files().isBusy());
    gate->release();
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("/nowhere does not exist")), kPatience);
  }
};

QTEST_MAIN(TestWindowFiles)
#include "tst_window_files.moc"
