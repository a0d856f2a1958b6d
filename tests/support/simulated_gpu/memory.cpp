#include "tests/support/simulated_gpu/memory.h"

#include "tests/support/simulated_gpu/settings.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace simulated_gpu {
namespace {

// The sizes in CUDACachingAllocator.cpp.
constexpr std::size_t kStep = 512, kMostSmall = 1 << 20, kSmallSegment = 2 << 20, kLargeSegment = 20 << 20,
                      kLeastOwnSegment = 10 << 20, kSegmentStep = 2 << 20;
constexpr std::size_t kAddressSpace = std::size_t{1} << 40;
// The size of a CUDA context.
constexpr std::int64_t kContext = std::int64_t{300} << 20;

std::size_t roundedUp(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

void onFault(int signal, siginfo_t* info, void*) {
  if (Memory::get().isHostAddress(info->si_addr)) {
    constexpr char kWords[] = "simulated GPU: the host read or wrote device memory\n";
    [[maybe_unused]] const auto written = ::write(2, kWords, sizeof kWords - 1);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

Memory& Memory::get() {
  static auto* one = new Memory;
  return *one;
}

Memory::Memory() : m_capacity(settings().memoryMib << 20) {
  const int file = ::memfd_create("simulated-gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(kAddressSpace)) != 0) std::abort();
  const auto mapped = [&](int access) {
    void* at = ::mmap(nullptr, kAddressSpace, access, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(at);
  };
  m_host = mapped(PROT_NONE);
  m_device = mapped(PROT_READ | PROT_WRITE);
}

bool Memory::isHostAddress(const void* memory) const { return memory >= m_host && memory < m_host + kAddressSpace; }

void Memory::copy_data(void* to, const void* from, std::size_t bytes) const {
  currentStream().push([=, this] { std::memcpy(forKernels(to), forKernels(from), bytes); }, true);
}

c10::DataPtr Memory::allocate(std::size_t bytes) {
  void* memory = bytes > 0 ? take(bytes) : nullptr;
  return {memory, memory, &release, c10::Device(kDevice, m_index)};
}

void Memory::release(void* memory) {
  if (memory) get().give(memory);
}

std::optional<std::size_t> Memory::fit(std::size_t bytes, bool isSmall) {
  const auto found = freeOf(isSmall).lower_bound({bytes, 0});
  if (found == freeOf(isSmall).end()) return std::nullopt;
  const std::size_t at = found->second;
  freeOf(isSmall).erase(found);
  return at;
}

void Memory::addSegment(std::size_t bytes, bool isSmall) {
  const std::size_t size = isSmall                    ? kSmallSegment
                           : bytes < kLeastOwnSegment ? kLargeSegment
                                                      : roundedUp(bytes, kSegmentStep);
  if (m_figures.reserved + static_cast<std::int64_t>(size) + kContext > m_capacity) releaseFreeSegments();
  if (m_figures.reserved + static_cast<std::int64_t>(size) + kContext > m_capacity) throwOutOfMemory(bytes);
  m_blocks[m_next] = {.at = m_next, .bytes = size, .segment = m_next, .isSmall = isSmall};
  m_segments[m_next] = size;
  freeOf(isSmall).emplace(size, m_next);
  m_next += size;
  m_figures.reserved += static_cast<std::int64_t>(size);
}

void Memory::releaseFreeSegments() {
  for (auto segment = m_segments.begin(); segment != m_segments.end();) {
    const Block& first = m_blocks.at(segment->first);
    if (!first.isFree || first.bytes != segment->second) {
      ++segment;
      continue;
    }
    freeOf(first.isSmall).erase({first.bytes, first.at});
    m_figures.reserved -= static_cast<std::int64_t>(first.bytes);
    m_blocks.erase(segment->first);
    segment = m_segments.erase(segment);
  }
}

void Memory::split(Block& block, std::size_t bytes) {
  const std::size_t left = block.bytes - bytes;
  if (block.isSmall ? left < kStep : left <= kMostSmall) return;
  const std::size_t at = block.at + bytes;
  m_blocks[at] = {.at = at, .bytes = left, .segment = block.segment, .isSmall = block.isSmall};
  freeOf(block.isSmall).emplace(left, at);
  block.bytes = bytes;
}

void* Memory::take(std::size_t bytes) {
  std::unique_lock lock(m_mutex);
  ++m_count;
  const auto& fault = settings().outOfMemory;
  if (fault && fault->rank == settings().rank && m_count >= fault->number) throwOutOfMemory(bytes);
  const std::size_t size = roundedUp(bytes, kStep);
  const bool isSmall = size <= kMostSmall;
  auto at = fit(size, isSmall);
  if (!at) {
    addSegment(size, isSmall);
    at = fit(size, isSmall);
  }
  Block& block = m_blocks.at(*at);
  split(block, size);
  block.isFree = false;
  block.requested = bytes;
  m_figures.requested += static_cast<std::int64_t>(bytes);
  m_figures.allocated += static_cast<std::int64_t>(block.bytes);
  m_figures.peakRequested = std::max(m_figures.peakRequested, m_figures.requested);
  m_figures.peakAllocated = std::max(m_figures.peakAllocated, m_figures.allocated);
  void* const memory = m_host + block.at;
  const std::size_t whole = block.bytes;
  if (m_trace) m_trace(memory, static_cast<std::int64_t>(bytes));
  lock.unlock();
  c10::reportMemoryUsageToProfiler(memory, static_cast<std::int64_t>(whole), 0, 0, c10::Device(kDevice, m_index));
  currentStream().push([=, this] { std::memset(forKernels(memory), 0xff, whole); });
  return memory;
}

void Memory::mergeWithNext(std::map<std::size_t, Block>::iterator block) {
  const auto next = std::next(block);
  if (next == m_blocks.end() || !next->second.isFree || next->second.segment != block->second.segment) return;
  freeOf(next->second.isSmall).erase({next->second.bytes, next->second.at});
  block->second.bytes += next->second.bytes;
  m_blocks.erase(next);
}

void Memory::give(void* memory) {
  std::unique_lock lock(m_mutex);
  auto block = m_blocks.find(static_cast<std::size_t>(static_cast<std::byte*>(memory) - m_host));
  TORCH_INTERNAL_ASSERT(block != m_blocks.end() && !block->second.isFree);
  const std::size_t whole = block->second.bytes;
  m_figures.requested -= static_cast<std::int64_t>(block->second.requested);
  m_figures.allocated -= static_cast<std::int64_t>(whole);
  if (m_trace) m_trace(memory, -static_cast<std::int64_t>(block->second.requested));
  // Poisons the block before it is reused, for readers that did not wait for an event.
  try {
    currentStream().push([=, this] { std::memset(forKernels(memory), 0xff, whole); });
  } catch (const c10::Error&) {
    // The device has failed, and a release of memory must not throw.
  }
  block->second.isFree = true;
  mergeWithNext(block);
  if (block != m_blocks.begin()) {
    const auto before = std::prev(block);
    if (before->second.isFree && before->second.segment == block->second.segment) {
      freeOf(before->second.isSmall).erase({before->second.bytes, before->second.at});
      mergeWithNext(before);
      block = before;
    }
  }
  freeOf(block->second.isSmall).emplace(block->second.bytes, block->second.at);
  lock.unlock();
  c10::reportMemoryUsageToProfiler(memory, -static_cast<std::int64_t>(whole), 0, 0, c10::Device(kDevice, m_index));
}

void Memory::throwOutOfMemory(std::size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ",
                   static_cast<int>(m_index), " has a total capacity of ", m_capacity, " bytes.");
}

cleave::torch_rank::DeviceMemory Memory::figures() {
  const std::lock_guard lock(m_mutex);
  cleave::torch_rank::DeviceMemory figures = m_figures;
  figures.deviceTotal = m_capacity;
  figures.deviceFree = m_capacity - m_figures.reserved - kContext;
  return figures;
}

void Memory::forgetPeaks() {
  const std::lock_guard lock(m_mutex);
  m_figures.peakRequested = m_figures.requested;
  m_figures.peakAllocated = m_figures.allocated;
}

void Memory::trace(cleave::torch_rank::AllocationTrace trace) {
  const std::lock_guard lock(m_mutex);
  m_trace = std::move(trace);
}

bool isOnDevice(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDevice; }

at::Tensor forKernels(const at::Tensor& tensor) {
  const at::TensorOptions options(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  const auto* first = static_cast<const std::byte*>(tensor.storage().data()) +
                      tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size());
  return at::from_blob(
      Memory::get().forKernels(first), tensor.sizes(), tensor.strides(), [](void*) {}, options);
}

void reserveWorkspace() {
  static std::mutex mutex;
  static auto* const taken = new std::map<std::pair<std::thread::id, c10::StreamId>, c10::DataPtr>;
  const std::lock_guard lock(mutex);
  c10::DataPtr& workspace = (*taken)[{std::this_thread::get_id(), currentStream().id()}];
  if (!workspace) workspace = Memory::get().allocate(static_cast<std::size_t>(settings().workspaceMib) << 20);
}

void explainSegmentationFaults() {
  struct sigaction action {};
  action.sa_sigaction = &onFault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace simulated_gpu
