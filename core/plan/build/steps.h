#pragma once
/// The steps of `makePlan`, one file each. Internal to this room and its tests.
#include "plan/build/plan_request.h"
#include "plan/replication/explain_replication.h"

#include <memory>
#include <string>
#include <vector>

namespace cleave::plan {

/// Layers in graph order, with the flags of Optimum. (annotate.cpp)
std::vector<LayerPlan> annotate(const PlanRequest& request, const Explanation& explanation);

/// The rank program: lowered (lowering.h), and for training with sums of gradients (gradient_sums.h). (replace.cpp)
struct Replaced {
  std::shared_ptr<const Graph> program;
  std::vector<ValueId> valueOf;  ///< see Plan::programValueOf
  std::vector<CollectivePlan> collectives;
};
Result<Replaced> replace(const PlanRequest& request);

/// Parameters in name order with their pieces. Parameters that the checkpoint lacks, and unused tensors of it, become
/// warnings. (shard_map.cpp)
Result<ShardMap> shardMap(const PlanRequest& request, std::vector<std::string>& warnings);

/// `model`: the ATen graph, for the stored form of parameters. (predict.cpp)
MemoryPrediction predictMemory(const Graph& program, const ShardMap& parameters, const Graph& model);

}  // namespace cleave::plan
