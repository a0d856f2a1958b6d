/// Connecting, deadlines and devices: how ranks handle peers that do not respond, and how they wait for an asynchronous
/// device and time it. Marks over Gloo simulate the device, through the same interface as CUDA's.
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/collectives/group_store.h"
#include "libtorch/rank/collectives/nccl_loader.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"

#include <ATen/ATen.h>  // before Qt, whose `slots` is a macro

#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <QTest>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <system_error>
#include <thread>

using namespace cleave;
using namespace cleave::torch_rank;
using namespace std::chrono_literals;
using cleave::test::kPatience;
using Listener = cleave::test::LoopbackListener;

namespace {

/// The store of torchrun's agent, which exists before its ranks.
c10::intrusive_ptr<c10d::TCPStore> storeOfAnAgent(const Listener& listener) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(listener.port);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener.fd;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

using Thrower = std::function<void()>;
using Connected = Result<std::unique_ptr<Collectives>>;

/// Runs each rank on its own thread.
template <class Body>
void onThreads(int ranks, Body body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([rank, &body] { body(rank); });
}

/// A device's queue that finishes all work at once, or never.
struct FakeDevice {
  std::atomic<bool> isStuck = false, isBroken = false, hasFailed = false;  // the watchdog reads these too
  std::atomic<int> marks = 0, isReachedUpTo = std::numeric_limits<int>::max();

  class Mark final : public DeviceMark {
   public:
    Mark(FakeDevice& device, int number) : m_device(device), m_number(number) {}
    bool isReached() override {
      if (m_device.hasFailed) throw std::runtime_error("CUDA error: an illegal memory access was encountered");
      return !m_device.isStuck && m_number < m_device.isReachedUpTo;
    }
    std::chrono::nanoseconds since(DeviceMark& earlier) override {
      return std::chrono::microseconds(1000 * (m_number - dynamic_cast<Mark&>(earlier).m_number));
    }

   private:
    FakeDevice& m_device;
    int m_number;
  };

  DeviceQueue queue() {
    DeviceQueue result;
    result.mark = [this] { return std::make_unique<Mark>(*this, marks++); };
    result.checkHealth = [this] {
      if (isBroken) throw std::runtime_error("NCCL: the connection to another rank broke.");
    };
    return result;
  }
};

c10::intrusive_ptr<c10d::Backend> glooBackend(int rank, int ranks, const Listener& listener) {
  const GroupAddress group{rank, ranks, "127.0.0.1", listener.port, rank == 0 ? listener.fd : -1};
  const auto store = connectStore(group);
  if (!store) qFatal("%s", store.error().message.c_str());
  auto options = c10d::ProcessGroupGloo::Options::create(60s);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(*store, rank, ranks, options);
}

}  // namespace

class CollectivesTest : public QObject {
  Q_OBJECT
 private slots:
  /// c10d alone would wait forever, because it checks its timeout only between steps.
  void peersThatDoNotAnswerTimeOut_data() {
    QTest::addColumn<QString>("address");
    QTest::addColumn<bool>("isMute");
    QTest::newRow("a port that does not answer") << "127.0.0.1" << true;
    QTest::newRow("a name that does not resolve") << "no-such-host.invalid" << true;
    QTest::newRow("a closed port") << "127.0.0.1" << false;
  }
  void peersThatDoNotAnswerTimeOut() {
    QFETCH(QString, address);
    QFETCH(bool, isMute);
    const Listener listener;
    if (!isMute) ::close(listener.fd);
    GroupAddress group{1, 2, address.toStdString(), listener.port};
    group.connectTimeout = 1500ms;
    const Connected connected = connectGloo(group);
    QVERIFY(!connected);
    QCOMPARE(connected.error().code, ErrorCode::Environment);
    const std::string phrase = fmt::format("Rank 1 of 2 cannot connect to the others at {}:{} within 1.5 s",
                                           address.toStdString(), listener.port);
    QVERIFY2(connected.error().message.starts_with(phrase), connected.error().message.c_str());
  }

