/// Addresses, and the first lines between a rank and its listener. The listener is tested in launch/tst_listener.cpp.
#include "protocol/join.h"

#include <QTest>

#include <sys/socket.h>

#include <future>

using namespace cleave;
using namespace cleave::protocol;
using namespace std::chrono_literals;

class TestJoin : public QObject {
  Q_OBJECT

  /// The result of joinRun for a listener that sends this answer and closes.
  static QString answered(const std::string& answer) {
    HostPort at{"127.0.0.1", 0};
    const UniqueFd socket = std::move(*listenOn(at));
    auto rank = std::async(std::launch::async,
                           [at] { return joinRun(at, {.token = "0123456789abcdef", .rank = 1, .ranks = 2}, 20s); });
    int fd = -1;
    for (int i = 0; i < 2000 && fd < 0; ++i) {
      fd = ::accept(socket.get(), nullptr, nullptr);
      if (fd < 0) QTest::qSleep(10);
    }
    char line[512];
    if (::recv(fd, line, sizeof line, 0) <= 0) return "nothing was asked";
    ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
    rank.wait();
    ::close(fd);
    const auto joined = rank.get();
    return joined ? joined->wantsOutputs ? "welcome, wants outputs" : "welcome"
                  : QString::fromStdString(joined.error().message);
  }

 private slots:
  void readsAddresses_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("read");
    const auto row = [](const char* text, const char* read) { QTest::newRow(text) << QString(text) << QString(read); };
    row("node0:29500", "node0:29500");
    row("node0", "node0:7");
    row("10.0.0.1:1", "10.0.0.1:1");
    row("[fd00::1]:29500", "[fd00::1]:29500");
    row("[fd00::1]", "[fd00::1]:7");
    row("fd00::1", "[fd00::1]:7");
    for (const char* wrong : {"", ":29500", "29500", "node0:", "node0:0", "node0:65536", "node0:1x", "node0:-1",
                              "[fd00::1", "[fd00::1]x", "no de:1", "a;b:1", "http://node0:1", "u@node0:1"})
      row(wrong, "");
  }
  void readsAddresses() {
    QFETCH(QString, text);
    QFETCH(QString, read);
    const auto at = parseHostPort(text.toStdString(), "--listen", 7);
    QCOMPARE(at ? QString::fromStdString(toText(*at)) : QString(), read);
    if (!at) QVERIFY(at.error().message.starts_with("--listen is"));
    if (at && at->port == 7) QVERIFY(!parseHostPort(text.toStdString(), "--listen"));
  }

  void knowsItsOwnAddress() {
    QCOMPARE(ownAddressTowards("127.0.0.1").value_or(""), "127.0.0.1");
    QVERIFY(!ownAddressTowards("no-such-host.invalid"));
  }

  void whatIsSaidIsRead() {
    const Join join{7, "0123456789abcdef", 3, 4};
    const auto read = decodeJoin(encode(join));
    QVERIFY(read && read->version == 7 && read->token == join.token && read->rank == 3 && read->ranks == 4);
    const auto welcome = decodeAnswer(encode(Answer{.wantsOutputs = true, .silence = std::chrono::seconds(7)}));
    QVERIFY(welcome && welcome->wantsOutputs && welcome->silence == std::chrono::seconds(7));
    QCOMPARE(decodeAnswer(encode(Answer{.wantsOutputs = true, .refusal = "No."}))->refusal, "No.");
  }

  void whatIsNotSaidSoIsRefused() {
    for (const char* line :
         {"", "{}", "[]", "{\"type\":\"welcome\"}", "{\"type\":\"join\",\"version\":2,\"rank\":0,\"ranks\":1}",
          "{\"type\":\"join\",\"version\":2,\"rank\":0,\"ranks\":1e99,\"token\":\"\"}"})
      QVERIFY2(!decodeJoin(line), line);
    for (const char* line : {"", "{}", "[]", "{\"type\":\"join\"}", "{\"type\":\"refused\"}",
                             "{\"type\":\"refused\",\"why\":\"\"}", "{\"type\":\"welcome\",\"wants_outputs\":1}"})
      QVERIFY2(!decodeAnswer(line), line);
    QVERIFY(!decodeJoin("{\"type\":\"join\",\"token\":\"" + std::string(2000, 'x') + "\"}"));
  }

  void anotherServerIsNotAListener_data() {
    QTest::addColumn<QString>("answer");
    QTest::addColumn<QString>("said");
    const QString cannot = "Rank 1 cannot report to 127.0.0.1:";
    QTest::newRow("welcome") << "{\"type\":\"welcome\",\"wants_outputs\":true}\n"
                             << "welcome, wants outputs";
    QTest::newRow("refused") << "{\"type\":\"refused\",\"why\":\"Go away.\"}\n"
                             << "The listener at 127.0.0.1:";
    QTest::newRow("another server") << "220 mail.example ESMTP\r\n" << cannot;
    QTest::newRow("goes at once") << "" << cannot;
    QTest::newRow("never ends") << QString(5000, 'x') << cannot;
  }
  void anotherServerIsNotAListener() {
    QFETCH(QString, answer);
    QFETCH(QString, said);
    const QString got = answered(answer.toStdString());
    QVERIFY2(got.startsWith(said), qPrintable(got));
  }

  void nobodyThereIsSaidInTime() {
    HostPort at{"127.0.0.1", 0};
    std::move(*listenOn(at)).reset();
    const auto joined = joinRun(at, {.token = "0123456789abcdef"}, 300ms);
    QVERIFY(!joined);
    QCOMPARE(joined.error().code, ErrorCode::Environment);
    QVERIFY2(joined.error().message.find("Connection refused") != std::string::npos, joined.error().message.c_str());
  }

  /// A batch script starts both at once.
  void whoListensMayComeLater() {
    HostPort at{"127.0.0.1", 0};
    std::move(*listenOn(at)).reset();
    auto connecting = std::async(std::launch::async, [at] { return connectTo(at, 20s).has_value(); });
    QTest::qSleep(300);
    const auto late = listenOn(at);
    QVERIFY(late);
    QVERIFY(connecting.get());
  }
};

QTEST_GUILESS_MAIN(TestJoin)
#include "tst_join.moc"
