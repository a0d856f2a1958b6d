/// The weights that a rank loads: slices of files, mapped parts of files, values from a seed.
#include "formats/safetensors.h"
#include "libtorch/rank/execute/fill.h"
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/memory/memory_ledger.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "libtorch/rank/memory/weight_memory.h"
#include "libtorch/rank/weights/threads.h"
#include "libtorch/rank/weights/weights.h"
#include "tests/libtorch/rank/ranks_as_threads.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <QTemporaryDir>
#include <QTest>

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

using namespace cleave;
using namespace cleave::tests;
using namespace cleave::torch_rank;
using graph::DType;

namespace {

constexpr const char* kFile = "model.safetensors";

/// Sets the number of LibTorch threads, and restores it at the end.
class Threads {
 public:
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(m_before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int m_before = at::get_num_threads();
};

int threadsOfProcess() {
  return static_cast<int>(std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

/// Every rank has the same piece.
program::ParameterShards parameter(const std::string& name, const graph::Shape& shape, DType stored,
                                   const graph::Shape& local, const program::ShardPiece& piece, std::int64_t ranks) {
  return {name,   {DType::Float32, shape},
          stored, local,
          {},     std::vector<std::vector<program::ShardPiece>>(static_cast<std::size_t>(ranks), {piece})};
}

/// Parameters of the same shape; the first is the output.
std::string aliasOf(const std::vector<std::string>& names, const graph::Shape& shape) {
  const std::string type = graph::toText(graph::TensorType{DType::Float32, shape});
  std::string text;
  for (const std::string& name : names) text += name + ": " + type + " = parameter\n";
  return text + "alias_0: " + type + " = aten::alias(" + names[0] + ")\nreturn y=alias_0\n";
}

/// The two rows of a tensor of 32 MiB, each a parameter.
program::RankProgram halves() {
  const graph::Shape whole{2, 4 << 20}, row{1, 4 << 20};
  program::RankProgram plan;
  plan.parameters.push_back(parameter("a", whole, DType::Float32, row, {"w", kFile, 0, 0, 1}, 1));
  plan.parameters.push_back(parameter("b", whole, DType::Float32, row, {"w", kFile, 0, 1, 1}, 1));
  return plan;
}

/// Requests a stop at the first allocation of at least some size.
class StopsAtMemory final : public c10::MemoryReportingInfoBase {
 public:
  explicit StopsAtMemory(std::stop_source stop) : m_stop(std::move(stop)) {}
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    if (size > (1 << 20)) m_stop.request_stop();
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  std::stop_source m_stop;
};

}  // namespace

class ExecLoadingTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

  /// With the tensor under the name "w".
  fs::path folderOf(const at::Tensor& tensor, DType type) {
    const fs::path folder = m_folder.path().toStdString();
    const std::vector<formats::TensorView> views{
        {"w", {type, tensor.sizes().vec()}, {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}}};
    need(formats::writeSafetensors(folder / kFile, views).map([] { return 0; }));
    return folder;
  }

 private slots:
  void init() { at::manual_seed(7); }

  void fillsTheSameValuesForEveryWorldSize_data() {
    QTest::addColumn<int>("dim");
    QTest::addColumn<int>("ranks");
    for (int dim : {0, 1, 2}) {
      for (int ranks : {1, 2, 3, 6}) QTest::addRow("dim %d, %d ranks", dim, ranks) << dim << ranks;
    }
  }
  void fillsTheSameValuesForEveryWorldSize() {
    QFETCH(int, dim);
    QFETCH(int, ranks);
    const graph::Shape shape{6, 12, 18};
    const at::Tensor whole = at::empty(shape);
    need(initialise(whole, need(regionOf(shape, shape, -1, 0, 0, 0)), "a.weight", 3, 5).map([] { return 0; }));
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      graph::Shape local = shape;
      local[dim] /= ranks;
      parts.push_back(at::empty(local));
      const Region region = need(regionOf(shape, local, dim, rank * local[dim], local[dim], 0));
      need(initialise(parts.back(), region, "a.weight", 3, 5).map([] { return 0; }));
    }
    COMPARE_TENSORS(at::cat(parts, dim), whole, 0);
    QVERIFY(std::abs(whole.std().item<double>() - 0.02) < 0.002);
    QVERIFY(std::abs(whole.mean().item<double>()) < 0.003);
    const at::Tensor other = at::empty(shape);
    need(initialise(other, need(regionOf(shape, shape, -1, 0, 0, 0)), "b.weight", 3, 5).map([] { return 0; }));
    QVERIFY(!at::allclose(whole, other));
  }

