// Plans of other libraries: an accepted plan names modules, and is converted to demands or sentences without errors.
#include "exchange/foreign_plan.h"
#include "graph/graph_builder.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

namespace {

/// Two projections in sequence, and one beside them.
graph::Graph smallGraph() {
  graph::GraphBuilder builder;
  const graph::TensorType wide{graph::DType::Float32, {8, 8}};
  const auto linear = [&](graph::ValueId x, const std::string& name) {
    const auto scope = builder.scope(name, "Linear");
    const auto weight = builder.addParameter(name + ".weight", wide, scope);
    return builder.addCall("aten::linear", {x, weight, graph::Argument{}}, {wide}, scope)[0];
  };
  graph::ValueId x = builder.addInput("x", wide);
  for (const std::string layer : {"model.layers.0", "model.layers.1"}) {
    x = linear(linear(x, layer + ".mlp.up_proj"), layer + ".mlp.down_proj");
  }
  builder.addOutput("y", linear(x, "lm_head"));
  auto made = std::move(builder).finish();
  CLEAVE_CHECK(made.has_value());
  return std::move(*made);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const graph::Graph kGraph = smallGraph();
  const auto plan = exchange::foreignPlanOf({reinterpret_cast<const char*>(data), size}, "input");
  wasAccepted = plan.has_value();
  if (!plan) {
    nlohmann::json(plan.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  CLEAVE_CHECK(!plan->entries.empty());
  const exchange::ForeignDemands demands = exchange::demandsOf(*plan, kGraph, "llama");
  CLEAVE_CHECK(demands.layers == 5 && demands.namedLayers <= demands.layers);
  CLEAVE_CHECK(demands.problems.empty() != demands.pins.empty());
  for (const std::string& sentence : demands.problems) nlohmann::json(sentence).dump();
  return 0;
}
