/// Texts for other programs: bytes as base64, lines on a terminal.
#include "base/base64.h"
#include "base/terminal_text.h"

#include <QByteArray>
#include <QTest>

using namespace cleave;

class TestTextForms : public QObject {
  Q_OBJECT
 private slots:
  void base64IsWhatOthersMakeOfIt() {
    std::string bytes;
    for (int size = 0; size < 70; ++size) {
      const std::string text = toBase64(bytes);
      QCOMPARE(QByteArray::fromStdString(text), QByteArray::fromStdString(bytes).toBase64());
      QVERIFY(fromBase64(text) == bytes);
      bytes += static_cast<char>(size * 37);
    }
  }

  void whatIsNoBase64IsRefused() {
    for (const char* text :
         {"a", "ab", "abc", "ab=c", "====", "a===", "ab c", "\xff\xff\xff\xff", "AB==CD==", "AB==", "ABC=\n", "ABF="})
      QVERIFY2(!fromBase64(text), text);
    QVERIFY(fromBase64("AA==") == std::string(1, '\0'));
  }

  void aTerminalIsGivenNoCommands() {
    QCOMPARE(terminalText("plain, ä and 日本\n\ttabs"), "plain, ä and 日本\n\ttabs");
    QCOMPARE(terminalText("\x1b[31mred\x07\x7f\r"), "\\x1b[31mred\\x07\\x7f\\x0d");
    QCOMPARE(terminalText("\xc2\x9b"
                          "31m \xc2\xa0"),
             "\\x9b31m \xc2\xa0");
    QCOMPARE(terminalText(std::string("a\0b", 3)), "a\\x00b");
  }
};

QTEST_GUILESS_MAIN(TestTextForms)
#include "tst_text_forms.moc"
