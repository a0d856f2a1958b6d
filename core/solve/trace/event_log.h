#pragma once
/// An append-only log of events in chunks: the newest in memory up to a budget, older ones in an unlinked temporary
/// file. One thread appends. Any number of threads read the events before `size()`.
#include "solve/trace/trace.h"

#include <atomic>
#include <mutex>

namespace cleave::solve {

class EventLog {
 public:
  explicit EventLog(std::uint64_t memoryBytes);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Call from the writer only. Environment if the temporary file cannot be written; the log then lacks the event.
  Result<void> append(const Event& event) {
    if (m_fill == m_chunkEvents) CLEAVE_TRY_VOID(startChunk());
    m_writing[m_fill++] = event;
    m_size.store(m_size.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return {};
  }
  StepId size() const { return m_size.load(std::memory_order_acquire); }
  std::size_t read(StepId first, std::span<Event> out) const;
  std::uint64_t memoryBytes() const;

 private:
  using Chunk = std::shared_ptr<Event[]>;
  Result<void> startChunk();
  Result<void> spillOldest();

  std::size_t m_chunkEvents;
  std::size_t m_maxChunksInMemory;
  Event* m_writing = nullptr;  ///< writer only: events of the last chunk
  std::size_t m_fill;          ///< writer only: events in the last chunk
  std::atomic<StepId> m_size = 0;

  mutable std::mutex m_mutex;   ///< guards the next three members; locked only to look up or swap a chunk
  std::vector<Chunk> m_chunks;  ///< null: in the file, at index × chunk bytes
  std::size_t m_firstInMemory = 0;
  int m_file = -1;
};

}  // namespace cleave::solve
