#pragma once
/// The parts of a plan's memory per rank, with their order and names, for all code that writes or displays them.
#include "solve/cost/cost_model.h"

#include <array>

namespace cleave::solve {

struct MemoryPart {
  std::string_view key;   ///< name in files: "saved_activations"
  std::string_view name;  ///< name in texts: "saved activations"
  std::int64_t bytes = 0;
};
inline constexpr std::size_t kMemoryParts = 7;
/// They add up to PlanCost::bytes().
std::array<MemoryPart, kMemoryParts> memoryParts(const PlanCost& cost);

/// "18.3 GiB: 16.6 GiB parameters, 1.20 GiB KV cache, 512 MiB transient peak", without parts of 0 bytes.
std::string memoryText(const PlanCost& cost);

}  // namespace cleave::solve
