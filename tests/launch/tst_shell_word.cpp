/// Quoting of words in printed commands, checked by a real shell.
#include "launch/shell_word.h"

#include "tests/support/patience.h"

#include <QProcess>
#include <QTest>

using namespace cleave;

class TestShellWord : public QObject {
  Q_OBJECT
 private slots:
  void aShellReadsAWordAsItWas() {
    for (const char* word :
         {"plain", "/a/path", "a b", "it's", "$HOME", "`id`", "a\"b", "*", "", "a\\b", "x;y", "#", "~", "ä"}) {
      QProcess shell;
      shell.start("sh", {"-c", "printf %s " + QString::fromStdString(shellWord(word))});
      QVERIFY(shell.waitForFinished(test::kPatience));
      QCOMPARE(shell.readAllStandardOutput(), QByteArray(word));
    }
    QCOMPARE(shellWord("/a/plain-path_1.json"), "/a/plain-path_1.json");
  }
};

QTEST_GUILESS_MAIN(TestShellWord)
#include "tst_shell_word.moc"
