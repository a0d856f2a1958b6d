#include "device.h"

#include "settings.h"

#include <sys/mman.h>

#include <map>
#include <thread>
#include <vector>

namespace cleave::shims {
namespace {

struct Block {
  std::size_t bytes = 0;
  Place place;
  bool isOwn = true;  ///< made by allocate...; false: pinned memory that the caller owns
};

struct Devices {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> blocks;  ///< by their first byte
  std::map<int, std::size_t> used;         ///< bytes per device
  std::map<int, std::vector<Stream*>> streams;
  std::map<int, Stream*> defaultStreams;
};

Devices& devices() {
  static Devices* const all = new Devices;
  return *all;
}

thread_local int current = 0;

std::uintptr_t addressOf(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

/// Devices allocate memory in pages of this size.
std::size_t paged(std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  return (bytes + kPage - 1) / kPage * kPage;
}

/// Maps address space; the system provides pages on the first write.
void* mapMemory(std::size_t bytes, Place place) {
  void* const memory =
      ::mmap(nullptr, paged(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  devices().blocks[addressOf(memory)] = {bytes, place};
  return memory;
}

}  // namespace

void Stream::run(Task task) {
  {
    const std::lock_guard lock(m_mutex);
    if (m_tasks.empty()) return task();
  }
  queue(std::move(task));
}

void Stream::queue(Task task) {
  const std::lock_guard lock(m_mutex);
  m_tasks.push_back(std::move(task));
  if (!m_hasThread) std::thread([this] { work(); }).detach();
  m_hasThread = true;
  m_changed.notify_all();
}

void Stream::work() {
  current = m_device;
  std::unique_lock lock(m_mutex);
  while (true) {
    m_changed.wait(lock, [this] { return !m_tasks.empty(); });
    const Task& task = m_tasks.front();
    lock.unlock();
    task();
    lock.lock();
    m_tasks.pop_front();
    m_changed.notify_all();
  }
}

bool Stream::isIdle() const {
  const std::lock_guard lock(m_mutex);
  return m_tasks.empty();
}

void Stream::synchronize() {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, [this] { return m_tasks.empty(); });
}

void Mark::reach() {
  const std::lock_guard lock(m_mutex);
  m_isReached = true;
  m_time = Clock::now() + std::chrono::microseconds(settings().eventDelayUs);
  m_changed.notify_all();
}

bool Mark::isComplete() const {
  const std::lock_guard lock(m_mutex);
  return m_isReached && Clock::now() >= m_time;
}

void Mark::wait() {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, [this] { return m_isReached; });
  lock.unlock();
  std::this_thread::sleep_until(m_time);
}

int currentDevice() { return current; }
void setCurrentDevice(int device) { current = device; }

Stream* makeStream(int device) {
  auto* const stream = new Stream(device);
  const std::lock_guard lock(devices().mutex);
  devices().streams[device].push_back(stream);
  return stream;
}

Stream& streamOf(cudaStream_t stream) {
  if (stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread) return *reinterpret_cast<Stream*>(stream);
  {
    const std::lock_guard lock(devices().mutex);
    const auto found = devices().defaultStreams.find(current);
    if (found != devices().defaultStreams.end()) return *found->second;
  }
  Stream* const made = makeStream(current);
  const std::lock_guard lock(devices().mutex);
  return *devices().defaultStreams.emplace(current, made).first->second;
}

void synchronizeDevice(int device) {
  std::unique_lock lock(devices().mutex);
  const std::vector<Stream*> streams = devices().streams[device];
  lock.unlock();
  for (Stream* stream : streams) stream->synchronize();
}

std::size_t totalBytes() { return static_cast<std::size_t>(settings().memoryMib) << 20; }

std::size_t freeBytes(int device) {
  const std::lock_guard lock(devices().mutex);
  const std::size_t taken = kContextBytes + devices().used[device];
  return taken < totalBytes() ? totalBytes() - taken : 0;
}

void* allocateDevice(int device, std::size_t bytes) {
  if (paged(bytes) > freeBytes(device)) return nullptr;
  const std::lock_guard lock(devices().mutex);
  devices().used[device] += paged(bytes);
  return mapMemory(bytes, {Place::Kind::Device, device});
}

void* allocatePinned(std::size_t bytes) {
  const std::lock_guard lock(devices().mutex);
  return mapMemory(bytes, {Place::Kind::Pinned, current});
}

bool release(void* memory) {
  const std::lock_guard lock(devices().mutex);
  const auto found = devices().blocks.find(addressOf(memory));
  if (found == devices().blocks.end() || !found->second.isOwn) return false;
  const Block block = found->second;
  if (block.place.kind == Place::Kind::Device) devices().used[block.place.device] -= paged(block.bytes);
  devices().blocks.erase(found);
  ::munmap(memory, paged(block.bytes));
  return true;
}

void pin(void* memory, std::size_t bytes) {
  const std::lock_guard lock(devices().mutex);
  devices().blocks[addressOf(memory)] = {bytes, {Place::Kind::Pinned, current}, /*isOwn=*/false};
}

void unpin(void* memory) {
  const std::lock_guard lock(devices().mutex);
  devices().blocks.erase(addressOf(memory));
}

Place placeOf(const void* memory) {
  const std::lock_guard lock(devices().mutex);
  auto after = devices().blocks.upper_bound(addressOf(memory));
  if (after == devices().blocks.begin()) return {};
  --after;
  return addressOf(memory) < after->first + after->second.bytes ? after->second.place : Place{};
}

}  // namespace cleave::shims
