#pragma once
/// The steps behind `makePlan`, one file each. Internal to this room and its tests.
#include "plan/plan.h"

#include <memory>
#include <string>
#include <vector>

namespace cleave::plan {

/// Layers in graph order with the flags the reference names them by. (annotate.cpp)
std::vector<LayerPlan> annotate(const PlanRequest& request, Standings& standings);

/// What a user should know before running: nothing split, or big layers replicated. (warnings.cpp)
std::vector<std::string> warningsFor(const Plan& plan);

/// The rank program. (replace.cpp)
struct Replaced {
  std::shared_ptr<const Graph> program;
  std::vector<ValueId> valueOf;  ///< see Plan::programValueOf
  std::vector<CollectivePlan> collectives;
};
Result<Replaced> replace(const PlanRequest& request);

/// Parameters in name order with their pieces; what the checkpoint lacks of them, and its tensors that are not used,
/// become warnings. (shard_map.cpp)
Result<ShardMap> shardMap(const PlanRequest& request, std::vector<std::string>& warnings);

/// `model`: the ATen graph, which knows how parameters are stored. (predict.cpp)
MemoryPrediction predictMemory(const Graph& program, const ShardMap& parameters, const Graph& model);

}  // namespace cleave::plan
