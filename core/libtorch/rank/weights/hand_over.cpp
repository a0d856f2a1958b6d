#include "libtorch/rank/weights/hand_over.h"

#include "base/digest.h"

#include <unordered_map>

namespace cleave::torch_rank {
namespace {

std::unordered_map<std::string_view, graph::ValueId> parametersByName(const graph::Graph& graph) {
  std::unordered_map<std::string_view, graph::ValueId> byName;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind == graph::NodeKind::Parameter)
      byName.emplace(graph.value(node.results.front()).name, node.results.front());
  }
  return byName;
}

}  // namespace

Result<void> handOver(const Program& from, const program::ShardMap& fromParameters, Program& to,
                      const program::ShardMap& toParameters) {
  std::unordered_map<std::string_view, const program::ParameterShards*> loaded;
  for (const program::ParameterShards& parameter : fromParameters) loaded.emplace(parameter.name, &parameter);
  const auto sources = parametersByName(from.graph()), targets = parametersByName(to.graph());
  for (const program::ParameterShards& parameter : toParameters) {
    const auto known = loaded.find(parameter.name);
    const auto source = sources.find(parameter.name), target = targets.find(parameter.name);
    if (known == loaded.end() || source == sources.end() || target == targets.end()) {
      return fail(ErrorCode::BadInput,
                  "Only the second plan has a parameter {}. Create both plans from the same model.", parameter.name);
    }
    // Parts of equal shape may differ: the first half of the rows, or every second block of rows.
    const rules::Placement& placement = known->second->placement;
    if (placement != parameter.placement || known->second->type != parameter.type) {
      return fail(ErrorCode::BadInput,
                  "{} is {} in the first plan and {} in the second, so the plans cannot share loaded weights. Pin the "
                  "second plan to the splits of the first.",
                  parameter.name, placement.text(), parameter.placement.text());
    }
    CLEAVE_TRY_VOID(to.setTensor(target->second, from.given(source->second)));
  }
  return {};
}

std::uint64_t digestOfStorages(const Program& program, const program::ShardMap& parameters) {
  const auto values = parametersByName(program.graph());
  Digest digest;
  for (const program::ParameterShards& parameter : parameters) {
    const auto value = values.find(parameter.name);
    if (value == values.end()) continue;
    const void* address = program.given(value->second).const_data_ptr();
    digest.add(parameter.name);
    digest.add(std::as_bytes(std::span(&address, 1)));
  }
  return digest.value();
}

}  // namespace cleave::torch_rank