  /// A lack of resources on this machine is not the fault of a waiting peer.
  void aMissingNetworkDeviceIsNotAPeersFault() {
    const Listener listener;
    const auto store = storeOfAnAgent(listener);
    qputenv("GLOO_SOCKET_IFNAME", "nope");
    GroupAddress group{1, 2, "127.0.0.1", listener.port};
    group.agentStore = "/worker/attempt_0";
    const Connected connected = connectGloo(group);
    qunsetenv("GLOO_SOCKET_IFNAME");
    QVERIFY(!connected);
    QCOMPARE(connected.error().code, ErrorCode::Environment);
    QVERIFY2(connected.error().message.starts_with("Rank 1 of 2 has no network device for Gloo: "),
             connected.error().message.c_str());
  }

  /// The exception's type shows the cause; if a library has no type for it, the system's message does.
  void exceptionsShowTheCause_data() {
    QTest::addColumn<Thrower>("thrower");
    QTest::addColumn<ErrorCode>("code");
    QTest::addColumn<QString>("phrase");
    const auto row = [](const char* name, Thrower thrower, ErrorCode code, const char* phrase) {
      QTest::newRow(name) << thrower << code << QString(phrase);
    };
    row(
        "c10d's backend", [] { TORCH_CHECK_WITH(DistBackendError, false, "NCCL error: unhandled system error"); },
        ErrorCode::RankFailed, "unhandled system error");
    row(
        "c10d's store", [] { TORCH_CHECK_WITH(DistStoreError, false, "wait timeout"); }, ErrorCode::RankFailed,
        "wait timeout");
    row(
        "c10d's network, without descriptors",
        [] { TORCH_CHECK_WITH(DistNetworkError, false, "failed to connect (errno: 24 - Too many open files)"); },
        ErrorCode::Environment, "(ulimit -n)");
    row(
        "Gloo without descriptors",
        [] { throw std::runtime_error("[gloo/device.cc:80] rv != -1. socket: Too many open files"); },
        ErrorCode::Environment, "(ulimit -n)");
    row(
        "no memory", [] { throw std::bad_alloc(); }, ErrorCode::Environment, "there is no memory left: ");
    row(
        "no memory for a tensor", [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "cannot allocate 64 bytes"); },
        ErrorCode::Environment, "64 bytes");
    row(
        "no thread", [] { throw std::system_error(EAGAIN, std::generic_category()); }, ErrorCode::Environment,
        "no more threads can be started: ");
    row(
        "two ranks on one GPU", [] { throw std::runtime_error("Ranks 0 and 1 have the same GPU."); },
        ErrorCode::Environment, "Ranks 0 and 1 have the same GPU.");
  }
  void exceptionsShowTheCause() {
    QFETCH(Thrower, thrower);
    QFETCH(ErrorCode, code);
    QFETCH(QString, phrase);
    const Listener listener;
    const auto agent = storeOfAnAgent(listener);
    NcclRuntime runtime;
    runtime.connect = [&](const c10::intrusive_ptr<c10d::Store>&, int, int) -> NcclGroup {
      thrower();
      return {};
    };
    GroupAddress group{1, 2, "127.0.0.1", listener.port};
    group.agentStore = "/worker/attempt_0";
    const Connected connected = connectNccl(runtime, group);
    QVERIFY(!connected);
    QCOMPARE(connected.error().code, code);
    const QString said = QString::fromStdString(connected.error().message);
    QVERIFY2(said.startsWith("Rank 1 of 2 cannot connect to its peers through NCCL: ") && said.contains(phrase),
             qPrintable(said));
  }

  /// A communicator waits forever for a rank that died before it connected.
  void aCommunicatorThatDoesNotConnectTimesOut() {
    const Listener listener;
    const auto agent = storeOfAnAgent(listener);
    const auto isOver = std::make_shared<std::atomic<bool>>(false);
    NcclRuntime runtime;
    runtime.connect = [isOver](const c10::intrusive_ptr<c10d::Store>&, int, int) -> NcclGroup {
      while (!*isOver) std::this_thread::sleep_for(10ms);
      return {};
    };
    GroupAddress group{0, 2, "127.0.0.1", listener.port};
    group.agentStore = "/worker/attempt_0";
    group.connectTimeout = 3s;  // enough to connect to the store on a busy machine
    const Connected connected = connectNccl(runtime, group);
    *isOver = true;
    QVERIFY(!connected);
    QCOMPARE(connected.error().code, ErrorCode::RankFailed);
    QCOMPARE(QString::fromStdString(connected.error().message),
             QString("Rank 0 of 2 cannot connect to its peers through NCCL: they did not answer within 3 s."));
  }

  void aPeerThatNeverConnectsTimesOut() {
    const Listener listener;
    GroupAddress group{0, 2, "127.0.0.1", listener.port, listener.fd};
    group.connectTimeout = 1500ms;
    const Connected connected = connectGloo(group);
    QVERIFY(!connected);
    // This is rank 0 itself, so there is no other rank to look for.
    QVERIFY2(connected.error().message.find("rank 0") == std::string::npos, connected.error().message.c_str());
    QVERIFY2(connected.error().message.ends_with(
                 "not all ranks have connected. Check that every rank was started, and that the address is this "
                 "host's."),
             connected.error().message.c_str());
  }

  /// torchrun's agent serves the store, so no rank may serve at that address. Each attempt has its own keys.
  void ranksMeetInTheStoreOfAnAgent() {
    const Listener listener;
    const auto agent = storeOfAnAgent(listener);
    for (const char* attempt : {"/worker/attempt_0", "/worker/attempt_1"}) {
      std::array<double, 2> sums{};
      onThreads(2, [&](int rank) {
        GroupAddress group{rank, 2, "127.0.0.1", listener.port};
        group.agentStore = attempt;
        const Connected connected = connectGloo(group);
        if (!connected) qFatal("%s", connected.error().message.c_str());
        const auto sum = (*connected)->allReduce(at::ones({1}), Reduction::Sum);
        if (sum) sums[static_cast<std::size_t>(rank)] = sum->item<double>();
        (void)(*connected)->barrier();
      });
      QCOMPARE(sums[0], 2.0);
      QCOMPARE(sums[1], 2.0);
    }
  }

  void aPeerThatDoesNotJoinFailsTheCall() {
    const Listener listener;
    std::atomic<bool> hasGivenUp = false;
    std::string complaint;
    ErrorCode code = ErrorCode::Negative;
    onThreads(2, [&](int rank) {
      GroupAddress group{rank, 2, "127.0.0.1", listener.port, rank == 0 ? listener.fd : -1};
      group.callTimeout = 500ms;
      const Connected connected = connectGloo(group);
      if (!connected) qFatal("%s", connected.error().message.c_str());
      if (rank == 0) {
        const auto sum = (*connected)->allReduce(at::ones({16}), Reduction::Sum);
        if (!sum) {
          complaint = sum.error().message;
          code = sum.error().code;
        }
        hasGivenUp = true;
      }
      while (!hasGivenUp) std::this_thread::sleep_for(10ms);  // alive and connected, but not in the collective
    });
    QCOMPARE(code, ErrorCode::RankFailed);
    QVERIFY2(complaint.starts_with("all_reduce of 64 bytes failed on rank 0 of 2"), complaint.c_str());
  }

  /// The host runs ahead. Calls are reported in order with the device's times, and no later than its end.
  void callsOnADeviceAreTimedByItsMarks() {
    const Listener listener;
    onThreads(2, [&](int rank) {
      FakeDevice device;
      device.isStuck = true;
      const auto collectives = makeCollectives(glooBackend(rank, 2, listener), device.queue());
      std::vector<std::string> reported;
      collectives->setObserver([&](const CollectiveRecord& record) {
        reported.push_back(fmt::format("{} {} {}", record.kind, record.bytes, record.time.count()));
      });
      if (!collectives->allReduce(at::ones({4}), Reduction::Sum) || !collectives->allGather(at::ones({4}), 0))
        qFatal("a call failed");
      if (!reported.empty()) qFatal("an unfinished call was reported");
      device.isStuck = false;
      if (!collectives->finish()) qFatal("it does not finish");
      if (reported != std::vector<std::string>{"all_reduce 16 1000", "all_gather 32 1000"})
        qFatal("the reports differ");
      if (collectives->counts().allReduce != 1 || collectives->counts().allGather != 1) qFatal("the counts differ");
      if (!collectives->barrier()) qFatal("no barrier");
    });
  }

  void aDeviceThatNeverFinishesTimesOut_data() {
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("complaint");
    QTest::newRow("it hangs") << "hangs" << 5
                              << "Rank 0 of 1 gave up: all_reduce of 16 bytes did not complete within 0.2 s.";
    QTest::newRow("communication broke") << "broke" << 5
                                         << "Rank 0 of 1 gave up: NCCL: the connection to another rank broke.";
    QTest::newRow("a peer has exited, and the device waits for it")
        << "broke and hangs" << 5 << "Rank 0 of 1 gave up: NCCL: the connection to another rank broke.";
    // The error is local, so the rank must not look for a peer.
    QTest::newRow("the device failed") << "failed" << 4
                                       << "Rank 0 of 1 gave up: CUDA error: an illegal memory access was encountered.";
  }
  void aDeviceThatNeverFinishesTimesOut() {
    QFETCH(QString, what);
    QFETCH(int, code);
    QFETCH(QString, complaint);
    const Listener listener;
    FakeDevice device;
    const auto collectives = makeCollectives(glooBackend(0, 1, listener), device.queue());
    QVERIFY(collectives->allReduce(at::ones({4}), Reduction::Sum));
    device.isStuck = what == "hangs";
    device.isBroken = what == "broke";
    device.hasFailed = what == "failed";
    device.isStuck = device.isStuck || what == "broke and hangs";
    device.isBroken = device.isBroken || what == "broke and hangs";
    // The cause is known long before the deadline.
    const auto finished = collectives->finish(device.isBroken ? 600s : 200ms);
    QVERIFY(!finished);
    QCOMPARE(exitCode(finished.error().code), code);
    QCOMPARE(QString::fromStdString(finished.error().message), complaint);
  }

  /// The host may wait for the device without polling, for example when it reads a value. The deadline for peers must
  /// still work.
  void aCallThatHangsTimesOutWhileTheHostIsBusy_data() {
    QTest::addColumn<bool>("isBroken");
    QTest::addColumn<QString>("complaint");
    QTest::newRow("it hangs") << false << "Rank 0 of 1 gave up: all_reduce of 16 bytes did not complete within 0.2 s.";
    QTest::newRow("communication broke") << true << "Rank 0 of 1 gave up: NCCL: the connection to another rank broke.";
  }
  void aCallThatHangsTimesOutWhileTheHostIsBusy() {
    QFETCH(bool, isBroken);
    QFETCH(QString, complaint);
    const Listener listener;
    FakeDevice device;
    const auto collectives = makeCollectives(glooBackend(0, 1, listener), device.queue(),
                                             isBroken ? std::chrono::milliseconds(600s) : 200ms);
    QVERIFY(collectives->allReduce(at::ones({4}), Reduction::Sum));
    QVERIFY(collectives->finish());
    QVERIFY(!collectives->abortReason());
    device.isReachedUpTo = device.marks.load() + 1;  // the device reaches the next call and stops there
    device.isBroken = isBroken;
    QVERIFY(collectives->allReduce(at::ones({4}), Reduction::Sum));
    QTRY_VERIFY_WITH_TIMEOUT(collectives->abortReason(), kPatience);
    QCOMPARE(collectives->abortReason()->code, ErrorCode::RankFailed);
    QCOMPARE(QString::fromStdString(collectives->abortReason()->message), complaint);
    // All later calls must fail.
    const auto finished = collectives->finish(600s);
    QVERIFY(!finished);
    QCOMPARE(QString::fromStdString(finished.error().message), complaint);
  }
};

QTEST_GUILESS_MAIN(CollectivesTest)
#include "tst_collectives.moc"
