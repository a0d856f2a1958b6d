#pragma once
/// The memory of a rank while it runs: what samples report, the peak of the plan's own work, and the kind of each
/// allocation if times are recorded. The run's thread counts; any thread may call `fill`. This header uses LibTorch.
#include "libtorch/rank/memory/live_memory.h"
#include "libtorch/rank/memory/memory_ledger.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "libtorch/rank/process/membership.h"
#include "protocol/events.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace cleave::torch_rank {

class RankMemory {
 public:
  /// Follows the log of the GPU's allocator, if there is a GPU. `gpu` must exist while this object is used.
  void follow(const std::optional<Gpu>& gpu);
  /// Starts a ledger of allocations by the parts of the recorder's step. `recorder` must outlive this object.
  void keepLedger(const StepRecorder& recorder);
  MemoryLedger* ledger() { return m_ledger ? &*m_ledger : nullptr; }
  LiveMemory& live() { return m_live; }
  /// Bytes of the parameters that were loaded so far.
  std::atomic<std::int64_t>& loadedBytes() { return m_loadedBytes; }
  AllocationCounter& allocations() { return m_allocations; }
  /// Bytes of the program's tensors on the rank's device.
  std::int64_t programBytes() const;

  /// Forgets the peaks, and counts from here on: the next task.
  void restartPeak();
  /// Saves the peak and stops counting it until countPeak. Work for the comparison is not part of the plan's
  /// prediction.
  void keepPeak();
  void countPeak();
  /// Does work for the comparison: neither the peak nor the ledger counts it.
  template <class Work>
  void uncounted(Work work) {
    keepPeak();
    m_allocations.setLedger(nullptr);
    work();
    m_allocations.setLedger(ledger());
    countPeak();
  }

  /// Adds the rank's sizes to a sample that has those of the process.
  void fill(protocol::MemorySample& sample) const;

 private:
  const std::optional<Gpu>* m_gpu = nullptr;
  std::optional<MemoryLedger> m_ledger;
  AllocationCounter m_allocations;
  LiveMemory m_live;
  std::atomic<std::int64_t> m_loadedBytes{0};
  std::atomic<std::int64_t> m_peakOfRun{0};  ///< peak bytes until the last keepPeak
  std::atomic<std::int64_t> m_roundingOfRun{0};
  std::atomic<bool> m_countsPeak{true};  ///< the peak is being counted
};

}  // namespace cleave::torch_rank
