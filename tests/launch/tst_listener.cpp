/// Ranks that join over the network, correct and faulty ones, and other connections. All of them are this test's own
/// connections; tst_cli_listen.cpp and tst_two_hosts.cpp use real ranks.
#include "launch/listener.h"
#include "protocol/rank_side.h"
#include "tests/support/rows.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <poll.h>
#include <sys/socket.h>

#include <future>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 60s;  // for a busy machine; not a measurement

/// True if the other side closes the connection in time. Its data is dropped.
bool isEnded(int fd) {
  char bytes[512];
  pollfd waiting{fd, POLLIN, 0};
  while (::poll(&waiting, 1, std::chrono::milliseconds(kPatience).count()) > 0) {
    if (::recv(fd, bytes, sizeof bytes, 0) <= 0) return true;
  }
  return false;
}

/// A listener that follows a run on a separate thread.
struct RemoteRanks {
  explicit RemoteRanks(FollowRequest request) : listener(std::move(*Listener::open({"127.0.0.1", 0}))) {
    request.notice = [this](const std::string& sentence) { notices << QString::fromStdString(sentence); };
    outcome = std::async(std::launch::async, [this, request] {
      return listener.follow(
          request, [this](const RankEvent& event) { events.push_back(event); }, Progress(stop.get_token()));
    });
  }
  ~RemoteRanks() { stop.request_stop(); }

  /// Connects as this rank.
  Result<Joined> join(int rank, int ranks = 2, const std::string& token = {}, int version = kProtocolVersion) {
    return joinRun(listener.address(), {version, token.empty() ? listener.token() : token, rank, ranks}, kPatience);
  }
  UniqueFd rank(int number, int ranks = 2) {
    auto joined = join(number, ranks);
    if (!joined) qFatal("%s", joined.error().message.c_str());
    return std::move(joined->connection);
  }
  UniqueFd unjoined() { return std::move(*connectTo(listener.address(), kPatience)); }
  /// "rank 1: reported an error: no such tensor"; "succeeded".
  QString said() {
    if (outcome.wait_for(kPatience) != std::future_status::ready) return "it hangs";
    const auto& result = outcome.get();
    if (!result) return QString::fromStdString(result.error().message);
    if (result->succeeded) return "succeeded";
    const RankExit& failure = *result->firstFailure;
    return QString::fromStdString(fmt::format("rank {}: {}: {}", failure.rank, failure.what, failure.lastMessage));
  }

  Listener listener;
  std::stop_source stop;
  QStringList notices;            // read after the run has ended
  std::vector<RankEvent> events;  // read after the run has ended
  std::future<Result<RunOutcome>> outcome;
};

void send(const UniqueFd& fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::send(fd.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (put < 0) return;  // it may have been rejected already
    done += static_cast<std::size_t>(put);
  }
}
void send(const UniqueFd& fd, const Message& message) { send(fd, encode(message)); }

RankResult result(double loss) {
  RankResult made;
  made.loss = loss;
  made.hasLoss = true;
  return made;
}

}  // namespace

