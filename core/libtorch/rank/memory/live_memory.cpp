#include "libtorch/rank/memory/live_memory.h"

namespace cleave::torch_rank {

void LiveMemory::pin(const at::Tensor& tensor) { m_pinned.insert(tensor.storage().unsafeGetStorageImpl()); }

void LiveMemory::reset() {
  m_pinned.clear();
  m_storages.clear();
  m_storageOf.clear();
  m_live = 0;
  m_peak = 0;
  m_node = -1;
}

void LiveMemory::add(graph::ValueId value, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const Key key = tensor.storage().unsafeGetStorageImpl();
  if (m_pinned.contains(key)) return;
  Entry& entry = m_storages[key];
  if (entry.values++ == 0) {
    entry.bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
    const std::int64_t live = m_live += entry.bytes;
    if (live > m_peak) m_peak = live;
  }
  m_storageOf[value.raw()] = key;
}

void LiveMemory::release(graph::ValueId value) {
  const auto at = m_storageOf.find(value.raw());
  if (at == m_storageOf.end()) return;
  const auto storage = m_storages.find(at->second);
  m_storageOf.erase(at);
  if (--storage->second.values > 0) return;
  m_live -= storage->second.bytes;
  m_storages.erase(storage);
}

}  // namespace cleave::torch_rank
