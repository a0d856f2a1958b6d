#include "launch/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>

namespace cleave::launch {
namespace {

/// The little of NVML that is asked (nvml.h, API version 2; stable since driver 319).
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = void*;

class Nvml {
 public:
  Nvml() : m_library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    m_isReady = m_library && call<int (*)()>("nvmlInit_v2") && call<int (*)()>("nvmlInit_v2")() == 0;
  }
  ~Nvml() {
    if (m_isReady && call<int (*)()>("nvmlShutdown")) call<int (*)()>("nvmlShutdown")();
    if (m_library) ::dlclose(m_library);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Of a GPU by its number or its identifier, as CUDA_VISIBLE_DEVICES has them.
  std::optional<std::int64_t> freeBytes(const std::string& gpu) const {
    if (!m_isReady) return std::nullopt;
    NvmlDevice device = nullptr;
    NvmlMemory memory{};
    unsigned index = 0;
    const auto parsed = std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
    const bool isNumber = parsed.ec == std::errc() && parsed.ptr == gpu.data() + gpu.size();
    const auto byIndex = call<int (*)(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2");
    const auto byName = call<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
    const auto ask = call<int (*)(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
    if (!byIndex || !byName || !ask) return std::nullopt;
    if ((isNumber ? byIndex(index, &device) : byName(gpu.c_str(), &device)) != 0 || ask(device, &memory) != 0)
      return std::nullopt;
    return static_cast<std::int64_t>(memory.free);
  }

 private:
  template <class F>
  F call(const char* name) const {
    return reinterpret_cast<F>(::dlsym(m_library, name));
  }
  void* m_library;
  bool m_isReady = false;
};

}  // namespace

std::optional<std::int64_t> leastFreeGpuMemory(int gpus) {
  const std::vector<std::string> visible = visibleGpus();
  const Nvml nvml;
  std::optional<std::int64_t> least;
  for (int i = 0; i < gpus && i < static_cast<int>(visible.size()); ++i) {
    const auto free = nvml.freeBytes(visible[static_cast<std::size_t>(i)]);
    if (!free) return std::nullopt;
    least = std::min(least.value_or(*free), *free);
  }
  return least;
}

}  // namespace cleave::launch
