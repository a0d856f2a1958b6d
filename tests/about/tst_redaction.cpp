/// Redaction removes secrets and identifying names from a text.
#include "about/redaction.h"

#include <QTest>

using cleave::about::namesSecret;
using cleave::about::Redaction;

namespace {

const Redaction kOfAda(
    {.secrets = {"correct horse"}, .homes = {"/home/ada"}, .users = {"ada"}, .hosts = {"engine.example", "engine"}});

}  // namespace

class TestRedaction : public QObject {
  Q_OBJECT
 private slots:
  void removes_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("shown");
    const auto row = [](const char* name, const char* text, const char* shown) {
      QTest::newRow(name) << QString::fromUtf8(text) << QString::fromUtf8(shown);
    };
    row("nothing", "Rank 1 ended with code 3.", "Rank 1 ended with code 3.");
    row("a path", "cannot read /home/ada/models/llama: no such file", "cannot read ~/…: no such file");
    row("a path with blanks", "opens /home/ada/my models/llama now", "opens ~/… now");
    row("a path in quotes", R"("source":"/home/ada/my secret","ranks":2)", R"("source":"~/…","ranks":2)");
    row("two paths", "/home/ada/a and /home/ada/b", "~/… and ~/…");
    row("the home itself", "HOME=/home/ada", "HOME=~/…");
    row("another's path", "/home/adam/x", "/home/adam/x");
    row("a path of the system", "/usr/share/cleave/models", "/usr/share/cleave/models");
    row("a URL of a file", "file:///home/ada/x", "file://~/…");
    row("a secret", "says correct horse battery", "says [removed] battery");
    row("a token by its form", "token hf_abcdefghijklmnop.", "token [removed]");
    row("a header", "Authorization: Bearer abc.def-ghi=", "Authorization: [removed]");
    row("a URL with a password", "https://ada:pass@hub.example/x", "https://[removed]@hub.example/x");
    row("a URL with a query", "https://hub.example/x?token=abc", "https://hub.example/x?[removed]");
    row("a user", "owned by ada, of adamant", "owned by USER, of adamant");
    row("a host", "engine.example:29500 and engine, not engines", "HOST:29500 and HOST, not engines");
  }
  void removes() {
    QFETCH(QString, text);
    QFETCH(QString, shown);
    QCOMPARE(QString::fromStdString(kOfAda(text.toStdString())), shown);
  }

  void knowsSecretsByTheirVariables() {
    for (const char* name : {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "my_password", "CLEAVE_RUN_TOKEN", "API_KEY"})
      QVERIFY2(namesSecret(name), name);
    for (const char* name : {"HOME", "QT_QPA_PLATFORM", "CUDA_VISIBLE_DEVICES"}) QVERIFY2(!namesSecret(name), name);
  }
};

QTEST_GUILESS_MAIN(TestRedaction)
#include "tst_redaction.moc"
