// Scripts: accepted lines, the line of an error, and a window driven through a real model.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>
#include <set>

#include "tests/support/files_below.h"
#include "tests/support/rows.h"
#include "tests/support/session_window.h"
#include "views/base/text.h"
#include "views/window/script.h"
#include "views/window/script_manual.h"
#include "views/window/script_verbs.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

namespace {

/// The lines of the fenced blocks without a language, as one script for each block.
QStringList scriptsIn(const QByteArray& document) {
  QStringList scripts;
  const QStringList blocks = QString::fromUtf8(document).split(QStringLiteral("```"));
  for (qsizetype i = 1; i < blocks.size(); i += 2)
    if (blocks[i].startsWith(QLatin1Char('\n'))) scripts << blocks[i];
  return scripts;
}

QByteArray documentNamed(const char* name) {
  return test::contentOf(QStringLiteral(CLEAVE_SOURCE_DIR "/docs/") + QLatin1String(name));
}

}  // namespace

class TestScript : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }
  void namesTheLineOfWhatItCannotRead_data();
  void namesTheLineOfWhatItCannotRead();
  void saysWhatToWrite_data();
  void saysWhatToWrite();
  void everyRowIsComplete();
  void theDocumentIsMadeFromTheTable();
  void everyVerbIsDocumentedWithAnExample();
  void everyScriptOfTheRepositoryParses();
  void readsCommandsBetweenComments();
  void readsEachArgument();
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
  row("no optimizer", "run optimizer=none", "Training needs an optimizer that changes parameters");
}

void TestScript::namesTheLineOfWhatItCannotRead() {
  QFETCH(QString, script);
  QFETCH(QString, phrase);
  const auto parsed = parseScript(script);
  QVERIFY(!parsed);
  QCOMPARE(exitCode(parsed.error().code), 2);
  QVERIFY2(toQ(parsed.error().message).contains(phrase), parsed.error().message.c_str());
}

void TestScript::saysWhatToWrite_data() {
  QTest::addColumn<QString>("line");
  QTest::addColumn<QString>("sentence");
  const auto row = [](const char* line, const char* sentence) {
    QTest::newRow(line) << QString::fromUtf8(line) << QString::fromUtf8(sentence);
  };
  row("slove", "\"slove\" is not a command; the nearest is solve.");
  row("frobnicate", "\"frobnicate\" is not a command; cleave --script-manual lists the commands.");
  row("open", "open has no PATH: write \"open PATH\".");
  row("compare 1", "compare has no M: write \"compare N M\".");
  row("why-not lm_head", "why-not has no PLACEMENT|STRATEGY: write \"why-not VALUE PLACEMENT|STRATEGY\".");
  row("bisect now", "\"now\" is not an argument of bisect: write \"bisect\".");
  row("compare 1 2 3", "\"3\" is not an argument of compare: write \"compare N M\".");
  row("shot x as open-hub", "\"as open-hub\" is not an argument of shot: write \"shot NAME [of ACTION [ROW]]\".");
  row("colour time",
      "\"time\" is not an argument of colour: write \"colour by=axis|regret|time|memory|traffic|error\".");
  row("theme pink", "theme dark|light is \"pink\": write dark or light.");
  row("colour by=pink",
      "colour by=axis|regret|time|memory|traffic|error is \"pink\": write axis, regret, time, memory, traffic or "
      "error.");
  row("remedy 0", "remedy N is \"0\": write a whole number from 1 to 99.");
  row("wait long", "wait MILLISECONDS is \"long\": write a whole number from 0 to 999999.");
  row("step many", "step +1|-1|N is \"many\": write the number of a step, or a difference such as +1 or -1.");
  row("step 99999999999999999999",
      "step +1|-1|N is \"99999999999999999999\": write the number of a step, or a difference such as +1 or -1.");
  row("resize 1280", "resize WxH is \"1280\": write a width and a height from 10 to 9999 pixels, such as 1440x900.");
  row("shot ../x", "shot NAME is \"../x\": write a file name without a folder.");
  row("picture graph.gif",
      "picture NAME.svg|pdf|png is \"graph.gif\": write a file name without a folder that ends in .svg, .pdf or .png.");
  row("save-session .cleave",
      "save-session NAME.cleave is \".cleave\": write a file name without a folder that ends in .cleave.");
  row("pin lm_head",
      "pin SPEC is \"lm_head\": write NAME=S(1) or NAME=R for a value, or LAYER=column for a layer; != forbids, and * "
      "matches.");
  row("why-not lm_head sideways",
      "why-not PLACEMENT|STRATEGY is \"sideways\": write a placement such as R or S(1), or a strategy such as column.");
  row("solve enigne=optimal", "\"enigne\" is not a setting; the nearest is engine.");
  row("solve colour=red", "\"colour\" is not a setting; cleave --script-manual lists the settings.");
  row("solve dropout", "solve KEY=VALUE is \"dropout\": write a setting and its value, such as ranks=2.");
  row("solve engine=magic", "engine=magic is not valid. Write optimal, reference or learning.");
  row("solve budget=big", "budget=big is not valid. Write a size such as 40GiB or 42949672960, or none.");
  row("solve ranks=0", "ranks=0 is not valid. Use 1 to 1024 ranks.");
  row("run bakend=gloo", "\"bakend\" is not a setting; the nearest is backend.");
  row("run backend=mpi", "backend=mpi is not valid. Write auto, nccl or gloo.");
  row("set-run lr=0", "lr=0 is not valid. --lr is 0; it must be a finite number above 0.");
}