  void loadsItsSlicesAndNotAByteMore_data() {
    QTest::addColumn<int>("dim");
    QTest::addColumn<QByteArray>("stored");
    for (int dim : {0, 1}) {
      for (const char* stored : {"f32", "bf16"})
        QTest::addRow("dim %d, stored %s", dim, stored) << dim << QByteArray(stored);
    }
  }
  /// A parameter of 24 MiB (stored in f32) on 4 ranks.
  void loadsItsSlicesAndNotAByteMore() {
    QFETCH(int, dim);
    QFETCH(QByteArray, stored);
    const DType storedType = *graph::parseDType(stored.toStdString());
    const graph::Shape shape{2048, 3072};
    const at::Tensor whole = at::randn(shape).to(storedType == DType::Float32 ? at::kFloat : at::kBFloat16);
    const fs::path folder = folderOf(whole, storedType);

    constexpr int kRanks = 4;
    graph::Shape local = shape;
    local[dim] /= kRanks;
    const std::string type = "f32[" + std::to_string(local[0]) + "," + std::to_string(local[1]) + "]";
    for (int rank = 0; rank < kRanks; ++rank) {
      program::RankProgram plan;
      program::ParameterShards parameter{"w",   {DType::Float32, shape},      storedType,
                                         local, rules::Placement::split(dim), {}};
      // Two pieces, as with fused blocks: the halves of this rank's part in reverse.
      const std::int64_t half = local[dim] / 2, start = rank * local[dim];
      for (int r = 0; r < kRanks; ++r) {
        parameter.piecesByRank.push_back(
            {{"w", "model.safetensors", dim, start + half, half}, {"w", "model.safetensors", dim, start, half}});
      }
      plan.parameters.push_back(parameter);
      Program program = bound("w: " + type + " = parameter\nrelu_0: " + type + " = aten::alias(w)\nreturn y=relu_0\n");
      std::atomic<std::int64_t> loaded = 0;
      AllocationCounter counter;
      const WeightReport report = need(loadWeights(program, plan, {{folder, {}}, rank}, loaded));
      QCOMPARE(report.bytesRead, local[0] * local[1] * graph::itemSize(storedType));
      QCOMPARE(report.bytesRead, program::shardBytes(plan.parameters, rank));
      QCOMPARE(loaded.load(), local[0] * local[1] * 4);
      QVERIFY(counter.largest() >= local[0] * local[1] * 4 &&
              counter.largest() <= local[0] * local[1] * 4 + program::kStagingBytes);
      // The allocator agrees: the tensor and the staging buffer, and nothing else of this size.
      QVERIFY2(counter.peak() <= local[0] * local[1] * 4 + program::kStagingBytes + (64 << 10),
               std::to_string(counter.peak()).c_str());
      const at::Tensor expected =
          at::cat({whole.narrow(dim, start + half, half), whole.narrow(dim, start, half)}, dim).to(at::kFloat);
      COMPARE_TENSORS(runAlone(program)[0].second, expected, 0);
    }
  }

