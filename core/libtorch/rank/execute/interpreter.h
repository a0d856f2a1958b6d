#pragma once
/// Runs a rank program node by node on ATen. This header uses LibTorch.
///
/// A `Program` is bound once, which checks every operator and argument. It may run several times. A value is freed
/// after its last use. Only one thread at a time may use a program.
///
///     CLEAVE_TRY(auto program, Program::bind(plan.program, at::kCPU));
///     program.setTensor(graph.findValue("fc.weight"), weight);   // every parameter and input
///     CLEAVE_TRY(auto outputs, program.run(collectives, memory, progress));
#include "base/progress.h"
#include "graph/graph.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/collectives/step_recorder.h"
#include "libtorch/rank/execute/named_tensors.h"
#include "libtorch/rank/execute/operator_call.h"
#include "libtorch/rank/execute/tape.h"
#include "libtorch/rank/execute/value_watcher.h"
#include "libtorch/rank/memory/live_memory.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

class Program {
 public:
  /// Binds the calls and copies constants to the device. Returns BadInput as bindCalls does.
  static Result<Program> bind(std::shared_ptr<const graph::Graph> graph, at::Device device);

  const graph::Graph& graph() const { return *m_graph; }
  at::Device device() const { return m_device; }
  /// Gives a parameter or an input its tensor, on the program's device. Returns BadInput if the types differ.
  Result<void> setTensor(graph::ValueId value, at::Tensor tensor);
  /// The tensor of a parameter, an input or a constant. Undefined if it has not been set.
  const at::Tensor& given(graph::ValueId value) const { return m_given[value.index()]; }
  Tape::Calls calls() const { return {m_calls, m_given}; }
  /// Records every node of a run. May be null. It must outlive the program.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  /// Receives every value of a run. May be null. It must outlive the program.
  void setWatcher(ValueWatcher* watcher) { m_watcher = watcher; }
  /// Random numbers of a run depend only on the seed and the number of the pass.
  void setSeed(std::uint64_t seed) { m_seed = seed; }
  void setPass(std::int64_t pass) { m_pass = pass; }
  /// The replica whose rows the program computes.
  void setReplica(int replica) { m_draws.replica = replica; }
  /// Runs the program and returns all outputs in the graph's order. With a tape, records for a backward pass. Without,
  /// the caller's autograd mode applies. An error names the node, its scope and the types of its operands.
  Result<NamedTensors> run(Collectives& collectives, LiveMemory& memory, const Progress& progress = {},
                           Tape* tape = nullptr);
  /// Computes a value from inputs and constants only, outside a run. Returns BadInput if it depends on a parameter or
  /// on another rank.
  Result<at::Tensor> evaluate(graph::ValueId value) const;

 private:
  Program(std::shared_ptr<const graph::Graph> graph, at::Device device) : m_graph(std::move(graph)), m_device(device) {}
  void planLifetimes();
  Result<void> makeConstants();
  std::vector<c10::IValue> collectArguments(const BoundCall& call, graph::NodeId node, const Tape::Seen& seen);
  Result<std::vector<at::Tensor>> execute(graph::NodeId node, Collectives& collectives, Tape* tape);
  Result<void> runNode(graph::NodeId node, Collectives& collectives, LiveMemory& memory, Tape* tape);
  std::string describeOperands(const graph::Node& node) const;

  std::shared_ptr<const graph::Graph> m_graph;
  at::Device m_device;
  std::uint64_t m_seed = 0;
  std::int64_t m_pass = 0;
  PassDraws m_draws;  ///< from the seed and the pass
  StepRecorder* m_recorder = nullptr;
  ValueWatcher* m_watcher = nullptr;
  std::vector<std::optional<BoundCall>> m_calls;         ///< by NodeId
  std::vector<std::vector<graph::ValueId>> m_deadAfter;  ///< by NodeId: values without later use, not outputs
  std::vector<at::Tensor> m_given;                       ///< by ValueId: parameters, inputs, constants
  std::vector<at::Tensor> m_values;                      ///< by ValueId: live values of the run
};

}  // namespace cleave::torch_rank
