/// What a rank is given before it runs: weights by slices or from a seed, and inputs.
#include "formats/safetensors.h"
#include "libtorch/rank/fill.h"
#include "libtorch/rank/inputs.h"
#include "libtorch/rank/interpreter.h"
#include "libtorch/rank/memory_ledger.h"
#include "libtorch/rank/memory_probe.h"
#include "libtorch/rank/threads.h"
#include "libtorch/rank/weight_memory.h"
#include "libtorch/rank/weights.h"
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

/// So many threads for LibTorch, and as many as before at the end.
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

/// On each of the ranks the same piece.
program::ParameterShards parameter(const std::string& name, const graph::Shape& shape, DType stored,
                                   const graph::Shape& local, const program::ShardPiece& piece, std::int64_t ranks) {
  return {name,   {DType::Float32, shape},
          stored, local,
          {},     std::vector<std::vector<program::ShardPiece>>(static_cast<std::size_t>(ranks), {piece})};
}

/// Parameters of one shape, and the first as output.
std::string aliasOf(const std::vector<std::string>& names, const graph::Shape& shape) {
  const std::string type = graph::toText(graph::TensorType{DType::Float32, shape});
  std::string text;
  for (const std::string& name : names) text += name + ": " + type + " = parameter\n";
  return text + "alias_0: " + type + " = aten::alias(" + names[0] + ")\nreturn y=alias_0\n";
}

/// Both rows of a tensor of 32 MiB, each a parameter.
program::RankProgram halves() {
  const graph::Shape whole{2, 4 << 20}, row{1, 4 << 20};
  program::RankProgram plan;
  plan.parameters.push_back(parameter("a", whole, DType::Float32, row, {"w", kFile, 0, 0, 1}, 1));
  plan.parameters.push_back(parameter("b", whole, DType::Float32, row, {"w", kFile, 0, 1, 1}, 1));
  return plan;
}

