#pragma once
/// What a rank's memory was for in the step that it recorded, beside what the plan predicts.
///
/// | part                                        | measured (libtorch/rank/memory_ledger.h)   | predicted             |
/// |---------------------------------------------|--------------------------------------------|-----------------------|
/// | parameters, gradients, optimizer states,    | the most at once                           | solve/cost/           |
/// | inputs and constants                        |                                            | cost_model.h          |
/// | saved activations                           | the most at once, of a training step       | the same; else none   |
/// | transient                                   | what the fullest moment holds beyond these | the same              |
///
/// Context is what the process holds beyond what its allocator handed out: on CPUs LibTorch's own, on GPUs CUDA's.
#include "plan/plan.h"
#include "protocol/events.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct MemoryLine {
  std::string_view name;  ///< "saved activations"
  std::int64_t measured = 0;
  std::optional<std::int64_t> predicted;  ///< nullopt: the plan says nothing of it
};

/// A difference that explains others: bytes that a node of the ATen graph keeps.
struct NodeDifference {
  graph::NodeId node;
  std::int64_t measured = 0, predicted = 0;
};

struct MemoryComparison {
  std::vector<MemoryLine> lines;
  MemoryLine peak;
  std::vector<NodeDifference> largest;  ///< of saved activations, the farthest off first; a few
  double off() const;                   ///< of the peak: measured / predicted - 1
};

/// `isTraining`: of a training step, else of a forward pass. `context`: see above; 0: not known. `replicas`: see
/// RunRequest.
MemoryComparison compareMemory(const protocol::MemoryAccount& account, const plan::Plan& plan, bool isTraining,
                               std::int64_t context, int replicas = 1);

/// "rank 0's memory (predicted): 1.20 GiB (1.20 GiB) parameters, ...", and what is off by more than a tenth, node by
/// node.
std::string memoryText(const MemoryComparison& comparison, const plan::Plan& plan, int rank);

}  // namespace cleave::pipeline
