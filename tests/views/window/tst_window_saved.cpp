// Saved sessions: the open state is restored here and on another machine, and a session that cannot be opened changes
// nothing.
#include <QFileInfo>

#include "tests/support/cli_process.h"
#include "tests/support/files_below.h"
#include "tests/support/hub_server.h"
#include "tests/support/session_window.h"
#include "tests/views/window/window_fixture.h"
#include "views/base/text.h"
#include "views/graph/view/graph_view.h"
#include "views/window/graph_area.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;
using test::HubServer;

namespace {

const QString kTinyLlama = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/tiny-llama");
constexpr const char* kSchema = R"("schema": "cleave.session/1")";

void write(const QString& file, const QByteArray& content) {
  QFile out(file);
  QVERIFY(out.open(QIODevice::WriteOnly));
  QCOMPARE(out.write(content), content.size());
}

/// Saves like File ▸ Save Session. Returns the file's content.
QByteArray saved(MainWindow& window, const QString& file) {
  window.session().save(file, window.graphArea().savedView());
  [&] { QTRY_VERIFY_WITH_TIMEOUT(!window.session().files().isBusy(), kPatience); }();
  return test::contentOf(file);
}

void solveWith(MainWindow& window, const std::function<void(Settings&)>& change) {
  change(window.session().settings());
  window.session().solve();
  settle(window);
}

}  // namespace

