#include "libtorch/rank/process/rank_memory.h"

#include <algorithm>

namespace cleave::torch_rank {

void RankMemory::follow(const std::optional<Gpu>& gpu) {
  m_gpu = &gpu;
  if (gpu) gpu->runtime.traceAllocations(m_allocations.followDevice());
}

void RankMemory::keepLedger(const StepRecorder& recorder) {
  m_ledger.emplace(recorder);
  m_allocations.setLedger(&*m_ledger);
}

std::int64_t RankMemory::programBytes() const { return *m_gpu ? (*m_gpu)->programBytes() : m_allocations.allocated(); }

void RankMemory::restartPeak() {
  m_peakOfRun = m_roundingOfRun = 0;
  countPeak();
}

void RankMemory::keepPeak() {
  const std::int64_t now = *m_gpu ? (*m_gpu)->peakBytes() : m_allocations.peak();
  m_peakOfRun = std::max(m_peakOfRun.load(), now);
  if (*m_gpu) m_roundingOfRun = std::max(m_roundingOfRun.load(), (*m_gpu)->peakRounding());
  m_countsPeak = false;
}

void RankMemory::countPeak() {
  *m_gpu ? (*m_gpu)->runtime.resetPeak() : m_allocations.resetPeak();
  m_countsPeak = true;
}

void RankMemory::fill(protocol::MemorySample& sample) const {
  sample.weights = m_loadedBytes;
  sample.activations = m_live.liveBytes();
  sample.peakActivations = m_live.peakBytes();
  sample.programNode = m_live.currentNode();
  fillDevice(sample, *m_gpu, m_allocations);
  sample.peak = m_countsPeak ? std::max(m_peakOfRun.load(), sample.peak) : m_peakOfRun.load();
  if (!m_countsPeak) sample.peakRounding = m_roundingOfRun;
}

}  // namespace cleave::torch_rank
