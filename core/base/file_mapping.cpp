#include "base/file_mapping.h"

#include "base/exhaustion.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; Debian 12's C library knows it, older ones do not
#endif

namespace cleave {
namespace {

/// Distance from `offset` back to the start of its page, where the mapping must begin.
std::int64_t beforePage(std::int64_t offset) { return offset % ::sysconf(_SC_PAGESIZE); }

/// A mapping as a signal handler can read it. The handler takes no lock, so an entry is never freed, only reused.
struct Place {
  std::atomic<const std::byte*> begin{nullptr};
  const std::byte* end = nullptr;
  std::string path;
  Place* next = nullptr;
};

std::mutex placesMutex;
std::atomic<Place*> places{nullptr};

void note(const std::byte* begin, const std::byte* end, const std::string& path) {
  const std::lock_guard lock(placesMutex);
  Place* place = places;
  while (place && place->begin.load() != nullptr) place = place->next;
  if (!place) {
    place = new Place;
    place->next = places;
    places = place;
  }
  place->end = end;
  place->path = path;
  place->begin = begin;
}

void forget(const std::byte* begin) {
  const std::lock_guard lock(placesMutex);
  for (Place* place = places; place; place = place->next)
    if (place->begin == begin) place->begin = nullptr;
}

void say(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // a failed write cannot be reported anywhere
}

/// Uses only async-signal-safe calls. The signal then comes again and ends the process.
void reportLostPage(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  std::string_view path;
  for (const Place* place = places; place && path.empty(); place = place->next)
    if (const std::byte* begin = place->begin; begin && begin <= at && at < place->end) path = place->path;
  if (!path.empty()) {
    say(path);
    say(" was truncated, rewritten or became unreadable while this process used it. Run again when nothing writes to "
        "it.\n");
  } else if (info->si_code == BUS_ADRERR) {
    say("Memory shared with other processes is full (see df /dev/shm) or was removed.\n");
  }
  ::raise(signal);
}

}  // namespace

void reportLostPages() {
  struct sigaction action = {};
  action.sa_sigaction = reportLostPage;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigaction(SIGBUS, &action, nullptr);
}

Result<FileMapping> RandomAccessFile::map(std::int64_t offset, std::int64_t bytes) const {
  CLEAVE_TRY_VOID(checkHolds(offset, bytes));
  const std::int64_t before = beforePage(offset);
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(before + bytes), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_NORESERVE, descriptor(), offset - before);
  if (mapping == MAP_FAILED)
    return fail(ErrorCode::Environment, "Cannot map {}: {}.", m_path.string(), reasonInWords(errno));
  FileMapping mapped(*this, offset, bytes);
  mapped.m_data = static_cast<std::byte*>(mapping) + before;
  note(mapped.m_data, mapped.m_data + bytes, m_path.string());
  return mapped;
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : m_file(std::move(other.m_file)),
      m_offset(other.m_offset),
      m_sizeBytes(other.m_sizeBytes),
      m_data(std::exchange(other.m_data, nullptr)) {}

FileMapping::~FileMapping() {
  if (!m_data) return;
  forget(m_data);
  const std::int64_t before = beforePage(m_offset);
  ::munmap(m_data - before, static_cast<std::size_t>(before + m_sizeBytes));
}

Result<void> FileMapping::read(std::int64_t first, std::int64_t bytes) const {
  CLEAVE_CHECK(first >= 0 && bytes >= 0 && first + bytes <= m_sizeBytes);
  const std::int64_t before = beforePage(m_offset + first);
  std::byte* const from = m_data + first - before;
  int error = 0;
  do {
    error = ::madvise(from, static_cast<std::size_t>(before + bytes), MADV_POPULATE_READ) == 0 ? 0 : errno;
  } while (error == EINTR || error == EAGAIN);
  CLEAVE_TRY_VOID(m_file.checkHolds(m_offset + first, bytes));
  // EFAULT: a page cannot be read. EINVAL: an older system does not have this call.
  if (error == EFAULT) error = EIO;
  if (error != 0 && error != EINVAL)
    return fail(ErrorCode::Environment, "Cannot read {}: {}.", m_file.path().string(), reasonInWords(error));
  m_file.countRead(bytes);
  return {};
}

}  // namespace cleave