void TestScript::saysWhatToWrite() {
  QFETCH(QString, line);
  QFETCH(QString, sentence);
  const auto parsed = parseScript(QStringLiteral("wait\n") + line);
  QVERIFY(!parsed);
  QCOMPARE(exitCode(parsed.error().code), 2);
  QCOMPARE(toQ(parsed.error().message), QStringLiteral("line 2: ") + sentence);
}

void TestScript::everyRowIsComplete() {
  QSet<QString> names;
  for (const ScriptVerb& verb : scriptVerbs()) {
    const char* const name = verb.name.c_str();
    QVERIFY2(!names.contains(toQ(verb.name)), name);
    names << toQ(verb.name);
    QCOMPARE(findVerb(verb.name), &verb);
    QVERIFY2(verb.perform && !verb.section.empty(), name);
    QVERIFY2(!verb.help.empty() && !verb.help.ends_with('.'), name);
    // The parser fills arguments from the left, and only the last one may have spaces.
    for (std::size_t i = 0; i + 1 < verb.arguments.size(); ++i) {
      QVERIFY2(verb.arguments[i].isRequired || !verb.arguments[i + 1].isRequired, name);
      QVERIFY2(!verb.arguments[i].form.hasSpaces && !verb.arguments[i].isRepeated, name);
    }
  }
  QCOMPARE(findVerb("frobnicate"), nullptr);
}

void TestScript::theDocumentIsMadeFromTheTable() {
  const QByteArray made = QByteArray::fromStdString(scriptManual());
  if (qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
    QFile file(QStringLiteral(CLEAVE_SOURCE_DIR "/docs/scripts.md"));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(made) == made.size());
    return;
  }
  QVERIFY2(documentNamed("scripts.md") == made,
           "docs/scripts.md differs from `cleave --script-manual`; CLEAVE_UPDATE_CASES=1 rewrites it");
}

void TestScript::everyVerbIsDocumentedWithAnExample() {
  static const QRegularExpression kRow("^\\| `([a-z-]+)[^`]*` \\| .* \\| `([^`]+)` \\|$",
                                       QRegularExpression::MultilineOption);
  std::set<std::string> documented;
  auto rows = kRow.globalMatch(QString::fromUtf8(documentNamed("scripts.md")));
  while (rows.hasNext()) {
    const auto row = rows.next();
    const QString example = row.captured(2).replace(QStringLiteral("\\|"), QStringLiteral("|"));
    const auto parsed = parseScript(example);
    QVERIFY2(parsed && parsed->size() == 1, qPrintable(example));
    QCOMPARE(toQ(parsed->front().verb->name), row.captured(1));
    documented.insert(parsed->front().verb->name);
  }
  for (const ScriptVerb& verb : scriptVerbs()) QVERIFY2(documented.contains(verb.name), verb.name.c_str());
  QCOMPARE(documented.size(), scriptVerbs().size());
}

void TestScript::everyScriptOfTheRepositoryParses() {
  QStringList scripts{QString::fromUtf8(test::contentOf(QStringLiteral(CLEAVE_SOURCE_DIR "/resources/tour.script")))};
  scripts << scriptsIn(documentNamed("scripts.md"));
  for (const QString& block : scriptsIn(documentNamed("running.md")))
    if (block.startsWith(QLatin1String("\nopen "))) scripts << block;
  for (const QString& script : scripts) {
    const auto parsed = parseScript(script);
    QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().message.c_str());
  }
  QCOMPARE(scripts.size(), 3);
}

void TestScript::readsEachArgument() {
  const auto parsed = parseScript(QStringLiteral(
      "compare 1   2\nshot a\nshot a of open-hub\nshot a of export-plan tp-plan\nsearch\nwhy-not lm_head "
      "S(1)\nwait\ncolour by=time\npicture a b.svg\nsolve\nrun steps=2  lr=1\n"));
  QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().message.c_str());
  const std::vector<QStringList> wanted{{"1", "2"},
                                        {"a", "", ""},
                                        {"a", "open-hub", ""},
                                        {"a", "export-plan", "tp-plan"},
                                        {""},
                                        {"lm_head", "S(1)"},
                                        {""},
                                        {"time"},
                                        {"a b.svg"},
                                        {""},
                                        {"steps=2  lr=1"}};
  QCOMPARE(parsed->size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) QCOMPARE((*parsed)[i].values, wanted[i]);
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
  row("no such panel", "open MODEL\npanel Nowhere");
  row("no branch B", "open MODEL\nbranch B");
  row("no conflict", "open MODEL\nsolve engine=optimal\nwait\nnext-conflict");
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
