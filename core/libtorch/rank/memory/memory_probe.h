#pragma once
/// Samples of a rank's memory, from the system and from the allocator. A thread takes them. This header does not use
/// LibTorch.
#include "libtorch/rank/collectives/periodic.h"
#include "protocol/events.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace cleave::torch_rank {

class MemoryLedger;

/// Sizes in bytes, from /proc/self. 0 if the kernel does not report them.
struct ProcessMemory {
  std::int64_t rss = 0, peakRss = 0;
};
ProcessMemory processMemory();
/// Proportional set size: counts memory that is shared with other ranks (LibTorch's code) by its share. Slow, because
/// the kernel walks all mappings.
std::int64_t proportionalSetSize();
/// Counts LibTorch's allocations on the thread that creates the counter, including temporaries inside operators. Memory
/// that another thread frees stays counted (`withoutOwnership` in collectives.cpp). Memory that another thread
/// allocates, such as Gloo's for a gather, is not counted. Any thread may read the sizes. While a counter exists, the
/// CPU allocator throws c10::OutOfMemoryError for lack of memory, as the GPU's does.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  std::int64_t allocated() const;  ///< current bytes on CPUs
  std::int64_t peak() const;       ///< peak bytes on CPUs since the last `resetPeak`
  void resetPeak();
  /// Bytes of the largest single allocation on the rank's device since the last `resetLargest`.
  std::int64_t largest() const;
  void resetLargest();
  /// Records every allocation and release on this rank's device. May be null. It must outlive the counter.
  void setLedger(MemoryLedger* ledger);
  /// A function for the log of an allocator (NcclRuntime::traceAllocations), which contains all threads. `largest` and
  /// the ledger then follow this log. The function may be called after the counter is destroyed.
  std::function<void(const void* memory, std::int64_t bytes)> followDevice();

 private:
  struct Scope;
  std::unique_ptr<Scope> m_scope;
};

/// Sends at least ten samples per second from its own thread; a quiet one sends only those of `sampleNow`. Reads the
/// proportional set size, which is slow, at most once per second and only if the resident set has changed. If `fill`
/// throws because a device has failed, the sample lacks its values. The rank reports the error.
class MemorySampler {
 public:
  /// `fill` completes a sample that contains the time and the process's memory. Called on the sampling thread.
  using Fill = std::function<void(protocol::MemorySample&)>;
  using Sink = std::function<void(const protocol::Message&)>;
  MemorySampler(Fill fill, Sink sink, bool isQuiet = false);
  ~MemorySampler();
  /// Sends a sample from the calling thread, and returns it.
  protocol::MemorySample sampleNow();

 private:
  void report();
  void updateProportionalSetSize();
  Fill m_fill;
  Sink m_sink;
  std::chrono::steady_clock::time_point m_start;
  std::atomic<std::int64_t> m_pss{0};
  std::int64_t m_rssOfPss = 0;  ///< resident set size when m_pss was read
  std::chrono::steady_clock::time_point m_pssDue{};
  std::optional<Periodic> m_sampling;  ///< last, because its thread reads the other members; nullopt if quiet
};

}  // namespace cleave::torch_rank
