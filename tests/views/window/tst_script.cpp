// Scripts: accepted lines, the line of an error, and a window driven through a real model.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/files_below.h"
#include "tests/support/rows.h"
#include "tests/support/session_window.h"
#include "views/base/text.h"
#include "views/window/script.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

class TestScript : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }
  void namesTheLineOfWhatItCannotRead_data();
  void namesTheLineOfWhatItCannotRead();
  void readsCommandsBetweenComments();
  void drivesTheWindow();
  void failsAtTheLineThatFailed_data();
  void failsAtTheLineThatFailed();
  void theTourTakesThePicturesOfTheDocuments();
};

void TestScript::namesTheLineOfWhatItCannotRead_data() {
  const cleave::test::Rows<QString, QString> row("script", "phrase");
  row("unknown", "wait\nfrobnicate now", "line 2: \"frobnicate\"");
  row("missing argument", "open", "open PATH");
  row("surplus argument", "\n\nwait long", "line 3");
  row("bad theme", "theme pink", "theme dark|light");
  row("bad size", "resize 1280", "resize WxH");
  row("bad step", "step many", "step +1|-1|N");
  row("bad engine", "solve engine=magic", "engine=magic");
  row("bad ranks", "solve ranks=0", "ranks=0");
  row("bad backend", "run backend=mpi", "backend=mpi");
  row("shot out of its folder", "shot ../x", "../x");
  row("pin without a placement", "pin lm_head", "pin SPEC");
}

void TestScript::namesTheLineOfWhatItCannotRead() {
  QFETCH(QString, script);
  QFETCH(QString, phrase);
  const auto parsed = parseScript(script);
  QVERIFY(!parsed);
  QCOMPARE(exitCode(parsed.error().code), 2);
  QVERIFY2(toQ(parsed.error().message).contains(phrase), parsed.error().message.c_str());
}

void TestScript::readsCommandsBetweenComments() {
  const auto parsed =
      parseScript(QStringLiteral("# a comment\n\n  open  a folder \nsolve engine=reference ranks=2 "
                                 "sequence_parallel=on pin=lm_head=row lm_head!=column\nquit\n"));
  QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().message.c_str());
  QCOMPARE(parsed->size(), std::size_t(3));
  QCOMPARE((*parsed)[0].rest, QStringLiteral("a folder"));
  QCOMPARE((*parsed)[1].line, 4);
}

void TestScript::drivesTheWindow() {
  QTemporaryDir folder;
  const QString script =
      QStringLiteral(
          "open %1\nsolve engine=reference ranks=2\nwait\nselect linear_0\nexpand model.layers.0\nstep 3\nstep "
          "+1\nstep -1\nsearch op:linear\ntheme dark\nresize 1000x700\nshot one\nquit\nopen nowhere\n")
          .arg(QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  SessionWindow window;
  window.show();
  ScriptRunner runner(window, *parseScript(script), folder.path());
  QCOMPARE(runner.run(), 0);
  QCOMPARE(QImage(folder.filePath("one.png")).size(), QSize(1000, 700));
  QCOMPARE(window.session().debugger().wantedStep(), StepId(3));
  QVERIFY(window.session().plans().plan());
  QVERIFY(!window.session().selection().hits().empty());
}

void TestScript::failsAtTheLineThatFailed_data() {
  const cleave::test::Rows<QString> row("script");
  row("no such folder", "open /nowhere/at/all");
  row("no such sample", "sample none");
  row("no model", "solve");
  row("no such value", "open MODEL\nselect nothing_7");
  row("no such module", "open MODEL\nexpand model.layers.99");
  row("no such step", "open MODEL\nstep 100000000");
  row("a pin that matches nothing", "open MODEL\nwait\npin no.such.layer=row");
  row("no such action", "shot x of open-nothing");
  row("an action that is disabled", "shot x of export-plan");
  row("an action without a dialog", "open MODEL\nwait\nshot x of first");
  row("no such row", "open MODEL\nwait\nshot x of export-plan tp-plans");
}

void TestScript::failsAtTheLineThatFailed() {
  QFETCH(QString, script);
  script.replace(QStringLiteral("MODEL"), QStringLiteral(CLEAVE_TEST_DATA "/models/llama"));
  SessionWindow window;
  ScriptRunner runner(window, *parseScript(script), {});
  QCOMPARE(runner.run(), 1);
}

/// packaging/pictures takes one more picture, of an altered plan.
void TestScript::theTourTakesThePicturesOfTheDocuments() {
  const QString tour = QStringLiteral(CLEAVE_SOURCE_DIR "/resources/tour.script");
  QTemporaryDir folder;
  SessionWindow window;
  window.show();
  ScriptRunner runner(window, *parseScript(QString::fromUtf8(test::contentOf(tour))), folder.path(),
                      QFileInfo(tour).absolutePath());
  QCOMPARE(runner.run(), 0);
  const QByteArray taker = test::contentOf(QStringLiteral(CLEAVE_SOURCE_DIR "/packaging/pictures"));
  QStringList documents{QStringLiteral(CLEAVE_SOURCE_DIR "/README.md")};
  const QDir docs(QStringLiteral(CLEAVE_SOURCE_DIR "/docs"));
  for (const QString& name : docs.entryList({"*.md"}, QDir::Files)) documents << docs.filePath(name);
  static const QRegularExpression kPicture("\\(((?:\\.\\./)?resources/screenshots/([a-z-]+)\\.png)\\)");
  int pictures = 0;
  for (const QString& document : documents) {
    auto match = kPicture.globalMatch(QString::fromUtf8(test::contentOf(document)));
    for (; match.hasNext(); ++pictures) {
      const auto picture = match.next();
      const QString name = picture.captured(2);
      QVERIFY2(QFile::exists(QFileInfo(document).dir().filePath(picture.captured(1))), qPrintable(picture.captured(1)));
      const bool isTaken = QFile::exists(folder.filePath(name + QStringLiteral(".png")));
      QVERIFY2(isTaken || taker.contains("\nshot " + name.toUtf8() + "\n"), qPrintable(name));
    }
  }
  QVERIFY(pictures > 10);
}

QTEST_MAIN(TestScript)
#include "tst_script.moc"
