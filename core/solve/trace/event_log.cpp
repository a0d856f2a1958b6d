#include "solve/trace/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cleave::solve {
namespace {

constexpr std::size_t kLargestChunk = 1 << 16;  // 1 MiB of events; each chunk takes the lock once
constexpr std::size_t kSmallestChunk = 1 << 8;

/// Opens a file without a name. It is removed when the last descriptor is closed, even if the program crashes.
Result<int> openUnlinkedFile() {
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  const std::string where = error ? "/tmp" : folder.string();
  const int nameless = ::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (nameless >= 0) return nameless;
  std::string pattern = where + "/cleave-trace.XXXXXX";
  const int fd = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorCode::Environment, "Cannot create a temporary file for the trace in {}: {}.", where,
                std::strerror(errno));
  ::unlink(pattern.c_str());
  return fd;
}

Result<void> writeAll(int fd, const void* data, std::size_t bytes, std::int64_t offset) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(fd, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      return fail(ErrorCode::Environment, "Cannot write the temporary file of the trace: {}.", std::strerror(errno));
    from += put;
    offset += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return {};
}

bool readAll(int fd, void* data, std::size_t bytes, std::int64_t offset) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

EventLog::EventLog(std::uint64_t memoryBytes)
    : m_chunkEvents(std::clamp<std::size_t>(memoryBytes / sizeof(Event) / 4, kSmallestChunk, kLargestChunk)),
      m_maxChunksInMemory(std::max<std::size_t>(1, memoryBytes / (m_chunkEvents * sizeof(Event)))),
      m_fill(m_chunkEvents) {}

EventLog::~EventLog() {
  if (m_file >= 0) ::close(m_file);
}

Result<void> EventLog::startChunk() {
  if (m_chunks.size() - m_firstInMemory >= m_maxChunksInMemory) CLEAVE_TRY_VOID(spillOldest());
  auto chunk = std::make_shared_for_overwrite<Event[]>(m_chunkEvents);
  m_writing = chunk.get();
  m_fill = 0;
  const std::lock_guard lock(m_mutex);
  m_chunks.push_back(std::move(chunk));
  return {};
}

Result<void> EventLog::spillOldest() {
  // Only this thread changes the members, so it reads them without the lock and writes them with it.
  if (m_file < 0) {
    CLEAVE_TRY(const int fd, openUnlinkedFile());
    const std::lock_guard lock(m_mutex);
    m_file = fd;
  }
  const std::size_t index = m_firstInMemory;
  const std::size_t bytes = m_chunkEvents * sizeof(Event);
  CLEAVE_TRY_VOID(writeAll(m_file, m_chunks[index].get(), bytes, static_cast<std::int64_t>(index * bytes)));
  const std::lock_guard lock(m_mutex);
  m_chunks[index].reset();
  ++m_firstInMemory;
  return {};
}

std::size_t EventLog::read(StepId first, std::span<Event> out) const {
  const StepId end = std::min<StepId>(size(), first + out.size());
  std::size_t done = 0;
  while (first + done < end) {
    const StepId at = first + done;
    const std::size_t index = at / m_chunkEvents;
    const std::size_t offset = at % m_chunkEvents;
    const std::size_t count = std::min<std::size_t>(m_chunkEvents - offset, end - at);
    Chunk chunk;
    int file = -1;
    {
      const std::lock_guard lock(m_mutex);
      chunk = m_chunks[index];
      file = m_file;
    }
    if (chunk) {
      std::copy_n(chunk.get() + offset, count, out.data() + done);
    } else if (!readAll(file, out.data() + done, count * sizeof(Event),
                        static_cast<std::int64_t>(at * sizeof(Event)))) {
      break;
    }
    done += count;
  }
  return done;
}

std::uint64_t EventLog::memoryBytes() const {
  const std::lock_guard lock(m_mutex);
  return (m_chunks.size() - m_firstInMemory) * m_chunkEvents * sizeof(Event);
}

}  // namespace cleave::solve