  /// Loads 36 MiB of f32 in full, in one contiguous part, and in separate slices.
  void readsLargeParametersOnSeveralThreads_data() {
    QTest::addColumn<int>("dim");
    QTest::addColumn<QByteArray>("stored");
    QTest::addColumn<int>("threads");
    for (int dim : {-1, 0, 1, 2}) {
      for (const char* stored : {"f32", "bf16"}) {
        for (int threads : {1, 3})
          QTest::addRow("dim %d, %s, %d threads", dim, stored, threads) << dim << QByteArray(stored) << threads;
      }
    }
  }
  void readsLargeParametersOnSeveralThreads() {
    QFETCH(int, dim);
    QFETCH(QByteArray, stored);
    QFETCH(int, threads);
    const Threads threadsHere(threads);
    const DType storedType = *graph::parseDType(stored.toStdString());
    const graph::Shape shape{6, 768, 2048};
    const at::Tensor counted = at::arange(graph::elementCount(shape), at::kFloat).view(shape);
    const at::Tensor whole = counted.to(storedType == DType::Float32 ? at::kFloat : at::kBFloat16);
    const fs::path folder = folderOf(whole, storedType);
    const std::int64_t ranks = dim < 0 ? 1 : 2, rank = ranks - 1;
    graph::Shape local = shape;
    if (dim >= 0) local[dim] /= ranks;
    const std::int64_t start = dim < 0 ? 0 : rank * local[dim], length = dim < 0 ? 0 : local[dim];
    program::RankProgram plan;
    plan.parameters.push_back(parameter("w", shape, storedType, local, {"w", kFile, dim, start, length}, ranks));
    Program program = bound(aliasOf({"w"}, local));
    std::atomic<std::int64_t> loaded = 0;
    const std::int64_t bytes = graph::sizeInBytes({DType::Float32, local});
    AllocationCounter counter;
    const int threadsBefore = threadsOfProcess();
    const WeightReport report = need(loadWeights(program, plan, {{folder, {}}, static_cast<int>(rank)}, loaded));
    QCOMPARE(report.bytesRead, program::shardBytes(plan.parameters, static_cast<int>(rank)));
    QCOMPARE(loaded.load(), bytes);
    QVERIFY(counter.largest() == bytes);
    QVERIFY(counter.peak() <= bytes + program::kStagingBytes + (64 << 10));
    // LibTorch keeps its conversion threads.
    if (storedType == DType::Float32) QCOMPARE(threadsOfProcess(), threadsBefore);
    const at::Tensor expected = (dim < 0 ? whole : whole.narrow(dim, start, length)).to(at::kFloat);
    COMPARE_TENSORS(program.given(program.graph().findValue("w")), expected, 0);
  }

  /// A parameter's own mapping counts in the same way as LibTorch's memory, to the byte.
  void memoryOfLargeParametersIsCounted() {
    const graph::TensorType type{DType::Float32, {1025, 1027}};
    const std::int64_t bytes = graph::sizeInBytes(type);
    StepRecorder recorder;
    MemoryLedger ledger(recorder);
    AllocationCounter counter;
    counter.setLedger(&ledger);
    at::Tensor tensor = emptyParameter(type, at::kCPU);
    QCOMPARE(counter.allocated(), bytes);
    QCOMPARE(counter.largest(), bytes);
    const void* const memory = tensor.data_ptr();
    QCOMPARE(reinterpret_cast<std::uintptr_t>(memory) % (2 << 20), std::uintptr_t(0));
    const auto live = ledger.live({memory}, false);
    QCOMPARE(live.size(), std::size_t(1));
    QCOMPARE(live[0].bytes, bytes);
    QVERIFY(live[0].memory == memory && live[0].kind == protocol::MemoryKind::Parameters);
    tensor.fill_(1);
    QCOMPARE(tensor.sum().item<float>(), 1025.0F * 1027.0F);
    tensor.reset();
    QCOMPARE(counter.allocated(), std::int64_t(0));
    QVERIFY(ledger.live({}, false).empty());
    unsigned char isThere = 0;
    QVERIFY(::mincore(const_cast<void*>(memory), 1, &isThere) == -1 && errno == ENOMEM);  // unmapped
  }

  void aFileThatIsCutOffWhileItIsReadIsOneError_data() {
    QTest::addColumn<bool>("areWritten");
    QTest::newRow("mapped") << false;
    QTest::newRow("read by several threads") << true;
  }
  /// Truncates the file between two parameters, or in the middle of the second.
  void aFileThatIsCutOffWhileItIsReadIsOneError() {
    QFETCH(bool, areWritten);
    const Threads several(3);
    const fs::path folder = folderOf(at::zeros({2, 4 << 20}), DType::Float32);
    program::RankProgram plan = halves();
    Program program = bound(aliasOf({"a", "b"}, {1, 4 << 20}));
    std::atomic<std::int64_t> loaded = 0;
    const std::int64_t kept = static_cast<std::int64_t>(fs::file_size(folder / kFile)) - (9 << 20);
    const Progress progress({}, [&](const ProgressUpdate& update) {
      if (update.done < update.total) fs::resize_file(folder / kFile, static_cast<std::uintmax_t>(kept));
    });
    const int threadsBefore = threadsOfProcess();
    const auto cut = loadWeights(program, plan, {{folder, {}}, 0, false, false, areWritten}, loaded, progress);
    QVERIFY(!cut);
    QCOMPARE(cut.error().code, ErrorCode::BadInput);
    const QString message = QString::fromStdString(cut.error().message);
    QVERIFY2(message.startsWith("Cannot load b: " + QString::fromStdString((folder / kFile).string())) &&
                 message.endsWith("before its announced end: the file is truncated. Get a complete copy.") &&
                 message.count("truncated") == 1,
             qPrintable(message));
    QCOMPARE(loaded.load(), std::int64_t(16 << 20));
    QCOMPARE(threadsOfProcess(), threadsBefore);
  }

