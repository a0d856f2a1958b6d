#pragma once
/// CUDA version numbers (13000 is 13.0, 12080 is 12.8) and the driver each version needs. Loads no CUDA.
#include <fmt/format.h>

#include <string>

namespace cleave {

inline std::string cudaVersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Oldest branch of NVIDIA's Linux driver that runs programs of this CUDA major version (CUDA Toolkit release notes,
/// table "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility"); 0: not known.
constexpr int leastDriverBranch(int cudaMajor) {
  switch (cudaMajor) {
    case 11: return 450;
    case 12: return 525;
    case 13: return 580;
    default: return 0;
  }
}

/// bits of femtoseconds are 2.6 hours, but training a large model on a slow device takes years per step. 128 bits hold
/// every model on every device with room for sums, so nothing saturates. A class of its own prevents silent narrowing
/// of a 128-bit integer.
inline std::string neededDriverText(int cudaVersion) {
  const int branch = leastDriverBranch(cudaVersion / 1000);
  return branch > 0 ? fmt::format("driver {} or newer", branch)
                    : fmt::format("a driver for CUDA {}", cudaVersionText(cudaVersion));
}

/// Why this driver (0: not loaded) and this CUDA runtime cannot use a GPU; empty: the versions fit together.
inline std::string driverObstacle(int driver, int runtime) {
  if (runtime == 0 || driver / 1000 >= runtime / 1000) return {};
  if (driver == 0)
    return fmt::format("no NVIDIA driver is loaded; CUDA {} needs {}", cudaVersionText(runtime),
                       neededDriverText(runtime));
  return fmt::format("the NVIDIA driver supports CUDA {}; CUDA {} needs {}", cudaVersionText(driver),
                     cudaVersionText(runtime), neededDriverText(runtime));
}

}  // namespace cleave
