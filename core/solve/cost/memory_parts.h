#pragma once
/// The parts of what a plan needs on one rank: which there are, in which order, and what they are called, for
/// everything that writes or shows them.
#include "solve/cost/cost_model.h"

#include <array>

namespace cleave::solve {

struct MemoryPart {
  std::string_view key;   ///< in files: "saved_activations"
  std::string_view name;  ///< for people: "saved activations"
  std::int64_t bytes = 0;
};
inline constexpr std::size_t kMemoryParts = 7;
/// They add up to PlanCost::bytes().
std::array<MemoryPart, kMemoryParts> memoryParts(const PlanCost& cost);

/// "18.3 GiB: 16.6 GiB parameters, 1.20 GiB KV cache, 512 MiB transient peak": parts of nothing are left out.
std::string memoryText(const PlanCost& cost);

}  // namespace cleave::solve
