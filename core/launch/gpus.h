#pragma once
/// The GPUs that ranks started here may use. No CUDA is loaded to find out.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

/// How CUDA reads CUDA_VISIBLE_DEVICES on a machine with `present` GPUs: numbers and identifiers ("GPU-8932f937…") up
/// to the first that is wrong or comes twice; null: all of them, by number.
std::vector<std::string> visibleGpus(int present, const char* cudaVisibleDevices);
/// The same for this process and machine (from the driver's device files).
std::vector<std::string> visibleGpus();
int localGpuCount();

/// Free bytes of the fullest of the first `gpus` GPUs that this process may use, as the driver's NVML says; nullopt
/// where it does not.
std::optional<std::int64_t> leastFreeGpuMemory(int gpus);

}  // namespace cleave::launch
