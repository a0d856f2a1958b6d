#include "solve/cost/memory_parts.h"

#include "base/quantities.h"

namespace cleave::solve {

std::array<MemoryPart, kMemoryParts> memoryParts(const PlanCost& cost) {
  return {{{"parameters", "parameters", cost.sum.parameters},
           {"gradients", "gradients", cost.sum.gradients},
           {"optimizer", "optimizer states", cost.sum.optimizer},
           {"saved_activations", "saved activations", cost.sum.activations},
           {"kv_cache", "KV cache", cost.sum.kvCache},
           {"inputs_and_constants", "inputs and constants", cost.fixedBytes},
           {"transient_peak", "transient peak", cost.transientPeak}}};
}

std::string memoryText(const PlanCost& cost) {
  std::string text = bytesText(cost.bytes());
  std::string_view before = ": ";
  for (const MemoryPart& part : memoryParts(cost)) {
    if (part.bytes == 0) continue;
    text += fmt::format("{}{} {}", before, bytesText(part.bytes), part.name);
    before = ", ";
  }
  return text;
}

}  // namespace cleave::solve
