#pragma once
/// Bytes of a program's live values, by storage. Values that share memory count once. Views of weights, constants or
/// inputs do not count.
///
/// The interpreting thread calls `add`, `release` and `pin`. Any thread may read the sizes.
#include "graph/graph.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cleave::torch_rank {

class LiveMemory {
 public:
  /// Resets everything, including the peak. Call this before a run.
  void reset();
  /// Excludes the tensor's memory, which outlives the run and is not an activation.
  void pin(const at::Tensor& tensor);
  void add(graph::ValueId value, const at::Tensor& tensor);
  void release(graph::ValueId value);

  std::int64_t liveBytes() const { return m_live.load(std::memory_order_relaxed); }
  std::int64_t peakBytes() const { return m_peak.load(std::memory_order_relaxed); }
  /// The current node, or -1.
  std::int32_t currentNode() const { return m_node.load(std::memory_order_relaxed); }
  void setCurrentNode(std::int32_t node) { m_node.store(node, std::memory_order_relaxed); }

 private:
  using Key = const c10::StorageImpl*;
  struct Entry {
    std::int64_t bytes = 0;
    int values = 0;
  };
  std::unordered_set<Key> m_pinned;
  std::unordered_map<Key, Entry> m_storages;
  std::unordered_map<std::uint32_t, Key> m_storageOf;  ///< by raw ValueId
  std::atomic<std::int64_t> m_live{0}, m_peak{0};
  std::atomic<std::int32_t> m_node{-1};
};

}  // namespace cleave::torch_rank
