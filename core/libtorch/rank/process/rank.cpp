#include "libtorch/rank/process/rank.h"

#include "libtorch/bridge/errors.h"
#include "libtorch/rank/process/membership.h"
#include "libtorch/rank/process/out_of_memory.h"
#include "libtorch/rank/process/task_runner.h"
#include "libtorch/rank/weights/hand_over.h"

namespace cleave::torch_rank {
namespace {

using protocol::Phase;

/// The phases of a rank. Each takes what the ones before it made.
class RankRun {
 public:
  RankRun(const RankRequest& request, const EventSink& sink, CallTime& calls, const Progress& progress)
      : m_request(request), m_events(sink, request.isQuiet), m_calls(calls), m_progress(progress) {}

  Result<protocol::RankResult> run() {
    auto result = bridge::translated([&] { return runAll(); });
    // Values read from the device after an abort may be wrong, and may have caused this error.
    if (const auto why = !result && m_peers.all ? m_peers.all->abortReason() : std::nullopt)
      return tl::unexpected(*why);
    if (!result && m_memory.ledger() && m_current && isOutOfMemory(result.error())) {
      result.error().message += liveMemoryText(*m_memory.ledger(), *m_current->bound, m_request.training.isAsked());
    }
    return result;
  }

 private:
  Result<protocol::RankResult> runAll() {
    CLEAVE_TRY_VOID(openDevice());
    m_sampler = std::make_unique<MemorySampler>([this](protocol::MemorySample& sample) { m_memory.fill(sample); },
                                                m_events.sink(), m_request.isQuiet);
    CLEAVE_TRY(m_tasks, readTasks(m_request, m_gpu ? m_gpu->runtime.queue.device : at::Device(at::kCPU)));
    m_current = m_tasks.order.front();
    m_runner.emplace(
        TaskRunner::With{m_request, m_progress, m_events, m_memory, m_gpu, m_peers, m_recorder, m_tasks.mesh},
        *m_current);
    CLEAVE_TRY_VOID(m_runner->readWatchedValues());
    CLEAVE_TRY_VOID(checkDescriptors(m_request, m_tasks));
    CLEAVE_TRY_VOID(connect());
    CLEAVE_TRY(protocol::RankResult result, runTasks());
    m_events.enter(Phase::Done);
    result.peak = protocol::peakOf(m_sampler->sampleNow());
    m_events.send(result);
    m_peers.all->close();
    return result;
  }

  Result<void> openDevice() {
    CLEAVE_TRY(m_gpu, openGpu(m_request));
    m_memory.follow(m_gpu);
    if (m_request.recordsTimes) {
      if (m_gpu) m_recorder.setQueue(m_gpu->runtime.queue);
      m_memory.keepLedger(m_recorder);
    }
    m_events.send(helloOf(m_request, m_gpu));
    return {};
  }

  Result<void> connect() {
    const program::Mesh& mesh = m_tasks.mesh;
    m_peers.replicas.own = mesh.replicaOf(m_request.rank);
    m_events.enter(Phase::Connecting);
    CLEAVE_TRY(m_peers.all, connectPeers(m_request, m_gpu, settingsOfAll(m_request, m_tasks)));
    m_peers.all->setCallTime(&m_calls);
    CLEAVE_TRY(m_peers.replica, m_peers.all->neighbours(mesh.tp));
    if (mesh.isReplicated()) {
      CLEAVE_TRY(m_peers.replicas.counterparts, m_peers.all->counterparts(mesh.tp));
    }
    return {};
  }

  /// The result of the last task. Those of several are reported one by one.
  Result<protocol::RankResult> runTasks() {
    protocol::RankResult result;
    for (std::size_t i = 0; i < m_tasks.order.size(); ++i) {
      m_current = m_tasks.order[i];
      CLEAVE_TRY(result, m_runner->run(*m_current, i));
      if (m_tasks.order.size() == 1) break;
      result.peak = protocol::peakOf(m_sampler->sampleNow());
      const std::uint64_t storages = digestOfStorages(*m_current->bound, m_current->program.parameters);
      m_events.send(protocol::ProgramDone{static_cast<std::int32_t>(i), fmt::format("{:016x}", storages), result});
    }
    return result;
  }

  const RankRequest& m_request;
  const RankEvents m_events;
  CallTime& m_calls;
  const Progress& m_progress;
  StepRecorder m_recorder;
  RankMemory m_memory;
  std::optional<Gpu> m_gpu;  ///< nullopt on CPUs
  TaskList m_tasks;
  Task* m_current = nullptr;  ///< the task that runs
  Peers m_peers;
  std::optional<TaskRunner> m_runner;
  std::unique_ptr<MemorySampler> m_sampler;  ///< last, because its thread reads the memory
};

}  // namespace

Result<protocol::RankResult> runRank(const RankRequest& request, const EventSink& sink, const Progress& progress) {
  CallTime calls;
  RankRun rank(request, sink, calls, progress);
  return runWithHeartbeat(sink, calls, [&] { return rank.run(); });
}

}  // namespace cleave::torch_rank
