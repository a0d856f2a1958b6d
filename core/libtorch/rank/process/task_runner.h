#pragma once
/// Runs the tasks of a rank that is connected, one after the other on the same weights: weights, warm-up, then a
/// forward pass, training or generation, and the outputs. This header uses LibTorch.
///
///     TaskRunner runner({request, progress, events, memory, device, peers, recorder}, *list.order.front());
///     CLEAVE_TRY_VOID(runner.watch(request.watchFile));
///     CLEAVE_TRY(const protocol::RankResult result, runner.run(*list.order[0], 0));
#include "libtorch/rank/collectives/step_recorder.h"
#include "libtorch/rank/execute/value_watcher.h"
#include "libtorch/rank/process/outputs.h"
#include "libtorch/rank/process/peers.h"
#include "libtorch/rank/process/rank_events.h"
#include "libtorch/rank/process/rank_memory.h"
#include "libtorch/rank/process/task_list.h"
#include "libtorch/rank/training/training.h"
#include "libtorch/rank/weights/weights.h"

#include <chrono>
#include <memory>
#include <optional>

namespace cleave::torch_rank {

class TaskRunner {
 public:
  /// What the tasks run with. All of it must outlive the runner.
  struct With {
    const RankRequest& request;
    const Progress& progress;
    const RankEvents& events;
    RankMemory& memory;
    const std::optional<Gpu>& gpu;
    Peers& peers;
    StepRecorder& recorder;
    const program::Mesh& mesh;
  };
  TaskRunner(const With& with, const Task& first) : m_with(with), m_first(first) {}

  /// Reads the values of the first task to record, if the request has some.
  Result<void> readWatchedValues();
  /// `index`: of the task in the run.
  Result<protocol::RankResult> run(Task& task, std::size_t index);

 private:
  struct Running;  ///< the current task
  at::Device device() const { return m_with.gpu ? m_with.gpu->runtime.queue.device : at::Device(at::kCPU); }
  Outputs outputs(const Running& now) const;
  Result<void> provideWeights(Running& now);
  Result<void> load(Running& now);
  Result<void> warmUp(const Running& now);
  Result<void> meet(const Running& now) const;
  Result<void> recordWarm(const Running& now);
  void reportTimes(const Running& now);
  void startRecording();
  void recordCounts(Running& now);
  Result<void> train(Running& now);
  Result<StepDone> trainStep(Running& now, std::int64_t done);
  Result<NamedTensors> runPasses(Running& now);
  Result<NamedTensors> runOnce(const Running& now, std::vector<std::int64_t>& times);
  Result<NamedTensors> generate(Running& now);
  Result<void> gather(Running& now, const NamedTensors& ofReplica);

  const With m_with;
  const Task& m_first;
  WeightReport m_weights;
  std::optional<ValueWatcher> m_watcher;
  std::unique_ptr<Trainer> m_trainer;             ///< the trainer of the last trained task
  std::chrono::steady_clock::time_point m_met{};  ///< end of the barrier in which all ranks met
};

}  // namespace cleave::torch_rank