  /// The stop is requested when the first parameter has its memory, so only reading follows.
  void stopsInTheMiddleOfAParameter() {
    const Threads several(3);
    const fs::path folder = folderOf(at::zeros({2, 4 << 20}), DType::Float32);
    const program::RankProgram plan = halves();
    Program program = bound(aliasOf({"a", "b"}, {1, 4 << 20}));
    const int threadsBefore = threadsOfProcess();
    std::atomic<std::int64_t> loaded = 0;
    std::stop_source stop;
    const auto stopping = std::make_shared<StopsAtMemory>(stop);
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, stopping);
    const auto stopped =
        loadWeights(program, plan, {{folder, {}}, 0, false, false, true}, loaded, Progress(stop.get_token()));
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
    const QString message = QString::fromStdString(stopped.error().message);
    QVERIFY2(message.startsWith("Cannot load a: ") && message.endsWith("Stopped while loading weights."),
             qPrintable(message));
    QCOMPARE(loaded.load(), std::int64_t(0));
    QCOMPARE(threadsOfProcess(), threadsBefore);
  }

  /// Maps the file's own pages from the slice's offset on. Writes to them are private to this process.
  void aStretchOfAFileIsTheParameter_data() {
    QTest::addColumn<int>("rank");
    QTest::addColumn<bool>("areWritten");
    for (int rank : {0, 1, 2})
      for (bool areWritten : {false, true})
        QTest::addRow("rank %d%s", rank, areWritten ? ", written" : "") << rank << areWritten;
  }
  void aStretchOfAFileIsTheParameter() {
    QFETCH(int, rank);
    QFETCH(bool, areWritten);
    const graph::Shape shape{3 * 1031, 1027}, local{1031, 1027};
    const at::Tensor whole = at::arange(graph::elementCount(shape), at::kFloat).view(shape);
    const fs::path folder = folderOf(whole, DType::Float32);
    program::RankProgram plan;
    plan.parameters.push_back(parameter("w", shape, DType::Float32, local, {"w", kFile, 0, rank * 1031, 1031}, 3));
    Program program = bound(aliasOf({"w"}, local));
    std::atomic<std::int64_t> loaded = 0;
    AllocationCounter counter;
    const WeightReport report =
        need(loadWeights(program, plan, {{folder, {}}, rank, false, false, areWritten}, loaded));
    QCOMPARE(report.bytesRead, program::shardBytes(plan.parameters, rank));
    QCOMPARE(counter.allocated(), report.bytesRead);
    QCOMPARE(counter.largest(), report.bytesRead);
    QCOMPARE(report.inUse.size(), std::size_t(areWritten ? 0 : 1));
    const at::Tensor tensor = program.given(program.graph().findValue("w"));
    COMPARE_TENSORS(tensor, whole.narrow(0, rank * 1031, 1031), 0);
    tensor.zero_();
    QVERIFY(checkUnwritten(report));
    const formats::SafetensorsFile file = need(formats::SafetensorsFile::open(folder / kFile));
    float first = -1;
    need(file.read(*file.find("w"), rank * report.bytesRead, std::as_writable_bytes(std::span(&first, 1))).map([] {
      return 0;
    }));
    QCOMPARE(first, static_cast<float>(rank) * 1031 * 1027);
  }

