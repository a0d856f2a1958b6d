#pragma once
/// What a rank's memory looks like from outside and from the allocator, sampled by a thread. No LibTorch in this
/// header.
#include "libtorch/rank/periodic.h"
#include "protocol/events.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace cleave::torch_rank {

class MemoryLedger;

/// Bytes, from /proc/self; 0 where the kernel does not say.
struct ProcessMemory {
  std::int64_t rss = 0, peakRss = 0;
};
ProcessMemory processMemory();
/// Proportional set size: memory shared with other ranks (LibTorch's own code) counted by its share. Slow: walks all
/// mappings.
std::int64_t proportionalSetSize();
/// Counts what LibTorch's allocators hand out on the thread that made it, temporaries inside operators included, from
/// its making to its end; what another thread frees stays counted (see `lent`, collectives.cpp), and what one allocates
/// for itself, such as Gloo's for a gather, is not. The figures may be read from any thread. As long as it counts, the
/// CPU allocator says c10::OutOfMemoryError when there is no memory, as the GPU's does.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  std::int64_t allocated() const;  ///< on CPUs, now
  std::int64_t peak() const;       ///< on CPUs, since the last `forgetPeak`
  void forgetPeak();
  /// Bytes of the largest single allocation on the rank's device since the last `forgetLargest`.
  std::int64_t largest() const;
  void forgetLargest();
  /// Records every allocation on this rank's device and its end; null: nobody does. It must outlive this.
  void setLedger(MemoryLedger* ledger);
  /// For an allocator that logs all threads (NcclRuntime::traceAllocations): `largest` and the ledger follow this log
  /// from here on. It may be called after this counter has ended.
  std::function<void(const void* memory, std::int64_t bytes)> followDevice();

 private:
  struct Scope;
  std::unique_ptr<Scope> m_scope;
};

/// Sends a sample ten times a second from its own thread, until destroyed; a quiet one none by itself. The proportional
/// set size, which takes long to find, is read at most once a second, and where the resident set has changed. A `fill`
/// that throws (a device that has failed) leaves the sample without its figures: the rank's own error says what
/// happened.
class MemorySampler {
 public:
  /// `fill` completes a sample that has the time and the process's memory. Called on the sampling thread.
  using Fill = std::function<void(protocol::MemorySample&)>;
  using Sink = std::function<void(const protocol::Message&)>;
  MemorySampler(Fill fill, Sink sink, bool isQuiet = false);
  ~MemorySampler();
  /// Sends a sample now, from the calling thread, and answers it.
  protocol::MemorySample sampleNow();

 private:
  void report();
  void takeProportionalSetSize();
  Fill m_fill;
  Sink m_sink;
  std::chrono::steady_clock::time_point m_start;
  std::atomic<std::int64_t> m_pss{0};
  std::int64_t m_rssOfPss = 0;  ///< when that was found
  std::chrono::steady_clock::time_point m_pssDue{};
  std::optional<Periodic> m_sampling;  ///< last: its thread reads the others; none: a quiet one
};

}  // namespace cleave::torch_rank
