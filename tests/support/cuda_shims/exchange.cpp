#include "exchange.h"

#include "settings.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace cleave::shims {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
constexpr int kMostRanks = 64;

[[noreturn]] void endBySystemError(const char* what) {
  std::perror(what);
  std::_Exit(2);
}

/// A killed process counts as gone even before its parent has waited for it.
bool isGone(std::int32_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const std::size_t state = line.rfind(')') + 2;
  return state < line.size() && (line[state] == 'Z' || line[state] == 'X');
}

}  // namespace

struct Exchange::Seat {
  std::atomic<std::int32_t> process;
  std::atomic<std::uint64_t> written, read;  ///< chunks
  char identity[64];
  char call[128];
};

/// New segments are zeros, the initial value of all atomics.
struct Exchange::Segment {
  std::atomic<std::uint32_t> changes;  ///< futex: the value differs after each change
  std::atomic<std::int32_t> present;
  Seat seats[kMostRanks];
  char chunks[][kChunkBytes];
};

std::string Exchange::newName() {
  // Memory without a file name, so that killed ranks leave no files.
  const int file = ::memfd_create("cleave_cuda_shims", MFD_CLOEXEC);
  if (file < 0) endBySystemError("CUDA shims: shared memory");
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file);
}

std::unique_ptr<Exchange> Exchange::open(const std::string& name, int rank, int size, const std::string& identity) {
  const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const std::size_t bytes = sizeof(Segment) + static_cast<std::size_t>(size) * kChunkBytes;
  if (size > kMostRanks || ::ftruncate(file, static_cast<off_t>(bytes)) != 0)
    endBySystemError("CUDA shims: shared memory");
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) endBySystemError("CUDA shims: shared memory");
  ::close(file);
  std::unique_ptr<Exchange> exchange(new Exchange(*static_cast<Segment*>(memory), rank, size));
  Seat& own = exchange->m_segment.seats[rank];
  own.process = ::getpid();
  std::snprintf(own.identity, sizeof own.identity, "%s", identity.c_str());
  ++exchange->m_segment.present;
  exchange->announce();
  exchange->waitUntil([&] { return exchange->m_segment.present >= size; });
  return exchange;
}

void Exchange::announce() {
  ++m_segment.changes;
  ::syscall(SYS_futex, &m_segment.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <class Condition>
bool Exchange::waitUntil(Condition&& isMet) {
  constexpr timespec kAbortPollPeriod{0, 10'000'000};
  while (!m_isAborted) {
    const std::uint32_t seen = m_segment.changes;
    if (isMet()) return true;
    ::syscall(SYS_futex, &m_segment.changes, FUTEX_WAIT, seen, &kAbortPollPeriod, nullptr, 0);
  }
  return false;
}

bool Exchange::run(const std::string& call, const char* from, std::size_t bytes, const Read& read) {
  const auto all = [this](std::atomic<std::uint64_t> Seat::*count, std::uint64_t least) {
    return waitUntil([=, this] {
      return std::all_of(m_segment.seats, m_segment.seats + m_size,
                         [&](const Seat& seat) { return (seat.*count) >= least; });
    });
  };
  Seat& own = m_segment.seats[m_rank];
  std::vector<const char*> chunks;
  for (int rank = 0; rank < m_size; ++rank) chunks.push_back(m_segment.chunks[rank]);
  for (std::size_t offset = 0; offset < bytes; offset += kChunkBytes) {
    const std::size_t length = std::min(kChunkBytes, bytes - offset);
    if (!all(&Seat::read, m_chunk)) return false;
    if (from) std::memcpy(m_segment.chunks[m_rank], from + offset, length);
    std::snprintf(own.call, sizeof own.call, "%s", call.c_str());
    own.written = ++m_chunk;
    announce();
    if (!all(&Seat::written, m_chunk)) return false;
    if (offset == 0) compareCalls();
    read(offset, length, chunks);
    own.read = m_chunk;
    announce();
  }
  return !m_isAborted;
}

void Exchange::compareCalls() const {
  for (int rank = 0; rank < m_size; ++rank) {
    const char *const own = m_segment.seats[m_rank].call, *const other = m_segment.seats[rank].call;
    if (std::strcmp(own, other) != 0)
      logLine("mismatch \"" + std::string(own) + "\" here, \"" + other + "\" on rank " + std::to_string(rank));
  }
}

void Exchange::abort() {
  m_isAborted = true;
  announce();
}

void Exchange::waitForAbort() {
  waitUntil([] { return false; });
}

std::optional<int> Exchange::rankOnSameDevice() const {
  for (int rank = 0; rank < m_size; ++rank) {
    if (rank != m_rank && std::strcmp(m_segment.seats[rank].identity, m_segment.seats[m_rank].identity) == 0)
      return rank;
  }
  return {};
}

std::optional<int> Exchange::rankThatIsGone() const {
  for (int rank = 0; rank < m_size; ++rank) {
    if (isGone(m_segment.seats[rank].process)) return rank;
  }
  return {};
}

}  // namespace cleave::shims
