#include "libtorch/rank/process/calibration.h"

#include "base/exhaustion.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "libtorch/rank/process/membership.h"

#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cleave::torch_rank {
namespace {

using protocol::Measured;
using protocol::Phase;
using Clock = std::chrono::steady_clock;

struct Product {
  std::int64_t tokens, in, out;
  std::int64_t flops() const { return 2 * tokens * in * out; }
};
/// From small layers to layers that fill a GPU. A CPU skips sizes that would take too long.
constexpr std::array<Product, 6> kProducts{{{256, 512, 512},
                                            {256, 1024, 1024},
                                            {512, 2048, 2048},
                                            {1024, 4096, 4096},
                                            {4096, 4096, 4096},
                                            {8192, 8192, 8192}}};
constexpr std::array<std::pair<Measured, at::ScalarType>, 3> kTypes{
    {{Measured::Half, at::kBFloat16}, {Measured::Float32, at::kFloat}, {Measured::Float64, at::kDouble}}};
constexpr std::array kCollectives{Measured::AllReduce, Measured::AllGather, Measured::ReduceScatter};
constexpr std::array<std::int64_t, 8> kCollectiveBytes{1 << 10,   4 << 10, 16 << 10, 64 << 10,
                                                       256 << 10, 1 << 20, 4 << 20,  16 << 20};
// Three tensors of this size exceed any cache.
constexpr std::int64_t kPassBytesOnCpu = 32 << 20, kPassBytesOnGpu = 256 << 20;

constexpr double kSecondsEach = 0.1, kLongestCall = 0.15;
constexpr int kLeastRepeats = 5, kMostRepeats = 100;
// Marks in a device's queue are microseconds apart, so several shorter calls are timed together.
constexpr double kSecondsBetweenMarks = 1e-3;
constexpr int kMostCallsBetweenMarks = 64;

struct Sampling {
  int repeats = 1, callsEach = 1;
};

class CalibrationRun {
 public:
  CalibrationRun(const RankRequest& request, const EventSink& sink, CallTime& calls, const Progress& progress)
      : m_request(request), m_sink(sink), m_calls(calls), m_progress(progress) {}

  Result<protocol::RankResult> run() {
    auto result = bridge::translated([&] { return runAll(); });
    if (const auto why = !result && m_collectives ? m_collectives->abortReason() : std::nullopt)
      return tl::unexpected(*why);
    return result;
  }

 private:
  Result<protocol::RankResult> runAll() {
    CLEAVE_TRY(m_gpu, openGpu(m_request));
    if (m_gpu) m_device = m_gpu->runtime.queue.device;
    m_sink(helloOf(m_request, m_gpu));
    m_sampler = std::make_unique<MemorySampler>(
        [this](protocol::MemorySample& s) { fillDevice(s, m_gpu, m_allocations); }, m_sink);
    raiseDescriptorLimit();
    m_sink(protocol::PhaseChange{Phase::Connecting, 0, 0});
    CLEAVE_TRY(m_collectives, connectPeers(m_request, m_gpu, {{"plan", "calibration"}}));
    m_collectives->setCallTime(&m_calls);
    const c10::InferenceMode noGradients;
    m_sink(protocol::PhaseChange{Phase::WarmUp, 0, 0});
    CLEAVE_TRY_VOID(slowest(0));
    CLEAVE_TRY_VOID(measureProducts());
    CLEAVE_TRY_VOID(measureMemory());
    if (m_request.worldSize > 1) CLEAVE_TRY_VOID(measureCollectives());
    // All ranks wait here, because a rank that exits early breaks the connections of the others.
    CLEAVE_TRY_VOID(m_collectives->barrier());
    m_sink(protocol::PhaseChange{Phase::Done, 0, 0});
    protocol::RankResult result;
    result.peak = protocol::peakOf(m_sampler->sampleNow());
    m_sink(result);
    m_collectives->close();
    return result;
  }

  using Call = std::function<Result<void>()>;

  Result<void> measureProducts() {
    for (const auto& [what, type] : kTypes) {
      double perFlop = 0;
      for (const Product& product : kProducts) {
        advance();
        if (perFlop * static_cast<double>(product.flops()) > kLongestCall) continue;
        const auto options = at::TensorOptions(type).device(m_device);
        // The layout of a weight in a module: [out, in].
        const at::Tensor x = at::rand({product.tokens, product.in}, options);
        const at::Tensor weight = at::rand({product.out, product.in}, options);
        CLEAVE_TRY(const double seconds, measure(what, product.flops(), [&]() -> Result<void> {
                     at::mm(x, weight.t());
                     return {};
                   }));
        perFlop = seconds / static_cast<double>(product.flops());
      }
    }
    return {};
  }

  Result<void> measureMemory() {
    advance();
    const std::int64_t bytes = m_gpu ? kPassBytesOnGpu : kPassBytesOnCpu;
    const at::Tensor a = at::ones({bytes / 4}, m_device), b = at::ones({bytes / 4}, m_device);
    at::Tensor sum = at::zeros({bytes / 4}, m_device);
    return withoutValue(measure(Measured::Memory, 3 * bytes, [&]() -> Result<void> {
      at::add_out(sum, a, b);
      return {};
    }));
  }

