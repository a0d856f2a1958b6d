#pragma once
/// Device memory: one file that is mapped twice. The host's mapping is PROT_NONE; kernels use the other one. Blocks are
/// split as in CUDA's caching allocator. Any thread may call.
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>

namespace simulated_gpu {

class Memory final : public c10::Allocator {
 public:
  static Memory& get();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  /// The kernels' address of the host's address `memory`.
  void* forKernels(const void* memory) const { return m_device + (static_cast<const std::byte*>(memory) - m_host); }
  bool isHostAddress(const void* memory) const;
  void setDevice(c10::DeviceIndex device) { m_index = device; }
  cleave::torch_rank::DeviceMemory figures();
  void forgetPeaks();
  void trace(cleave::torch_rank::AllocationTrace trace);

 private:
  struct Block {
    std::size_t at = 0, bytes = 0, requested = 0, segment = 0;
    bool isFree = true, isSmall = true;
  };
  using FreeKey = std::pair<std::size_t, std::size_t>;  ///< bytes, offset
  Memory();
  static void release(void* memory);
  void* take(std::size_t bytes);
  void give(void* memory);
  std::optional<std::size_t> fit(std::size_t bytes, bool isSmall);
  void addSegment(std::size_t bytes, bool isSmall);
  void releaseFreeSegments();
  void split(Block& block, std::size_t bytes);
  void mergeWithNext(std::map<std::size_t, Block>::iterator block);
  std::set<FreeKey>& freeOf(bool isSmall) { return isSmall ? m_freeSmall : m_freeLarge; }
  [[noreturn]] void throwOutOfMemory(std::size_t bytes);

  std::mutex m_mutex;
  std::byte *m_host = nullptr, *m_device = nullptr;
  c10::DeviceIndex m_index = 0;
  std::map<std::size_t, Block> m_blocks;  ///< by offset
  std::map<std::size_t, std::size_t> m_segments;
  std::set<FreeKey> m_freeSmall, m_freeLarge;
  std::size_t m_next = 0;  ///< address space is not reused
  std::int64_t m_capacity = 0, m_count = 0;
  cleave::torch_rank::DeviceMemory m_figures;
  cleave::torch_rank::AllocationTrace m_trace;
};

/// The same elements as a CPU tensor at the kernels' address; only for jobs of a stream.
at::Tensor forKernels(const at::Tensor& tensor);
bool isOnDevice(const at::Tensor& tensor);
/// Reserves cuBLAS's workspace for the products of this host thread and stream, once.
void reserveWorkspace();
/// Prints that the host accessed device memory before the process crashes.
void explainSegmentationFaults();

}  // namespace simulated_gpu