/// Asks for an end as soon as anybody gets memory of some size.
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

  /// With the tensor as "w".
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
      // Two pieces, as fused blocks have: the halves of this rank's part in reverse.
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
      // The allocator agrees: the tensor and the staging, nothing else of size.
      QVERIFY2(counter.peak() <= local[0] * local[1] * 4 + program::kStagingBytes + (64 << 10),
               std::to_string(counter.peak()).c_str());
      const at::Tensor expected =
          at::cat({whole.narrow(dim, start + half, half), whole.narrow(dim, start, half)}, dim).to(at::kFloat);
      COMPARE_TENSORS(runAlone(program)[0].second, expected, 0);
    }
  }

  /// Of 36 MiB in f32: as a whole, in one stretch, and in slices that lie apart.
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
    // LibTorch keeps those that convert.
    if (storedType == DType::Float32) QCOMPARE(threadsOfProcess(), threadsBefore);
    const at::Tensor expected = (dim < 0 ? whole : whole.narrow(dim, start, length)).to(at::kFloat);
    COMPARE_TENSORS(program.given(program.graph().findValue("w")), expected, 0);
  }

  /// A parameter's own mapping counts as LibTorch's memory does, to the byte.
  void memoryOfLargeParametersIsCounted() {
    const graph::TensorType type{DType::Float32, {1025, 1027}};
    const std::int64_t bytes = graph::sizeInBytes(type);
    StepRecorder recorder;
    MemoryLedger ledger(recorder);
    AllocationCounter counter;
    counter.setLedger(&ledger, true);
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
    QVERIFY(::mincore(const_cast<void*>(memory), 1, &isThere) == -1 && errno == ENOMEM);  // the system has it again
  }

  /// The file loses its end between two parameters: the second is in the middle of being read by several threads.
  void aFileThatIsCutOffWhileItIsReadIsOneError() {
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
    const auto cut = loadWeights(program, plan, {{folder, {}}, 0}, loaded, progress);
    QVERIFY(!cut);
    QCOMPARE(cut.error().code, ErrorCode::BadInput);
    const QString message = QString::fromStdString(cut.error().message);
    QVERIFY2(message.startsWith("Cannot load b: " + QString::fromStdString((folder / kFile).string())) &&
                 message.endsWith("before the data it announces: the file is truncated.") &&
                 message.count("truncated") == 1,
             qPrintable(message));
    QCOMPARE(loaded.load(), std::int64_t(16 << 20));
    QCOMPARE(threadsOfProcess(), threadsBefore);
  }

  /// What is asked for once the first parameter has its memory: all that follows is reading.
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

  /// The file's own pages, from wherever in it the slice begins; what is written to them is this process's alone.
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

  void whatIsWrittenToAFileInUseIsNoticed_data() {
    QTest::addColumn<bool>("isCutOff");
    QTest::newRow("cut off") << true;
    QTest::newRow("written to") << false;
  }
  void whatIsWrittenToAFileInUseIsNoticed() {
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
      // Each thread may have been in one part, or have met an error of its own, when the first failed.
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

  void readsInputsAndSaysWhatDoesNotFit() {
    const auto file = std::filesystem::path(m_folder.filePath("inputs.safetensors").toStdString());
    const at::Tensor ids = at::randint(0, 9, {2, 3}, at::kInt);
    const std::vector<formats::TensorView> views{
        {"input_ids", {DType::Int32, {2, 3}}, {static_cast<const std::byte*>(ids.data_ptr()), ids.nbytes()}}};
    QVERIFY(formats::writeSafetensors(file, views));
    Program fits =
        bound("input_ids: i64[2,3] = input\nadd_0: i64[2,3] = aten::add.Scalar(input_ids, 0)\nreturn y=add_0\n");
    QVERIFY(readInputs(fits, file));
    COMPARE_TENSORS(runAlone(fits)[0].second, ids.to(at::kLong), 0);
    Program other = bound("input_ids: i64[2,4] = input\nreturn y=input_ids\n");
    const auto wrong = readInputs(other, file);
    QVERIFY(!wrong && wrong.error().message.find("[2, 3]") != std::string::npos);
    Program more = bound("labels: i64[2,3] = input\nreturn y=labels\n");
    const auto lacking = readInputs(more, file);
    QVERIFY(!lacking && lacking.error().message.find("labels") != std::string::npos);
  }

  /// On the host, before a kernel meets them: on a GPU a wrong index ends the device's context.
  void indicesOfNothingAreNamedBeforeTheRun_data() {
    QTest::addColumn<QByteArray>("program");
    QTest::addColumn<QList<qint64>>("values");
    QTest::addColumn<QString>("complaint");  // empty: they are taken
    const char* const kTable =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\nembedding_0: f32[2,2,2] = aten::embedding(w, ids)\nreturn "
        "y=embedding_0\n";
    const char* const kPart =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\n"
        "vocab_embedding_0: f32[2,2,2] = cleave::vocab_embedding(w, ids, 10, -1)\nreturn y=vocab_embedding_0\n";
    const char* const kShifted =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\nadd_0: i64[2,2] = aten::add.Tensor(ids, 2)\n"
        "view_0: i64[4] = aten::view(add_0, [4])\nembedding_0: f32[4,2] = aten::embedding(w, view_0)\nreturn "
        "y=embedding_0\n";
    const char* const kLoss =
        "ids: i64[2,2] = input\nw: f32[4,5] = parameter\nslice_0: i64[2,2] = aten::slice.Tensor(ids, 1, 0, 2)\n"
        "view_0: i64[4] = aten::view(slice_0, [4])\nloss_0: f32[] = aten::cross_entropy_loss(w, view_0, None, 1, "
        "-7)\nreturn loss=loss_0\n";
    const char* const kFree = "ids: i64[2,2] = input\nadd_0: i64[2,2] = aten::add.Tensor(ids, ids)\nreturn y=add_0\n";
    QTest::newRow("rows of a table") << QByteArray(kTable) << QList<qint64>{0, 4, 1, 2} << "";
    QTest::newRow("one too many") << QByteArray(kTable) << QList<qint64>{0, 4, 5, 2}
                                  << "ids holds 5 at [1, 0], which is none of the 5 rows of the table (0 to 4)";
    QTest::newRow("negative") << QByteArray(kTable) << QList<qint64>{0, -1, 1, 2} << "ids holds -1 at [0, 1]";
    QTest::newRow("a split table has all rows") << QByteArray(kPart) << QList<qint64>{9, 5, 0, 2} << "";
    QTest::newRow("beyond a split table")
        << QByteArray(kPart) << QList<qint64>{9, 10, 0, 2} << "ids holds 10 at [0, 1], which is none of the 10 rows";
    QTest::newRow("behind a view, shifted") << QByteArray(kShifted) << QList<qint64>{-2, 2, 0, 1} << "";
    QTest::newRow("shifted too far") << QByteArray(kShifted) << QList<qint64>{-2, 2, 3, 1} << "ids holds 3 at [1, 0]";
    QTest::newRow("ignored labels") << QByteArray(kLoss) << QList<qint64>{-7, 4, 0, -7} << "";
    QTest::newRow("another loss's ignored label") << QByteArray(kLoss) << QList<qint64>{-100, 4, 0, 1}
                                                  << "ids holds -100 at [0, 0], which is none of the 5 classes";
    QTest::newRow("nothing indexes with it") << QByteArray(kFree) << QList<qint64>{-100, 4, 1000000, 1} << "";
  }
  void indicesOfNothingAreNamedBeforeTheRun() {
    QFETCH(QByteArray, program);
    QFETCH(QList<qint64>, values);
    QFETCH(QString, complaint);
    const std::vector<std::int64_t> numbers(values.begin(), values.end());
    const auto file = std::filesystem::path(m_folder.filePath("ids.safetensors").toStdString());
    const std::vector<formats::TensorView> views{{"ids", {DType::Int64, {2, 2}}, std::as_bytes(std::span(numbers))}};
    QVERIFY(formats::writeSafetensors(file, views));
    Program given = bound(program.constData());
    const auto read = readInputs(given, file);
    QCOMPARE(read.has_value(), complaint.isEmpty());
    if (read) return;
    QCOMPARE(read.error().code, ErrorCode::BadInput);
    QVERIFY2(read.error().message.find(complaint.toStdString()) != std::string::npos, read.error().message.c_str());
  }

  /// Nothing indexes with a mask: any number would be computed with.
  void aMaskSaysYesOrNo_data() {
    QTest::addColumn<QList<qint64>>("values");
    QTest::addColumn<QString>("complaint");
    QTest::newRow("zeros and ones") << QList<qint64>{0, 1, 1, 1} << "";
    QTest::newRow("seven") << QList<qint64>{0, 1, 7, 1}
                           << "attention_mask holds 7 at [1, 0], which is none of 0 (padding) and 1 (a token).";
    QTest::newRow("negative") << QList<qint64>{0, -1, 1, 1}
                              << "attention_mask holds -1 at [0, 1], which is none of 0 (padding) and 1 (a token).";
  }
  void aMaskSaysYesOrNo() {
    QFETCH(QList<qint64>, values);
    QFETCH(QString, complaint);
    const std::vector<std::int64_t> numbers(values.begin(), values.end());
    const auto file = std::filesystem::path(m_folder.filePath("mask.safetensors").toStdString());
    QVERIFY(formats::writeSafetensors(
        file, std::vector<formats::TensorView>{
                  {"attention_mask", {DType::Int64, {2, 2}}, std::as_bytes(std::span(numbers))}}));
    Program given = bound(
        "attention_mask: i64[2,2] = input\nadd_0: i64[2,2] = aten::add.Tensor(attention_mask, attention_mask)\nreturn "
        "y=add_0\n");
    const auto read = readInputs(given, file);
    QCOMPARE(read.has_value(), complaint.isEmpty());
    if (read) return;
    QCOMPARE(read.error().code, ErrorCode::BadInput);
    QVERIFY2(read.error().message.ends_with(complaint.toStdString()), read.error().message.c_str());
  }

  void makesUpInputsWithinTheVocabulary() {
    Program program = bound(
        "input_ids: i64[2,64] = input\nlabels: i64[2,64] = input\nattention_mask: i64[2,64] = input\nw: f32[5,2] = "
        "parameter\n"
        "embedding_0: f32[2,64,2] = aten::embedding(w, input_ids)\nreturn y=embedding_0, i=input_ids, l=labels, "
        "m=attention_mask\n");
    give(program, "w", at::ones({5, 2}));
    QVERIFY(makeInputs(program, 11));
    const auto outputs = runAlone(program);
    QVERIFY(outputs[1].second.min().item<std::int64_t>() == 0 && outputs[1].second.max().item<std::int64_t>() == 4);
    COMPARE_TENSORS(outputs[1].second.to(at::kFloat), outputs[2].second.to(at::kFloat), 0);
    QVERIFY(outputs[3].second.all().item<bool>());
    QVERIFY(digest(outputs[0].second) != digest(outputs[1].second));
  }
};

QTEST_GUILESS_MAIN(ExecLoadingTest)
#include "tst_loading.moc"
