/// The interface of collectives on the simulated GPU, in this process: accepted inputs of NCCL, and inputs that must be
/// converted.
#include "libtorch/rank/collectives/nccl_loader.h"
#include "tests/support/need.h"

#include <ATen/ATen.h>

#include <QTest>

#include <arpa/inet.h>
#include <sys/socket.h>

using namespace cleave;
using namespace cleave::torch_rank;

namespace {

/// A port that listens on the loopback address.
struct Port {
  Port() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, raw, size) != 0 || ::listen(fd, 16) != 0 || ::getsockname(fd, raw, &size) != 0) qFatal("no port");
    number = ntohs(address.sin_port);
  }
  int fd, number = 0;
};

}  // namespace

class TestSimulatedCollectives : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    m_runtime = test::need(openNccl(CLEAVE_BIN_DIR "/../simulated/bin/libcleave_nccl.so", {}));
    const Port port;
    m_collectives = test::need(connectNccl(*m_runtime, {0, 1, "127.0.0.1", port.number, port.fd}));
  }
  void cleanupTestCase() { m_collectives->close(); }

  /// NCCL has no int16, so a sum of such a tensor is computed in a supported type.
  void sumsEveryTypeOfAProgram_data() {
    QTest::addColumn<int>("type");
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kChar, at::kByte,
                                      at::kShort, at::kInt, at::kLong, at::kBool})
      QTest::newRow(c10::toString(type)) << static_cast<int>(type);
  }
  void sumsEveryTypeOfAProgram() {
    QFETCH(int, type);
    const at::Tensor ones = at::ones({4}, at::TensorOptions(static_cast<at::ScalarType>(type)));
    const at::Tensor sum = test::need(m_collectives->allReduce(ones.to(device()), Reduction::Sum));
    QVERIFY(m_collectives->finish().has_value());
    QVERIFY(at::equal(sum.cpu(), ones));
  }

  /// NCCL accepts only dense memory.
  void gathersAndScattersWhatIsNotContiguous() {
    const at::Tensor whole = at::arange(12, at::kFloat).view({3, 4});
    const at::Tensor turned = whole.to(device()).t();
    QVERIFY(!turned.is_contiguous());
    QVERIFY(at::equal(test::need(m_collectives->allGather(turned, 1)).cpu(), whole.t()));
    QVERIFY(at::equal(test::need(m_collectives->reduceScatter(turned, 0)).cpu(), whole.t()));
  }

  /// A block may be larger than the tensor inside it.
  void theAllocatorsRoundingIsNoneOfTheTensors() {
    const DeviceMemory before = m_runtime->memory();
    const at::Tensor odd = at::empty({(3 << 20) + 100}, at::TensorOptions(at::kByte).device(device()));
    const DeviceMemory now = m_runtime->memory();
    QCOMPARE(now.requested - before.requested, std::int64_t{(3 << 20) + 100});
    QVERIFY(now.allocated - before.allocated > (3 << 20) + 100);
  }

 private:
  at::Device device() const { return m_runtime->queue.device; }
  std::optional<NcclRuntime> m_runtime;
  std::unique_ptr<Collectives> m_collectives;
};

QTEST_GUILESS_MAIN(TestSimulatedCollectives)
#include "tst_simulated_collectives.moc"
