#pragma once
/// For which device and for what use costs are counted. Plain data; part of a Problem.
#include "base/femtoseconds.h"
#include "graph/types.h"
#include "program/training.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::solve {

/// One device of a group of equal ones, and the link between them. The data lie in resources/devices/*.json with their
/// sources (device_profile.h reads them); the values here are those of `generic`, for work without resources.
struct DeviceProfile {
  std::string name = "generic";                 ///< "h100": what --device-profile takes
  std::string title = "A generic accelerator";  ///< "NVIDIA H100 SXM5 80 GB, NVLink"
  std::int64_t memoryBytes = 80ll << 30;
  double halfFlopsPerSecond = 1e15;   ///< dense bfloat16 and float16 products
  double floatFlopsPerSecond = 5e14;  ///< float32 products as PyTorch runs them by default on this device
  double doubleFlopsPerSecond = 5e13;
  double memoryBytesPerSecond = 3e12;
  double linkBytesPerSecond = 4e11;  ///< one direction, one device: what a ring sends at
  double linkLatencySeconds = 1e-5;  ///< α: once for each collective
  struct Citation {
    std::string what, address;
    bool operator==(const Citation&) const = default;
  };
  std::vector<Citation> sources;  ///< where the figures come from
  bool operator==(const DeviceProfile&) const = default;
};

using program::Optimizer;
using program::parseOptimizer;
using program::toText;

/// Bytes for each element of a parameter whose elements have `itemSize`. States are at least float32, and half
/// precision has a float32 master copy. The step takes one parameter after the other, as PyTorch's (torch/optim,
/// foreach and fused off): beside its states the gradient in their precision, and AdamW's √v and √v / bias correction.
struct OptimizerMemory {
  std::int64_t states = 0;     ///< kept
  std::int64_t transient = 0;  ///< while a parameter's turn lasts
};
OptimizerMemory optimizerMemory(Optimizer optimizer, std::int64_t itemSize);

/// Largest slack that is of any use: a plan that takes a hundred times as long.
inline constexpr double kMostSlackPercent = 10'000;
/// "1", "0.5": 0 to kMostSlackPercent; a "%" behind it does not matter. nullopt: anything else.
std::optional<double> parseSlack(std::string_view text);
/// "1 %", "0.5 %".
std::string slackText(double percent);

struct CostSettings {
  DeviceProfile profile;
  bool isTraining = false;  ///< forward, backward and the optimizer's states; else forward and the KV cache
  Optimizer optimizer = Optimizer::AdamW;  ///< training only
  bool checkpointsActivations = false;     ///< training only: blocks run again (graph/checkpoints.h)
  /// Bytes one rank may use; a hard constraint of `optimal`. nullopt: the profile's memory.
  std::optional<std::int64_t> memoryBudget;
  /// Per cent. `optimal` answers the plan that holds least among those that take at most this much longer than the
  /// fastest (optimal/optimum.h); 0: the fastest.
  double slackPercent = 1;
  bool holdsKvCache = true;  ///< inference: keys and values of causal attention stay, as generation needs them
  std::int64_t budgetBytes() const { return memoryBudget.value_or(profile.memoryBytes); }
  /// Longest step that the slack admits where the fastest takes this long.
  Femtoseconds slowest(Femtoseconds fastest) const;
  bool operator==(const CostSettings&) const = default;
};

}  // namespace cleave::solve