  Result<void> measureCollectives() {
    for (const Measured what : kCollectives) {
      double perByte = 0;
      for (const std::int64_t wanted : kCollectiveBytes) {
        advance();
        const std::int64_t ranks = m_request.worldSize;
        const std::int64_t part = std::max<std::int64_t>(1, wanted / 4 / ranks), bytes = 4 * part * ranks;
        if (perByte * static_cast<double>(bytes) > kLongestCall) continue;
        CLEAVE_TRY(const double seconds, measure(what, bytes, callOf(what, part)));
        perByte = seconds / static_cast<double>(bytes);
      }
    }
    return {};
  }

  /// `part`: number of elements in one rank's part of the tensor.
  Call callOf(Measured what, std::int64_t part) {
    const bool isGather = what == Measured::AllGather;
    at::Tensor x = at::zeros({isGather ? part : part * m_request.worldSize}, m_device);
    if (isGather) return [this, x] { return withoutValue(m_collectives->allGather(x, 0)); };
    if (what == Measured::ReduceScatter) return [this, x] { return withoutValue(m_collectives->reduceScatter(x, 0)); };
    // Moves the tensor, so that it is reduced in place, as in a run.
    return [this, x]() mutable -> Result<void> {
      CLEAVE_TRY(x, m_collectives->allReduce(std::move(x), Reduction::Sum));
      return {};
    };
  }

  template <class T>
  static Result<void> withoutValue(const Result<T>& result) {
    return result ? Result<void>() : tl::unexpected(result.error());
  }

  /// The median of the slowest rank, in seconds.
  Result<double> measure(Measured what, std::int64_t amount, const Call& call) {
    CLEAVE_TRY_VOID(times({}, call));  // warm-up: touches memory, selects kernels, connects
    CLEAVE_TRY(const std::vector<double> first, times({}, call));
    CLEAVE_TRY(const double estimate, slowest(first.front()));
    CLEAVE_TRY(std::vector<double> seconds, times(samplingFor(estimate), call));
    std::sort(seconds.begin(), seconds.end());
    const std::size_t middle = seconds.size() / 2;
    const double median = seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
    m_sink(protocol::Measurement{what, amount, at::get_num_threads(), static_cast<std::int32_t>(seconds.size()), median,
                                 seconds.front(), seconds.back()});
    return slowest(median);
  }

  Sampling samplingFor(double seconds) const {
    const double each = std::max(seconds, 1e-6);
    Sampling sampling;
    if (m_gpu)
      sampling.callsEach = std::clamp(static_cast<int>(kSecondsBetweenMarks / each), 1, kMostCallsBetweenMarks);
    sampling.repeats =
        std::clamp(static_cast<int>(kSecondsEach / (each * sampling.callsEach)), kLeastRepeats, kMostRepeats);
    return sampling;
  }

  /// The duration of a call in seconds, for each repetition.
  Result<std::vector<double>> times(Sampling sampling, const Call& call) {
    const auto mark = [&] { return m_gpu ? m_gpu->runtime.queue.mark() : nullptr; };
    std::vector<double> seconds;
    for (int repeat = 0; repeat < sampling.repeats; ++repeat) {
      if (m_progress.cancelled()) return m_progress.cancelledError("calibrating");
      const auto start = Clock::now();
      const auto before = mark();
      for (int i = 0; i < sampling.callsEach; ++i) CLEAVE_TRY_VOID(call());
      const auto after = mark();
      std::chrono::duration<double> all = Clock::now() - start;
      if (after) {
        CLEAVE_TRY_VOID(m_collectives->finish());
        all = after->since(*before);
      }
      seconds.push_back(all.count() / sampling.callsEach);
    }
    return seconds;
  }

  /// The maximum over all ranks. Also synchronizes the ranks.
  Result<double> slowest(double own) {
    const at::Tensor mine = at::full({1}, own, at::TensorOptions(at::kDouble).device(m_device));
    CLEAVE_TRY(const at::Tensor most, m_collectives->allReduce(mine, Reduction::Max));
    CLEAVE_TRY_VOID(m_collectives->finish());
    return most.item<double>();
  }

  void advance() {
    constexpr std::int64_t kTotal =
        kTypes.size() * kProducts.size() + 1 + kCollectives.size() * kCollectiveBytes.size();
    m_sink(protocol::PhaseChange{Phase::Running, m_done++, kTotal});
  }

  const RankRequest& m_request;
  const EventSink& m_sink;
  CallTime& m_calls;
  const Progress& m_progress;
  AllocationCounter m_allocations;  // also present in a run, where it takes a little time
  std::optional<Gpu> m_gpu;
  at::Device m_device = at::kCPU;
  std::unique_ptr<Collectives> m_collectives;
  std::int64_t m_done = 0;
  std::unique_ptr<MemorySampler> m_sampler;  ///< last, because its thread reads the other members
};

}  // namespace

Result<protocol::RankResult> calibrateRank(const RankRequest& request, const EventSink& sink,
                                           const Progress& progress) {
  CallTime calls;
  CalibrationRun rank(request, sink, calls, progress);
  return runWithHeartbeat(sink, calls, [&] { return rank.run(); });
}

}  // namespace cleave::torch_rank