class TstWindowSaved : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;
  QString file(const char* name) const { return m_folder.filePath(QLatin1String(name)); }

  /// A session that is opened in a new window and saved again gives the same file.
  void opensAsItWas(const QByteArray& text, const QString& from) {
    SessionWindow again;
    again.show();
    again.openPath(from);
    QTRY_VERIFY_WITH_TIMEOUT(again.session().opened().model(), kPatience);
    settle(again);
    QCOMPARE(QString::fromUtf8(saved(again, file("again.cleave"))), QString::fromUtf8(text));
  }

  /// Opens a session of two plans. Returns when its model is open and the plans are still missing.
  static void beginToOpen(SessionWindow& window, const QString& session) {
    write(session, QByteArray("{") + kSchema +
                       R"(, "model": {"sample": "one-kv-head"}, "settings": {"arguments": []},
             "branches": [{"arguments": []}, {"arguments": ["--ranks", "4"]}]})");
    window.show();
    window.openPath(session);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().opened().model(), kPatience);
  }

 private slots:
  void everythingStandsAgainAsItWasLeft() {
    SessionWindow window;
    window.show();
    Session& session = window.session();
    window.openPath(kTinyLlama);
    settle(window);
    solveWith(window, [](Settings& settings) { settings.setEngine(solve::Engine::Reference); });
    session.plans().keepBranch();
    QVERIFY(session.settings().addPin(QStringLiteral("lm_head=replicated")));
    settle(window);
    session.settings().setRanks(4);  // set but not solved yet
    QCOMPARE(session.plans().branches().size(), 2u);
    session.debugger().addBreakpoint({.type = solve::EventType::Try, .placement = rules::Placement::split(2)});
    const auto node = session.opened().graph()->value(session.opened().graph()->findValue("linear_3")).producer;
    session.debugger().toggleBreakpoint(node);
    QVERIFY(window.graphArea().expand(QStringLiteral("model.layers.0")));
    window.graphArea().setColorBy(ColorBy::Memory);
    session.debugger().seek(17);
    settle(window);
    session.selection().focusNode(node);
    settle(window);
    const QByteArray text = saved(window, file("all.cleave"));
    QVERIFY2(text.contains(kSchema), text.constData());

    SessionWindow again;
    again.show();
    again.openPath(file("all.cleave"));
    QTRY_COMPARE_WITH_TIMEOUT(again.session().plans().branches().size(), 2u, kPatience);
    settle(again);
    QCOMPARE(again.session().debugger().state()->step, 17u);
    QCOMPARE(again.session().selection().focus().node, node);
    QCOMPARE(again.session().settings().spec().ranks, 4);
    QVERIFY(again.session().plans().isOutdated());
    QCOMPARE(again.session().plans().shownBranch(), 1u);
    QCOMPARE(again.session().plans().branches()[1].label, session.plans().branches()[1].label);
    QVERIFY(again.session().debugger().hasBreakpoint(node));
    QCOMPARE(again.session().debugger().breakpoints().size(), 2u);
    QCOMPARE(again.graphArea().colorBy(), ColorBy::Memory);
    QCOMPARE(again.graphArea().view().expandedScopes(), window.graphArea().view().expandedScopes());
    QVERIFY(!again.session().undoStack().canUndo());
    QCOMPARE(saved(again, file("all-again.cleave")), text);
  }

  void whateverIsOpenIsSavedAndOpened_data() {
    QTest::addColumn<QString>("source");
    const auto row = [](const char* name, const QString& source) { QTest::newRow(name) << source; };
    row("a sample", QStringLiteral("sample:one-kv-head"));
    row("a folder with other inputs", kTinyLlama);
    row("an exported program", QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/exported/bert-dynamic.pt2"));
    row("an encoder", QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/families/bert"));
    row("a plan", QStringLiteral("plan"));
    row("a recorded search", QStringLiteral("trace"));
  }
  void whateverIsOpenIsSavedAndOpened() {
    QFETCH(QString, source);
    SessionWindow window;
    window.show();
    Session& session = window.session();
    if (source == QLatin1String("plan") || source == QLatin1String("trace")) {
      const QString made = file(source == QLatin1String("plan") ? "made.plan.json" : "made.trace");
      const auto planned = test::cli({"plan", kTinyLlama, "--ranks", "2", "--engine", "reference", "--json",
                                      file("made.plan.json"), "--trace", file("made.trace")});
      QCOMPARE(planned.exitCode, 0);
      source = made;
    }
    if (source.startsWith(QLatin1String("sample:"))) {
      for (const pipeline::Sample& sample : *window.samples())
        if (toQ(sample.name) == source.mid(7)) session.openSample(sample);
    } else {
      window.openPath(source);
    }
    QTRY_VERIFY_WITH_TIMEOUT(session.opened().model(), kPatience);
    settle(window);
    if (source == kTinyLlama) {
      spec::InputSpec capture = session.opened().input();
      capture.batch = 3;
      capture.sequence = 24;
      capture.loss = false;
      capture.dtype = graph::DType::BFloat16;
      session.recapture(capture);
      settle(window);
    }
    const QByteArray first = saved(window, file("any.cleave"));
    opensAsItWas(first, file("any.cleave"));
    // With a second branch.
    solveWith(window, [](Settings& settings) { settings.setRanks(3); });
    const QByteArray second = saved(window, file("any.cleave"));
    QVERIFY(first != second);
    opensAsItWas(second, file("any.cleave"));
  }

  void aModelFromTheHubIsFoundByItsName() {
    HubServer server;
    QTemporaryDir here, there;
    QVERIFY2(server.isUp(), "python3 is needed to serve models");
    server.addFolder(QStringLiteral("org/tiny"), kTinyLlama);
    server.becomeTheHub(here.path());
    SessionWindow window;
    window.show();
    window.openPath(QStringLiteral("org/tiny"));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan(), kPatience);
    settle(window);
    const QByteArray text = saved(window, file("hub.cleave"));
    QVERIFY2(text.contains("\"hub\": \"org/tiny@"), text.constData());
    QVERIFY2(!text.contains(here.path().toUtf8()), text.constData());
    server.becomeTheHub(there.path());
    opensAsItWas(text, file("hub.cleave"));
  }

  void aModelThatMovedWithItsSessionIsFound() {
    QTemporaryDir work;
    const QString before = work.filePath(QStringLiteral("before")), after = work.filePath(QStringLiteral("after"));
    QVERIFY(QDir().mkpath(before + QStringLiteral("/model")));
    for (const QFileInfo& each : QDir(kTinyLlama).entryInfoList(QDir::Files))
      QVERIFY(QFile::copy(each.filePath(), before + QStringLiteral("/model/") + each.fileName()));
    {
      SessionWindow window;
      window.show();
      window.openPath(before + QStringLiteral("/model"));
      QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan(), kPatience);
      settle(window);
      QVERIFY(!saved(window, before + QStringLiteral("/work.cleave")).isEmpty());
    }
    QVERIFY(QDir().rename(before, after));
    SessionWindow window;
    window.show();
    window.openPath(after + QStringLiteral("/work.cleave"));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan(), kPatience);
    settle(window);
    QCOMPARE(window.session().opened().source(), after + QStringLiteral("/model"));

    QVERIFY(QDir(after + QStringLiteral("/model")).removeRecursively());
    const auto model = window.session().opened().model();
    window.openPath(after + QStringLiteral("/work.cleave"));
    QTRY_VERIFY_WITH_TIMEOUT(message(window).contains(QStringLiteral("which does not exist")), kPatience);
    QVERIFY2(message(window).contains(QStringLiteral("Restore it")), qPrintable(message(window)));
    QCOMPARE(window.session().opened().model(), model);
  }

  void aFileThatIsNoneLeavesWhatIsOpen_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* name, const char* body, const char* said) {
      QTest::newRow(name) << QByteArray("{") + kSchema + ", " + body + "}" << QString::fromUtf8(said);
    };
    QTest::newRow("another version") << QByteArray(R"({"schema": "cleave.session/9"})")
                                     << QStringLiteral("this version of Cleave reads cleave.session/1");
    row("no model", R"("settings": {"arguments": []})", "model is missing");
    row("no such sample", R"("model": {"sample": "none"}, "settings": {"arguments": []})", "does not have");
    row("no arguments", R"("model": {"sample": "one-kv-head"}, "settings": {})", "settings.arguments is missing");
    row("no flags", R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": ["--rank", "2"]})",
        "settings.arguments: \"--rank\" is not a flag here");
    row("no engine", R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": ["--engine", "magic"]})",
        "settings.arguments: --engine is \"magic\"");
    row("another file",
        R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": ["--device-profile", "/etc/x"]})", "bundled");
    row("three branches", R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": []}, "branches": [1, 2, 3])",
        "a list of at most 2 items");
    row("two captures",
        R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": ["--seq", "16"]},
           "branches": [{"arguments": ["--seq", "16"]}, {"arguments": ["--seq", "32"]}])",
        "branches[1].arguments and settings capture the model differently");
    row("itself", R"("model": {"path": "/", "beside": "bad.cleave"}, "settings": {"arguments": []})",
        "which is a session itself");
    row("no event",
        R"("model": {"sample": "one-kv-head"}, "settings": {"arguments": []}, "breakpoints": [{"event": "never"}])",
        "breakpoints[0].event is \"never\"");
  }
  void aFileThatIsNoneLeavesWhatIsOpen() {
    QFETCH(QByteArray, content);
    QFETCH(QString, said);
    SessionWindow window;
    openModel(window);
    const auto before = window.session().opened().model();
    const auto plan = window.session().plans().plan();
    write(file("bad.cleave"), content);
    window.openPath(file("bad.cleave"));
    QTRY_VERIFY2_WITH_TIMEOUT(message(window).contains(said), qPrintable(message(window)), kPatience);
    QCOMPARE(window.session().opened().model(), before);
    QCOMPARE(window.session().plans().plan(), plan);
  }

  void whatTheModelDoesNotHaveIsLeftOut() {
    write(file("other.cleave"), QByteArray("{") + kSchema +
                                    R"(, "model": {"sample": "one-kv-head"}, "settings": {"arguments": []},
             "step": 9223372036854775807, "focus": {"value": "no_such"}, "unfolded": ["no.module"],
             "colours": "pink", "breakpoints": [{"value": "no_such"}, {"event": "conflict"}]})");
    SessionWindow window;
    window.show();
    window.openPath(file("other.cleave"));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan(), kPatience);
    settle(window);
    QCOMPARE(window.session().debugger().breakpoints().size(), 1u);
    QVERIFY2(message(window).contains(QStringLiteral("does not have the values of 1 breakpoint")),
             qPrintable(message(window)));
    QCOMPARE(window.session().debugger().wantedStep(), window.session().debugger().stepCount());
  }

  /// A branch that cannot be solved is missing, the others are restored, and the file is not overwritten without a
  /// question.
  void whatCannotBeMadeAgainIsMissed() {
    write(file("missed.cleave"),
          QByteArray("{") + kSchema +
              R"(, "model": {"sample": "one-kv-head"}, "settings": {"arguments": ["--ranks", "4"]},
             "branches": [{"arguments": ["--pin", "nothing_such=R"]}, {"arguments": ["--ranks", "4"]}], "shown": 1})");
    SessionWindow window;
    window.show();
    QString restored = QStringLiteral("none");
    connect(&window.session(), &Session::sessionRestored, this, [&](const QString& from) { restored = from; });
    window.openPath(file("missed.cleave"));
    QTRY_VERIFY_WITH_TIMEOUT(restored != QStringLiteral("none"), kPatience);
    settle(window);
    QVERIFY(restored.isEmpty());
    QCOMPARE(window.session().plans().branches().size(), 1u);
    QCOMPARE(window.session().plans().plan()->spec.ranks, 4);
    QVERIFY2(message(window).contains(QStringLiteral("could not be rebuilt")), qPrintable(message(window)));
  }

  void aSearchKeepsItsStep() {
    QCOMPARE(test::cli({"plan", kTinyLlama, "--engine", "reference", "--trace", file("steps.trace")}).exitCode, 0);
    SessionWindow window;
    window.show();
    window.openPath(file("steps.trace"));
    QTRY_VERIFY_WITH_TIMEOUT(window.session().debugger().trace(), kPatience);
    settle(window);
    window.session().debugger().seek(9);
    settle(window);
    opensAsItWas(saved(window, file("steps.cleave")), file("steps.cleave"));
    QVERIFY(test::contentOf(file("steps.cleave")).contains("\"step\": 9"));
  }

  void whatTheUserSolvesMeanwhileCounts() {
    SessionWindow window;
    beginToOpen(window, file("interrupted.cleave"));
    window.session().settings().setRanks(8);
    window.session().solve();
    QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.session().plans().plan()->spec.ranks == 8,
                             kPatience);
    settle(window);
    QCOMPARE(window.session().settings().spec().ranks, 8);
  }

  void anotherModelThatIsOpenedMeanwhileIsTheOneThatStays() {
    SessionWindow window;
    beginToOpen(window, file("meanwhile.cleave"));
    window.openPath(kTinyLlama);
    QTRY_VERIFY_WITH_TIMEOUT(window.session().opened().source() == kTinyLlama && window.session().plans().plan(),
                             kPatience);
    settle(window);
    QCOMPARE(window.session().plans().branches().size(), 1u);
  }

  void theCommandLineSaysWhereSessionsAreOpened() {
    write(file("cli.cleave"),
          QByteArray("{") + kSchema + R"(, "model": {"sample": "one-kv-head"}, "settings": {"arguments": []}})");
    const auto planned = test::cli({"plan", file("cli.cleave")});
    QCOMPARE(planned.exitCode, 3);
    QVERIFY2(planned.err.contains("sessions are for the window, which `cleave FILE` opens"), planned.err.constData());
  }
};

QTEST_MAIN(TstWindowSaved)
#include "tst_window_saved.moc"