class TestListener : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

  std::filesystem::path path(const char* name) const { return m_folder.filePath(name).toStdString(); }

 private slots:
  void ranksMayComeInAnyOrder() {
    RemoteRanks run({.ranks = 3});
    std::vector<UniqueFd> ranks;
    for (const int number : {2, 0, 1}) {
      ranks.push_back(run.rank(number, 3));
      send(ranks.back(), Hello{kProtocolVersion, number, 4711, "cpu"});
    }
    for (const UniqueFd& rank : ranks) send(rank, result(1.5));
    ranks.clear();
    QCOMPARE(run.said(), "succeeded");
    QVERIFY(run.notices.isEmpty());
    QCOMPARE(std::ranges::count_if(run.events,
                                   [](const RankEvent& event) {
                                     return std::holds_alternative<RankResult>(*event.message) && event.rank >= 0;
                                   }),
             3);
  }

  void outputsComeOverTheConnection() {
    RemoteRanks run({.ranks = 2, .output = path("whole"), .deviation = path("own"), .maxOutputBytes = 1 << 20});
    QByteArray outputs(200'000, '\0');
    for (int i = 0; i < outputs.size(); ++i) outputs[i] = static_cast<char>(i * 7);
    QFile file(m_folder.filePath("sent"));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(outputs) == outputs.size());
    file.close();
    for (const int number : {0, 1}) {
      auto joined = run.join(number);
      QVERIFY(joined && joined->wantsOutputs);
      EventWriter writer(joined->connection.get());
      QVERIFY(writer.writeFile(path("sent")));
      writer.write(result(1.5));
    }
    QCOMPARE(run.said(), "succeeded");
    for (const char* name : {"whole", "own.1"}) {
      QFile got(m_folder.filePath(name));
      QVERIFY(got.open(QIODevice::ReadOnly));
      QVERIFY(got.readAll() == outputs);
    }
    for (const RankEvent& event : run.events) QVERIFY(!std::holds_alternative<OutputPart>(*event.message));
  }

  void nobodySendsOutputsThatAreNotWanted() {
    RemoteRanks run({.ranks = 1});
    const auto joined = run.join(0, 1);
    QVERIFY(joined && !joined->wantsOutputs);
  }

  void rejectedRanksDoNotStopTheRun_data() {
    const test::Rows<int, int, QString, int, QString> row("rank", "ranks", "token", "version", "words");
    row("another run", 1, 2, "0123456789abcdef", kProtocolVersion, "belongs to another run");
    row("here already", 0, 2, "", kProtocolVersion, "has already joined");
    row("beyond the last", 2, 2, "", kProtocolVersion, "rank 2 does not exist");
    row("before the first", -1, 2, "", kProtocolVersion, "rank -1 does not exist");
    row("another world", 1, 4, "", kProtocolVersion, "a run of 4 ranks, but the plan is for 2");
    row("another build", 1, 2, "", 99, "protocol version 99");
  }
  void rejectedRanksDoNotStopTheRun() {
    QFETCH(int, rank);
    QFETCH(int, ranks);
    QFETCH(QString, token);
    QFETCH(int, version);
    QFETCH(QString, words);
    RemoteRanks run({.ranks = 2});
    UniqueFd first = run.rank(0);
    const auto refused = run.join(rank, ranks, token.toStdString(), version);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::BadUsage);
    QVERIFY2(refused.error().message.find(words.toStdString()) != std::string::npos, refused.error().message.c_str());
    UniqueFd second = run.rank(1);
    for (UniqueFd* fd : {&first, &second}) {
      send(*fd, result(1.5));
      fd->reset();
    }
    QCOMPARE(run.said(), "succeeded");
    QCOMPARE(run.notices.size(), 1);
    QVERIFY2(run.notices.front().contains(words), qPrintable(run.notices.front()));
  }

  void otherConnectionsAreRejected_data() {
    const test::Rows<QByteArray> row("bytes");
    row("another protocol", "GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    row("an event", "{\"type\":\"heartbeat\"}\n");
    row("no fields", "{\"type\":\"join\"}\n");
    row("no end", QByteArray(100'000, 'x'));
    row("bytes", QByteArray(3000, '\xff') + "\n");
    row("a number that is too large",
        "{\"type\":\"join\",\"version\":2,\"token\":\"\",\"rank\":99999999999,\"ranks\":2}\n");
  }
  void otherConnectionsAreRejected() {
    QFETCH(QByteArray, bytes);
    RemoteRanks run({.ranks = 1});
    const UniqueFd unjoined = run.unjoined();
    send(unjoined, bytes.toStdString());
    QVERIFY(isEnded(unjoined.get()));
    UniqueFd rank = run.rank(0, 1);
    send(rank, result(1.5));
    rank.reset();
    QCOMPARE(run.said(), "succeeded");
  }

  void silentConnectionsKeepNoRankOut() {
    RemoteRanks run({.ranks = 1});
    std::vector<UniqueFd> crowd;
    for (int i = 0; i < 200; ++i) crowd.push_back(run.unjoined());
    UniqueFd rank = run.rank(0, 1);
    send(rank, result(1.5));
    rank.reset();
    QCOMPARE(run.said(), "succeeded");
    QVERIFY(isEnded(crowd.front().get()));
  }

  void aRankThatFailsIsNamedAndTheOthersAreLetGo_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("said");
    const auto line = [](const Message& message) { return QByteArray::fromStdString(encode(message)); };
    QTest::newRow("goes") << QByteArray() << "rank 1: ended without a result: its connection was closed: ";
    QTest::newRow("in the middle of a line") << QByteArray("{\"type\":") << "rank 1: ended without a result";
    QTest::newRow("reports why") << line(RankError{"No such tensor.", false, ErrorCode::BadInput})
                                 << "rank 1: reported an error: No such tensor.";
    QTest::newRow("sends an invalid line") << QByteArray("hello?\n") << "rank 1: broke the protocol: ";
    QTest::newRow("never ends a line") << QByteArray(200'000, 'x') << "rank 1: broke the protocol: ";
    QTest::newRow("too large a file") << line(OutputPart{1 << 20, {"x"}}) << "rank 1: broke the protocol: It announced";
    QTest::newRow("no file at all") << line(OutputPart{-1, {}}) << "rank 1: broke the protocol: It announced";
    QTest::newRow("more than there is") << line(OutputPart{2, {"xxx"}})
                                        << "rank 1: broke the protocol: It sent more bytes than its output file";
    QTest::newRow("two files") << line(OutputPart{1, {"x"}}) + line(OutputPart{1, {"x"}})
                               << "rank 1: broke the protocol: It sent more than one";
    QTest::newRow("files of two sizes") << line(OutputPart{2, {"x"}}) + line(OutputPart{3, {"x"}})
                                        << "rank 1: broke the protocol: It sent parts";
    QTest::newRow("half a file") << line(OutputPart{2, {"x"}}) + line(result(1))
                                 << "rank 1: broke the protocol: It sent only a part of its outputs";
  }
  void aRankThatFailsIsNamedAndTheOthersAreLetGo() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, said);
    RemoteRanks run({.ranks = 2, .output = path("o"), .deviation = path("d"), .maxOutputBytes = 1000});
    const UniqueFd other = run.rank(0);
    UniqueFd rank = run.rank(1);
    send(other, Hello{});
    send(rank, bytes.toStdString());
    rank.reset();
    QVERIFY(isEnded(other.get()));
    const QString got = run.said();
    QVERIFY2(got.startsWith(said), qPrintable(got));
  }

  /// The other ranks' connections break with it. A rank that only lost a peer is not the cause.
  void theFirstToFailIsNamedNotWhoLostIt() {
    RemoteRanks run({.ranks = 2});
    const UniqueFd survivor = run.rank(0);
    UniqueFd dead = run.rank(1);
    send(survivor, RankError{"Connection closed by peer.", true, ErrorCode::RankFailed});
    std::this_thread::sleep_for(100ms);
    dead.reset();
    QCOMPARE(run.said(), "rank 1: ended without a result: its connection was closed: ");
  }

  void aSilentRankIsGivenUp() {
    RemoteRanks run({.ranks = 2, .silence = 300ms});
    const UniqueFd silent = run.rank(1), other = run.rank(0);
    send(silent, Hello{});
    while (true) {
      if (::send(other.get(), "{\"type\":\"heartbeat\"}\n", 21, MSG_NOSIGNAL) < 0) break;
      std::this_thread::sleep_for(50ms);
    }
    QCOMPARE(run.said(), "rank 1: sent nothing for 0.3 s: ");
    QVERIFY(isEnded(silent.get()));
  }

  void aRankThatNeverComesIsGivenUp() {
    RemoteRanks run({.ranks = 2, .silence = 100ms, .joinMs = 300});
    const UniqueFd other = run.rank(0);
    while (::send(other.get(), "{\"type\":\"heartbeat\"}\n", 21, MSG_NOSIGNAL) >= 0) std::this_thread::sleep_for(20ms);
    QCOMPARE(run.said(), "rank 1: has not connected within 0.3 s: ");
  }

  void stoppingLetsAllGo_data() {
    const test::Rows<bool> row("isAnybodyHere");
    row("nobody has come", false);
    row("one has come", true);
  }
  void stoppingLetsAllGo() {
    QFETCH(bool, isAnybodyHere);
    RemoteRanks run({.ranks = 2});
    UniqueFd rank;
    if (isAnybodyHere) rank = run.rank(1);
    run.stop.request_stop();
    QCOMPARE(run.said(), isAnybodyHere ? "Stopped while the ranks ran." : "Stopped while waiting for the ranks.");
    if (isAnybodyHere) QVERIFY(isEnded(rank.get()));
  }

  void anAddressThatNobodyCouldGoToIsRefused_data() {
    const test::Rows<QString, QString> row("host", "words");
    row("all networks", "0.0.0.0", "is not an address that ranks can reach");
    row("another host's", "192.0.2.1", "Cannot listen on 192.0.2.1:");
    row("no host's", "no-such-host.invalid", "cannot resolve the host no-such-host.invalid");
  }
  void anAddressThatNobodyCouldGoToIsRefused() {
    QFETCH(QString, host);
    QFETCH(QString, words);
    const auto listener = Listener::open({host.toStdString(), 0});
    QVERIFY(!listener);
    QVERIFY2(listener.error().message.find(words.toStdString()) != std::string::npos, listener.error().message.c_str());
  }

  void aTokenThatIsEasyToGuessIsRefused() {
    QVERIFY(!Listener::open({"127.0.0.1", 0}, "1234"));
    QVERIFY(!Listener::open({"127.0.0.1", 0}, std::string(200, 'x')));
    QVERIFY(!Listener::open({"127.0.0.1", 0}, "with blanks in the middle"));
    QVERIFY(Listener::open({"127.0.0.1", 0})->token() != Listener::open({"127.0.0.1", 0})->token());
  }
};

QTEST_GUILESS_MAIN(TestListener)
#include "tst_listener.moc"
