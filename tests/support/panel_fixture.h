#pragma once
/// A small graph with two equal layers, and a recorded search over it, for tests of panels.
#include <QTest>

#include "graph/graph_builder.h"
#include "solve/trace/recorder.h"
#include "views/session/session.h"

namespace cleave::views::testing {

inline std::shared_ptr<const graph::Graph> smallGraph() {
  graph::GraphBuilder b("small");
  const ValueId x = b.addInput("x", {graph::DType::Float32, {2, 8}});
  ValueId at = x;
  for (int i = 0; i < 4; ++i) {
    const std::string path = "model.layers." + std::to_string(i);
    const auto scope = [&](const char* name) { return b.scope(path + name, ""); };
    const ValueId up = b.addParameter(path + ".up.weight", {graph::DType::Float32, {16, 8}}, scope(".up"));
    const ValueId down = b.addParameter(path + ".down.weight", {graph::DType::Float32, {8, 16}}, scope(".down"));
    const ValueId wide =
        b.addCall("aten::linear", {at, up, graph::Argument{}}, {{graph::DType::Float32, {2, 16}}}, scope(".up"))[0];
    const ValueId active = b.addCall("aten::relu", {wide}, {{graph::DType::Float32, {2, 16}}}, scope(""))[0];
    at = b.addCall("aten::linear", {active, down, graph::Argument{}}, {{graph::DType::Float32, {2, 8}}},
                   scope(".down"))[0];
  }
  b.addOutput("y", at);
  auto graph = std::move(b).finish();
  if (!graph) qFatal("%s", graph.error().message.c_str());
  return std::make_shared<const graph::Graph>(std::move(*graph));
}

inline std::shared_ptr<const solve::Trace> smallTrace(const std::vector<std::string>& pins = {}) {
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = smallGraph();
  problem->context.worldSize = 2;
  for (const std::string& pin : pins) problem->pins.push_back(*solve::Pin::parse(pin));
  solve::TraceRecorder recorder(problem);
  const auto solved = solve::solve(*problem, solve::Engine::Reference, recorder);
  if (!solved) qFatal("%s", solved.error().message.c_str());
  return recorder.trace();
}

}  // namespace cleave::views::testing
