#include "libtorch/rank/memory/memory_probe.h"

#include "base/exhaustion.h"
#include "base/quantities.h"
#include "libtorch/rank/memory/memory_ledger.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <fmt/format.h>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>

namespace cleave::torch_rank {
namespace {

// Less than 100 ms, so that there are at least ten samples per second despite the scheduler's delays.
constexpr auto kSamplePeriod = std::chrono::milliseconds(80);
constexpr auto kSharePeriod = std::chrono::milliseconds(1000);
// 1/32 of the resident set. Smaller changes hardly change the proportional set size.
constexpr std::int64_t kChangeThatCounts = 32;
// Multiple of the duration of a reading, so that readings use at most 1 % of a rank's time.
constexpr int kPauseOfPss = 100;

/// The value after "Name:" in a /proc file, converted from kB to bytes.
std::int64_t kilobyteField(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      return std::strtoll(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
    }
  }
  return 0;
}

}  // namespace

ProcessMemory processMemory() {
  return {kilobyteField("/proc/self/status", "VmRSS"), kilobyteField("/proc/self/status", "VmHWM")};
}

std::int64_t proportionalSetSize() { return kilobyteField("/proc/self/smaps_rollup", "Pss"); }

// The allocator reports to the object in the thread's profiler slot.
struct AllocationCounter::Scope {
  class Reporter final : public c10::MemoryReportingInfoBase {
   public:
    void reportMemoryUsage(void* memory, std::int64_t size, std::size_t, std::size_t, c10::Device device) override {
      if (!device.is_cpu()) return;  // the device's allocator counts it, for all threads
      if (!followsDevice) record(memory, size);
      raise(peak, allocated += size);
    }
    void record(const void* memory, std::int64_t size) {
      raise(largest, size);
      if (MemoryLedger* const to = ledger) size > 0 ? to->made(memory, size) : to->freed(memory);
    }
    void reportOutOfMemory(std::int64_t size, std::size_t, std::size_t, c10::Device device) override {
      // The CPU allocator calls this before it throws an error without a specific type.
      if (device.is_cpu())
        TORCH_CHECK_WITH(OutOfMemoryError, false,
                         fmt::format("Cannot allocate {}: {}.", bytesText(size), noMemoryInWords()));
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::atomic<std::int64_t> allocated{0}, peak{0}, largest{0};
    std::atomic<MemoryLedger*> ledger{nullptr};
    std::atomic<bool> followsDevice{false};

   private:
    static void raise(std::atomic<std::int64_t>& most, std::int64_t now) {
      std::int64_t before = most.load();
      while (now > before && !most.compare_exchange_weak(before, now)) {
      }
    }
  };
  std::shared_ptr<Reporter> reporter = std::make_shared<Reporter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reporter};
};

AllocationCounter::AllocationCounter() : m_scope(std::make_unique<Scope>()) {}
AllocationCounter::~AllocationCounter() { m_scope->reporter->ledger = nullptr; }
std::int64_t AllocationCounter::allocated() const { return m_scope->reporter->allocated; }
std::int64_t AllocationCounter::peak() const { return m_scope->reporter->peak; }
std::int64_t AllocationCounter::largest() const { return m_scope->reporter->largest; }
void AllocationCounter::resetPeak() { m_scope->reporter->peak = m_scope->reporter->allocated.load(); }
void AllocationCounter::resetLargest() { m_scope->reporter->largest = 0; }
void AllocationCounter::setLedger(MemoryLedger* ledger) { m_scope->reporter->ledger = ledger; }
std::function<void(const void*, std::int64_t)> AllocationCounter::followDevice() {
  m_scope->reporter->followsDevice = true;
  return [reporter = m_scope->reporter](const void* memory, std::int64_t bytes) { reporter->record(memory, bytes); };
}

MemorySampler::MemorySampler(Fill fill, Sink sink, bool isQuiet)
    : m_fill(std::move(fill)), m_sink(std::move(sink)), m_start(std::chrono::steady_clock::now()) {
  if (!isQuiet) m_sampling.emplace(std::chrono::milliseconds(0), kSamplePeriod, [this] { report(); });
}

MemorySampler::~MemorySampler() = default;

protocol::MemorySample MemorySampler::sampleNow() {
  protocol::MemorySample sample;
  sample.timeUs =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - m_start).count();
  const ProcessMemory memory = processMemory();
  sample.rss = memory.rss;
  sample.peakRss = memory.peakRss;
  sample.pss = m_pss;
  try {
    m_fill(sample);
  } catch (...) {
    // The thread that uses the device gets the same error and reports it.
  }
  m_sink(sample);
  return sample;
}

void MemorySampler::report() {
  updateProportionalSetSize();
  sampleNow();
}

/// The kernel walks all pages, on a processor that the rank needs for computation. Once per second would use 3 % of the
/// rank's time.
void MemorySampler::updateProportionalSetSize() {
  const auto start = std::chrono::steady_clock::now();
  if (start < m_pssDue) return;
  m_pssDue = start + kSharePeriod;
  const std::int64_t rss = processMemory().rss;
  if (std::abs(rss - m_rssOfPss) < rss / kChangeThatCounts) return;
  m_rssOfPss = rss;
  m_pss = proportionalSetSize();
  m_pssDue = std::max(m_pssDue, start + kPauseOfPss * (std::chrono::steady_clock::now() - start));
}

}  // namespace cleave::torch_rank
