#include "tests/support/shim_runs.h"

#include <QTest>

#include <dlfcn.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

using namespace cleave;

namespace {

// As in nccl.h, which is not everywhere.
struct UniqueId {
  char bytes[128];
};
using Comm = void*;
enum Type { Int8 = 0, Int32 = 2, Int64 = 4, Float16 = 6, Float32 = 7, Float64 = 8, BFloat16 = 9 };
enum Operation { Sum = 0, Max = 2 };

using Bytes = std::vector<char>;

template <class T>
Bytes bytesOf(std::initializer_list<T> values) {
  const auto* const first = reinterpret_cast<const char*>(values.begin());
  return {first, first + values.size() * sizeof(T)};
}

class Nccl {
 public:
  bool open(const QString& folder) {
    m_runtime = ::dlopen(qPrintable(folder + "/libcudart.so.13"), RTLD_NOW | RTLD_LOCAL);
    m_nccl = ::dlopen(qPrintable(folder + "/libnccl.so.2"), RTLD_NOW | RTLD_LOCAL);
    return m_runtime && m_nccl;
  }

  /// `call` on each of two ranks, each with a thread and a device; then waits for its stream. The results of all calls.
  std::array<int, 2> onTwoRanks(const std::function<int(Comm comm, int rank)>& call) {
    UniqueId id{};
    std::array<int, 2> results{};
    results[0] = of<int(UniqueId*)>("ncclGetUniqueId")(&id);
    const auto run = [&](int rank) {
      Comm comm = nullptr;
      int result = cuda<int(int)>("cudaSetDevice")(rank);
      if (result == 0) result = of<int(Comm*, int, UniqueId, int)>("ncclCommInitRank")(&comm, 2, id, rank);
      if (result == 0) result = call(comm, rank);
      if (result == 0) result = cuda<int(void*)>("cudaStreamSynchronize")(nullptr);
      results[static_cast<std::size_t>(rank)] = result;
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    return results;
  }

  template <class Signature>
  Signature* of(const char* name) const {
    return reinterpret_cast<Signature*>(::dlsym(m_nccl, name));
  }
  template <class Signature>
  Signature* cuda(const char* name) const {
    return reinterpret_cast<Signature*>(::dlsym(m_runtime, name));
  }

 private:
  void *m_runtime = nullptr, *m_nccl = nullptr;
};

constexpr std::array<int, 2> kSuccess{0, 0};

}  // namespace

/// The collectives of the NCCL shim: what runs on it is worth no more than they are.
class TestNcclShim : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() {
    if (const QString why = test::ShimRuns::whyNone(); !why.isEmpty()) QSKIP(qPrintable(why));
    QVERIFY2(m_nccl.open(QStringLiteral(CLEAVE_BIN_DIR "/../shims")), ::dlerror());
  }

  void reducesEachType_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("operation");
    QTest::addColumn<Bytes>("first");
    QTest::addColumn<Bytes>("second");
    QTest::addColumn<Bytes>("expected");
    const auto row = [](const char* name, Type type, Operation operation, const Bytes& a, const Bytes& b,
                        const Bytes& c) { QTest::newRow(name) << int{type} << int{operation} << a << b << c; };
    row("float32", Float32, Sum, bytesOf({1.5F, -2.F}), bytesOf({.25F, 5.F}), bytesOf({1.75F, 3.F}));
    row("float64", Float64, Sum, bytesOf({1e300, 1.}), bytesOf({1e300, 2.}), bytesOf({2e300, 3.}));
    row("int32 max", Int32, Max, bytesOf({-7, 3}), bytesOf({-9, 4}), bytesOf({-7, 4}));
    row("int64", Int64, Sum, bytesOf({std::int64_t{1} << 40}), bytesOf({std::int64_t{1}}),
        bytesOf({(std::int64_t{1} << 40) + 1}));
    row("int8", Int8, Sum, bytesOf<std::int8_t>({-100}), bytesOf<std::int8_t>({1}), bytesOf<std::int8_t>({-99}));
    // 1 + 2^-8 is between two bfloat16 numbers: rounds to even.
    row("bfloat16", BFloat16, Sum, bytesOf<std::uint16_t>({0x3f80, 0x4000}), bytesOf<std::uint16_t>({0x3b80, 0x4040}),
        bytesOf<std::uint16_t>({0x3f80, 0x40a0}));
    row("float16", Float16, Sum, bytesOf<std::uint16_t>({0x3c00, 0xc000}), bytesOf<std::uint16_t>({0x3800, 0x4200}),
        bytesOf<std::uint16_t>({0x3e00, 0x3c00}));
  }
  void reducesEachType() {
    QFETCH(int, type);
    QFETCH(int, operation);
    QFETCH(Bytes, first);
    QFETCH(Bytes, second);
    QFETCH(Bytes, expected);
    std::array<Bytes, 2> data{first, second};
    constexpr std::array<std::size_t, 10> kBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    const std::size_t count = first.size() / kBytes[static_cast<std::size_t>(type)];
    auto* const allReduce = m_nccl.of<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclAllReduce");
    QCOMPARE(m_nccl.onTwoRanks([&](Comm comm, int rank) {
      char* const own = data[static_cast<std::size_t>(rank)].data();
      return allReduce(own, own, count, type, operation, comm, nullptr);
    }),
             kSuccess);
    QCOMPARE(data[0], expected);
    QCOMPARE(data[1], expected);
  }

  /// More than one chunk of the shared memory.
  void gathersScattersAndBroadcastsLargeTensors() {
    constexpr std::size_t kCount = 100'003;
    std::array<std::vector<float>, 2> own, gathered, sums;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < kCount; ++i) own[rank].push_back(static_cast<float>(i) + 1000.F * rank);
      gathered[rank].resize(2 * kCount);
      sums[rank].resize(kCount);
    }
    auto* const allGather = m_nccl.of<int(const void*, void*, std::size_t, int, Comm, void*)>("ncclAllGather");
    auto* const reduceScatter =
        m_nccl.of<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclReduceScatter");
    auto* const broadcast = m_nccl.of<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclBroadcast");
    const std::vector<float> ofRankOne = own[1];
    QCOMPARE(m_nccl.onTwoRanks([&](Comm comm, int rank) {
      const auto at = static_cast<std::size_t>(rank);
      int result = allGather(own[at].data(), gathered[at].data(), kCount, Float32, comm, nullptr);
      if (result == 0)
        result = reduceScatter(gathered[at].data(), sums[at].data(), kCount, Float32, Sum, comm, nullptr);
      if (result == 0) result = broadcast(own[at].data(), own[at].data(), kCount, Float32, 1, comm, nullptr);
      return result;
    }),
             kSuccess);
    QVERIFY(own[0] == ofRankOne && own[1] == ofRankOne);
    for (std::size_t i = 0; i < kCount; ++i) {
      QCOMPARE(gathered[0][kCount + i], ofRankOne[i]);
      QCOMPARE(gathered[1][i], static_cast<float>(i));
      QCOMPARE(sums[0][i], 2 * static_cast<float>(i));
      QCOMPARE(sums[1][i], 2 * ofRankOne[i]);
    }
  }

 private:
  Nccl m_nccl;
};

QTEST_GUILESS_MAIN(TestNcclShim)
#include "tst_nccl_shim.moc"
