#pragma once
/// The device and the use for which costs are computed. Plain data, part of a Problem.
#include "base/femtoseconds.h"
#include "graph/types.h"
#include "program/training.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::solve {

/// One device of a group of equal devices, and the link between them. resources/devices/*.json has the data and their
/// sources, and device_profile.h reads them. The defaults here are those of `generic`, for use without resources.
struct DeviceProfile {
  std::string name = "generic";                 ///< "h100": the argument of --device-profile
  std::string title = "A generic accelerator";  ///< "NVIDIA H100 SXM5 80 GB, NVLink"
  std::int64_t memoryBytes = 80ll << 30;
  double halfFlopsPerSecond = 1e15;   ///< dense bfloat16 and float16 products
  double floatFlopsPerSecond = 5e14;  ///< float32 products with PyTorch's defaults on this device
  double doubleFlopsPerSecond = 5e13;
  double memoryBytesPerSecond = 3e12;
  double linkBytesPerSecond = 4e11;  ///< bandwidth of one device in one direction, as in a ring
  double linkLatencySeconds = 1e-5;  ///< α: the latency of each collective
  struct Citation {
    std::string what, address;
    bool operator==(const Citation&) const = default;
  };
  std::vector<Citation> sources;  ///< sources of the figures
  bool operator==(const DeviceProfile&) const = default;
};

using program::Optimizer;
using program::parseOptimizer;
using program::toText;

/// Bytes for each element of a parameter whose elements have `itemSize`. States are at least float32, and half
/// precision has a float32 master copy. The step updates one parameter after the other, like torch.optim with foreach
/// and fused off. It allocates the gradient in the states' precision, and for AdamW √v and √v / bias correction.
struct OptimizerMemory {
  std::int64_t states = 0;     ///< bytes of the states
  std::int64_t transient = 0;  ///< bytes during the update of the parameter
};
OptimizerMemory optimizerMemory(Optimizer optimizer, std::int64_t itemSize);

/// Largest useful slack: a plan that takes a hundred times as long.
inline constexpr double kMostSlackPercent = 10'000;
/// Reads 0 to kMostSlackPercent, such as "1" or "0.5", with or without "%". nullopt for any other text.
std::optional<double> parseSlack(std::string_view text);
/// "1 %", "0.5 %".
std::string slackText(double percent);

struct CostSettings {
  DeviceProfile profile;
  bool isTraining = false;  ///< forward, backward and the optimizer's states; else forward and the KV cache
  Optimizer optimizer = Optimizer::AdamW;  ///< training only
  bool checkpointsActivations = false;     ///< training only: blocks are recomputed (graph/checkpoints.h)
  /// Byte limit per rank, a hard constraint of `optimal`. nullopt: the profile's memory.
  std::optional<std::int64_t> memoryBudget;
  /// Percent. `optimal` returns the plan with the least memory among the plans that are at most this much slower than
  /// the fastest (optimal/optimum.h); 0: the fastest.
  double slackPercent = 1;
  bool holdsKvCache = true;  ///< inference: keys and values of causal attention stay allocated
  std::int64_t budgetBytes() const { return memoryBudget.value_or(profile.memoryBytes); }
  /// The longest step time that the slack allows if the fastest takes `fastest`.
  Femtoseconds slowest(Femtoseconds fastest) const;
  bool operator==(const CostSettings&) const = default;
};

}  // namespace cleave::solve