  void writesToAFileInUseAreDetected_data() {
    QTest::addColumn<bool>("isCutOff");
    QTest::newRow("cut off") << true;
    QTest::newRow("written to") << false;
  }
  void writesToAFileInUseAreDetected() {
    QFETCH(bool, isCutOff);
    const fs::path folder = folderOf(at::zeros({2, 4 << 20}), DType::Float32);
    Program program = bound(aliasOf({"a", "b"}, {1, 4 << 20}));
    std::atomic<std::int64_t> loaded = 0;
    const WeightReport report = need(loadWeights(program, halves(), {{folder, {}}, 0}, loaded));
    QVERIFY(checkUnwritten(report));
    if (isCutOff) fs::resize_file(folder / kFile, fs::file_size(folder / kFile) - 1);
    if (!isCutOff) std::fstream(folder / kFile, std::ios::in | std::ios::out | std::ios::binary).seekp(4096).put('x');
    const auto written = checkUnwritten(report);
    QVERIFY(!written);
    QCOMPARE(written.error().code, ErrorCode::BadInput);
    QVERIFY2(written.error().message.starts_with((folder / kFile).string() + " was written to while "),
             written.error().message.c_str());
  }

  void threadsShareThePartsAndTheFirstErrorEndsThem() {
    for (int threads : {1, 2, 5}) {
      std::vector<std::atomic<int>> done(100);
      QVERIFY(onThreads(threads, std::ssize(done), [&](std::int64_t part) -> Result<void> {
        ++done[static_cast<std::size_t>(part)];
        return {};
      }));
      for (const auto& times : done) QCOMPARE(times.load(), 1);
      std::atomic<int> begun = 0;
      const auto failed = onThreads(threads, 1'000'000, [&](std::int64_t part) -> Result<void> {
        ++begun;
        if (part % 7 == 3) return fail(ErrorCode::BadInput, "part of no use");
        return {};
      });
      QVERIFY(!failed && failed.error().message == "part of no use");
      // When the first part failed, each thread may have been in one part or have failed itself.
      QVERIFY2(begun < 1000, std::to_string(begun).c_str());
      const auto thrown = onThreads(threads, 3, [](std::int64_t) -> Result<void> { throw std::bad_alloc(); });
      QVERIFY(!thrown && thrown.error().code == ErrorCode::Environment);
      QVERIFY(onThreads(threads, 0, [](std::int64_t) -> Result<void> { return fail(ErrorCode::BadInput, "none"); }));
    }
  }

  void namesAllParametersThatAreMissing() {
    program::RankProgram plan;
    plan.seed = 3;
    for (const char* name : {"a.weight", "b.weight"}) {
      plan.parameters.push_back({name, {DType::Float32, {4}}, DType::Float32, {4}, {}, {{{name, "", -1, 0, 0}}}});
    }
    const char* const text =
        "a.weight: f32[4] = parameter\nb.weight: f32[4] = parameter\n"
        "add_0: f32[4] = aten::add.Tensor(a.weight, b.weight)\nreturn y=add_0\n";
    Program program = bound(text);
    std::atomic<std::int64_t> loaded = 0;
    const auto missing = loadWeights(program, plan, {{m_folder.path().toStdString(), {}}, 0}, loaded);
    QVERIFY(!missing);
    for (const char* words : {"a.weight, b.weight", "--init-missing", "--skip-weights"}) {
      QVERIFY2(missing.error().message.find(words) != std::string::npos, missing.error().message.c_str());
    }
    const WeightReport report =
        need(loadWeights(program, plan, {{m_folder.path().toStdString(), {}}, 0, false, true}, loaded));
    QCOMPARE(report.initialised.size(), std::size_t(2));
    QCOMPARE(report.bytesRead, std::int64_t(0));
    COMPARE_TENSORS(runAlone(program)[0].second, at::full({4}, 2.0), 0);
  }

  void namesAFewOfManyThatAreMissing() {
    program::RankProgram plan;
    std::string text;
    for (int i = 0; i < 300; ++i) {
      const std::string name = "layer" + std::to_string(i);
      plan.parameters.push_back({name, {DType::Float32, {4}}, DType::Float32, {4}, {}, {{{name, "", -1, 0, 0}}}});
      text += name + ": f32[4] = parameter\n";
    }
    Program program = bound(text + "return y=layer0\n");
    std::atomic<std::int64_t> loaded = 0;
    const auto missing = loadWeights(program, plan, {{m_folder.path().toStdString(), {}}, 0}, loaded);
    QVERIFY(!missing);
    const std::string phrase =
        "lacks 300 of the model's 300 parameters: layer0, layer1, layer2 and 297 more. Use --init";
    QVERIFY2(missing.error().message.find(phrase) != std::string::npos, missing.error().message.c_str());
  }
};

QTEST_GUILESS_MAIN(ExecLoadingTest)
#include "tst_loading.moc"
