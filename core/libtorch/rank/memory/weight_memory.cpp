#include "libtorch/rank/memory/weight_memory.h"

#include "libtorch/bridge/types.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <new>

namespace cleave::torch_rank {
namespace {

constexpr std::size_t kHugePage = 2 << 20;
/// Smaller parameters would contain too few huge pages.
constexpr std::int64_t kLeastMapped = 4 << 20;

/// Null if there is no memory.
void* mapInHugePages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t needed = (bytes + page - 1) / page * page, reserved = needed + kHugePage;
  void* const mapping = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapping);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  if (before < kHugePage) ::munmap(begin + before + needed, kHugePage - before);
  // Fails on a kernel without huge pages. The mapping then has small pages.
  ::madvise(begin + before, needed, MADV_HUGEPAGE);
  return begin + before;
}

/// Reports the allocation now, and its release when the tensor is destroyed. `release` frees the memory.
template <class Release>
at::Tensor tensorOn(void* memory, const graph::TensorType& type, Release release) {
  const std::int64_t bytes = graph::sizeInBytes(type);
  c10::reportMemoryUsageToProfiler(memory, bytes, 0, 0, at::kCPU);
  const auto forget = [bytes, release = std::move(release)](void* of) mutable {
    release(of);
    c10::reportMemoryUsageToProfiler(of, -bytes, 0, 0, at::kCPU);
  };
  return at::from_blob(memory, type.shape, forget, at::TensorOptions().dtype(bridge::toScalarType(type.dtype)));
}

}  // namespace

bool hasOwnMemory(const graph::TensorType& type, at::Device device) {
  return device.is_cpu() && graph::sizeInBytes(type) >= kLeastMapped;
}

at::Tensor emptyParameter(const graph::TensorType& type, at::Device device) {
  if (!hasOwnMemory(type, device))
    return at::empty(type.shape, at::TensorOptions().dtype(bridge::toScalarType(type.dtype)).device(device));
  const std::int64_t bytes = graph::sizeInBytes(type);
  void* const memory = mapInHugePages(static_cast<std::size_t>(bytes));
  if (!memory) {
    c10::reportOutOfMemoryToProfiler(bytes, 0, 0, device);
    throw std::bad_alloc();
  }
  return tensorOn(memory, type, [bytes](void* mapping) { ::munmap(mapping, static_cast<std::size_t>(bytes)); });
}

at::Tensor mappedParameter(const graph::TensorType& type, FileMapping values) {
  const auto kept = std::make_shared<const FileMapping>(std::move(values));
  return tensorOn(kept->data(), type, [kept](void*) {});  // the mapping ends with its last owner
}

}  // namespace cleave::torch_rank
