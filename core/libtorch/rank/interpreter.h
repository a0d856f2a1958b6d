#pragma once
/// Runs a rank program node by node on ATen. LibTorch inside.
///
/// A `Program` is bound once (every operator exists, every argument fits) and run as often as one likes; values are
/// freed as soon as no later node reads them. One thread at a time.
///
///     CLEAVE_TRY(auto program, Program::bind(plan.program, at::kCPU));
///     program.setTensor(graph.findValue("fc.weight"), weight);   // every parameter and input
///     CLEAVE_TRY(auto outputs, program.run(collectives, memory, progress));
#include "base/progress.h"
#include "graph/graph.h"
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/live_memory.h"
#include "libtorch/rank/operator_call.h"
#include "libtorch/rank/step_recorder.h"
#include "libtorch/rank/tape.h"
#include "libtorch/rank/value_watcher.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

class Program {
 public:
  /// BadInput as bindCalls. Constants are put on the device here.
  static Result<Program> bind(std::shared_ptr<const graph::Graph> graph, at::Device device);

  const graph::Graph& graph() const { return *m_graph; }
  at::Device device() const { return m_device; }
  /// Gives a parameter or an input its tensor, on the program's device. BadInput when its type is not the value's.
  Result<void> setTensor(graph::ValueId value, at::Tensor tensor);
  /// What a parameter, an input or a constant was given; undefined before.
  const at::Tensor& given(graph::ValueId value) const { return m_given[value.index()]; }
  Tape::Calls calls() const { return {m_calls, m_given}; }
  /// Is told of every node of a run; null: nobody is. It must outlive this.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  /// Sees every value of a run; null: nobody does. It must outlive this.
  void setWatcher(ValueWatcher* watcher) { m_watcher = watcher; }
  /// What is random in a run follows from the seed and from the number of the pass, and is the same in each run of it.
  void setSeed(std::uint64_t seed) { m_seed = seed; }
  void setPass(std::int64_t pass) { m_pass = pass; }
  /// Of several, the replica whose rows the program computes.
  void setReplica(int replica) { m_draws.replica = replica; }
  /// All outputs in the graph's order. With a tape, which keeps what a backward pass needs; without, whether they can
  /// be differentiated is the caller's mode. An error names the node, its scope and its operands' shapes.
  Result<NamedTensors> run(Collectives& collectives, LiveMemory& memory, const Progress& progress = {},
                           Tape* tape = nullptr);
  /// A value that the given inputs and constants alone lead to, outside a run. BadInput where a parameter or another
  /// rank has a part in it.
  Result<at::Tensor> evaluate(graph::ValueId value) const;

 private:
  Program(std::shared_ptr<const graph::Graph> graph, at::Device device) : m_graph(std::move(graph)), m_device(device) {}
  void planLifetimes();
  Result<void> makeConstants();
  std::vector<c10::IValue> takeArguments(const BoundCall& call, graph::NodeId node, const Tape::Seen& seen);
  Result<std::vector<at::Tensor>> execute(graph::NodeId node, Collectives& collectives, Tape* tape);
  Result<void> runNode(graph::NodeId node, Collectives& collectives, LiveMemory& memory, Tape* tape);
  std::string describeOperands(const graph::Node& node) const;

  std::shared_ptr<const graph::Graph> m_graph;
  at::Device m_device;
  std::uint64_t m_seed = 0;
  std::int64_t m_pass = 0;
  PassDraws m_draws;  ///< of both
  StepRecorder* m_recorder = nullptr;
  ValueWatcher* m_watcher = nullptr;
  std::vector<std::optional<BoundCall>> m_calls;         ///< by NodeId
  std::vector<std::vector<graph::ValueId>> m_deadAfter;  ///< by NodeId: values that no later node and no output reads
  std::vector<at::Tensor> m_given;                       ///< by ValueId: parameters, inputs, constants
  std::vector<at::Tensor> m_values;                      ///< by ValueId: live values of the run
};

}  // namespace cleave::torch_rank
