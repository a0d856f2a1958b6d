#pragma once
/// A rank's memory in the step that it recorded, by purpose, compared with the plan's prediction.
///
/// | part                                        | measured (libtorch/rank/memory/memory_ledger.h)   | predicted |
/// |---------------------------------------------|--------------------------------------------|-----------------------|
/// | parameters, gradients, optimizer states,    | the most at once                           | solve/cost/           |
/// | inputs and constants                        |                                            | cost_model.h          |
/// | saved activations (training only)           | the most at once                           | the same              |
/// | transient                                   | the peak minus the rows above              | the same              |
///
/// Context is the memory of the process outside its allocator: LibTorch's own on CPUs, CUDA's on GPUs.
#include "plan/plan.h"
#include "protocol/events.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct MemoryLine {
  std::string_view name;  ///< "saved activations"
  std::int64_t measured = 0;
  std::optional<std::int64_t> predicted;  ///< nullopt: the plan does not predict this part
};

/// Bytes that a node of the ATen graph saves for the backward pass.
struct NodeDifference {
  graph::NodeId node;
  std::int64_t measured = 0, predicted = 0;
};

struct MemoryComparison {
  std::vector<MemoryLine> lines;
  MemoryLine peak;
  std::vector<NodeDifference> largest;  ///< the few nodes with the largest differences in saved activations, in order
  double off() const;                   ///< relative error of the peak: measured / predicted - 1
};

/// `isTraining`: a training step; otherwise a forward pass. `context`: see above; 0: unknown. `replicas`: see
/// RunRequest.
MemoryComparison compareMemory(const protocol::MemoryAccount& account, const plan::Plan& plan, bool isTraining,
                               std::int64_t context, int replicas = 1);

/// "rank 0's memory (predicted): 1.20 GiB parameters (1.20 GiB), ...". If saved activations differ by more than a
/// tenth, it lists the nodes with the largest differences.
std::string memoryText(const MemoryComparison& comparison, const plan::Plan& plan, int rank);

}  // namespace cleave::pipeline
