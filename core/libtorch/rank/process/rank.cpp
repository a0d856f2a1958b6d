#include "libtorch/rank/process/rank.h"

#include "base/exhaustion.h"
#include "base/quantities.h"
#include "base/throttle.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/execute/value_watcher.h"
#include "libtorch/rank/memory/memory_ledger.h"
#include "libtorch/rank/memory/memory_probe.h"
#include "libtorch/rank/process/membership.h"
#include "libtorch/rank/process/out_of_memory.h"
#include "libtorch/rank/process/outputs.h"
#include "libtorch/rank/process/task.h"
#include "libtorch/rank/training/replicas.h"
#include "libtorch/rank/training/training.h"
#include "libtorch/rank/weights/hand_over.h"
#include "libtorch/rank/weights/shared_weights.h"
#include "libtorch/rank/weights/weights.h"
#include "spec/rank/rank_settings.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <unistd.h>

#include <algorithm>
#include <set>

namespace cleave::torch_rank {
namespace {

using protocol::Phase;

constexpr auto kReportPeriod = std::chrono::milliseconds(50);

class RankRun {
 public:
  RankRun(const RankRequest& request, const EventSink& sink, CallTime& calls, const Progress& progress)
      : m_request(request), m_sink(sink), m_calls(calls), m_progress(progress) {}

  Result<protocol::RankResult> run() {
    auto result = bridge::translated([&] { return runAll(); });
    // Values read from the device after an abort may be wrong, and may have caused this error.
    if (const auto why = !result && m_collectives ? m_collectives->abortReason() : std::nullopt)
      return tl::unexpected(*why);
    if (!result && m_ledger && m_task && isOutOfMemory(result.error())) {
      result.error().message += liveMemoryText(*m_ledger, *m_task->bound, m_request.training.isAsked());
    }
    return result;
  }

 private:
  Result<protocol::RankResult> runAll() {
    CLEAVE_TRY_VOID(openDevice());
    if (m_request.recordsTimes) {
      if (m_gpu) m_recorder.setQueue(m_gpu->runtime.queue);
      m_ledger.emplace(m_recorder);
      m_allocations.setLedger(&*m_ledger);
    }
    m_sink(helloOf(m_request, m_gpu));
    m_sampler = std::make_unique<MemorySampler>([this](protocol::MemorySample& s) { fillSample(s); }, m_sink,
                                                m_request.isQuiet);
    CLEAVE_TRY_VOID(readTasks());
    CLEAVE_TRY_VOID(checkDescriptors());
    CLEAVE_TRY_VOID(connect());
    for (m_index = 0; m_index < m_order.size(); ++m_index) {
      m_task = m_order[m_index];
      CLEAVE_TRY_VOID(runTask());
      if (m_order.size() > 1) reportTask();
    }
    enter(Phase::Done);
    m_result.peak = protocol::peakOf(m_sampler->sampleNow());
    m_sink(m_result);
    m_collectives->close();
    return m_result;
  }

  void enter(Phase phase) { m_sink(protocol::PhaseChange{phase, 0, 0}); }

  Result<void> openDevice() {
    CLEAVE_TRY(m_gpu, openGpu(m_request));
    if (!m_gpu) return {};
    m_device = m_gpu->runtime.queue.device;
    m_gpu->runtime.traceAllocations(m_allocations.followDevice());
    return {};
  }

  Result<void> readTasks() {
    std::vector<RankRequest::Plan> plans{{m_request.planFile}};
    plans.insert(plans.end(), m_request.then.begin(), m_request.then.end());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const auto before = std::find(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(i), plans[i]);
      const auto at = static_cast<std::size_t>(before - plans.begin());
      if (at < i) {
        m_order.push_back(m_order[at]);
        continue;
      }
      CLEAVE_TRY(auto task, readTask(m_request, plans[i], m_device));
      m_order.push_back(m_tasks.emplace_back(std::move(task)).get());
    }
    m_task = m_order.front();
    m_mesh = m_task->mesh(m_request);
    m_replicas.own = m_mesh.replicaOf(m_request.rank);
    return readWatchedValues();
  }

  /// The plan's rank that this rank runs.
  int place() const { return m_mesh.placeOf(m_request.rank); }

  Result<void> runTask() {
    m_result = {};
    m_result.program = m_task->digestText();
    m_replicas.lossShares = m_task->lossShares;
    if (m_index > 0) {
      m_peakOfRun = m_roundingOfRun = 0;
      countPeak();
    }
    CLEAVE_TRY_VOID(provideWeights());
    CLEAVE_TRY_VOID(warmUp());
    if (m_request.training.isAsked()) return train();
    CLEAVE_TRY(const NamedTensors outputs, m_task->generator ? generate() : runProgram());
    keepPeak();
    CLEAVE_TRY_VOID(checkUnwritten(m_weights));
    return gather(outputs);
  }

  void reportTask() {
    m_result.peak = protocol::peakOf(m_sampler->sampleNow());
    m_sink(protocol::ProgramDone{static_cast<std::int32_t>(m_index),
                                 fmt::format("{:016x}", digestOfStorages(*m_task->bound, m_task->program.parameters)),
                                 m_result});
  }

  /// The first task loads the weights; the others use them.
  Result<void> provideWeights() {
    if (m_task->hasWeights) return {};
    m_task->hasWeights = true;
    if (m_index == 0) return load();
    const Task& first = *m_order.front();
    return handOver(*first.bound, first.program.parameters, *m_task->bound, m_task->program.parameters);
  }

  Result<void> readWatchedValues() {
    if (!m_request.watchFile || m_request.training.isAsked()) return {};
    CLEAVE_TRY(auto watched, program::readWatch(*m_request.watchFile, m_mesh.tp));
    CLEAVE_TRY(m_watcher,
               ValueWatcher::make(m_task->bound->graph(), std::move(watched), m_request.rank, m_request.worldSize));
    return {};
  }

  /// Without this check, a store or a peer that cannot accept a connection would not report it, and the others would
  /// wait for it.
  Result<void> checkDescriptors() const {
    constexpr std::int64_t kOfLibraries = 24;  // for threads of Gloo and the store, and for a file that is read
    const auto [allowed, open] = raiseDescriptorLimit();
    const int peers = m_request.worldSize + (m_mesh.isReplicated() ? m_mesh.tp + m_mesh.dp : 0);
    const std::int64_t needed = open + 2 * peers + filesToRead() + kOfLibraries;
    if (needed <= allowed) return {};
    return fail(ErrorCode::Environment,
                "Rank {} of {} is limited to {} open files and connections (ulimit -n), but needs up to {}. Raise that "
                "limit.",
                m_request.rank, m_request.worldSize, allowed, needed);
  }

  std::int64_t filesToRead() const {
    std::set<std::string_view> files;
    for (const program::ParameterShards& parameter : m_task->program.parameters) {
      for (const program::ShardPiece& piece : parameter.piecesByRank[static_cast<std::size_t>(place())])
        files.insert(piece.file);
    }
    return std::ssize(files);
  }

  /// Settings that may differ between ranks that were started separately.
  std::vector<std::pair<std::string, std::string>> alike() const {
    const auto onOrOff = [](bool isOn) { return std::string(isOn ? "on" : "off"); };
    std::string plans, inputs;
    for (const Task* task : m_order) {
      plans += task->digestText();
      inputs += fmt::format("{:016x}", task->digestOfInputs);
    }
    return {{"plan", plans},
            {"mesh", program::toText(m_mesh)},
            {"input", inputs},
            {"training options", spec::trainingText(m_request.training)},
            {"generation options", spec::generationText(m_request.generation)},
            {"--skip-weights", onOrOff(m_request.skipWeights)},
            {"--init-missing", onOrOff(m_request.initMissing)},
            {"--passes", fmt::format("{}", m_request.passes)},
            {"--times", onOrOff(m_request.recordsTimes)}};
  }

  Result<void> connect() {
    enter(Phase::Connecting);
    CLEAVE_TRY(m_collectives, connectPeers(m_request, m_gpu, alike()));
    m_collectives->setCallTime(&m_calls);
    CLEAVE_TRY(m_ranks, m_collectives->neighbours(m_mesh.tp));
    if (m_mesh.isReplicated()) {
      CLEAVE_TRY(m_replicas.counterparts, m_collectives->counterparts(m_mesh.tp));
    }
    return {};
  }

  Result<void> load() {
    enter(Phase::Loading);
    const auto places =
        formats::WeightPlaces::of(m_task->program.source, m_task->program.isExported, m_task->program.weights);
    const WeightOptions options{places, place(), m_request.skipWeights, m_request.initMissing,
                                m_request.training.isAsked()};
    const Progress progress(m_progress.stopToken(), throttled(Phase::Loading));
    m_allocations.resetLargest();
    CLEAVE_TRY(m_weights, loadWeights(*m_task->bound, m_task->program, options, m_loadedBytes, progress));
    m_result.bytesRead = m_weights.bytesRead;
    m_result.shardBytes = m_request.skipWeights ? 0 : program::shardBytes(m_task->program.parameters, place());
    m_result.largestParameterAllocation = m_allocations.largest();
    if (!m_task->generator) return {};
    return m_task->generator->prepare(m_task->program.parameters,
                                      [this] { return m_gpu ? m_gpu->programBytes() : m_allocations.allocated(); });
  }

  /// Connects and synchronizes the ranks, because lazy connections and different loading times would add to the step
  /// time.
  Result<void> warmUp() {
    enter(Phase::WarmUp);
    if (m_index == 0) CLEAVE_TRY_VOID(meet());
    for (const program::GradientSum& sum : m_task->backward.sums) CLEAVE_TRY_VOID(m_ranks->neighbours(sum.ranks));
    if (m_request.worldSize > 1) CLEAVE_TRY_VOID(m_collectives->barrier());
    m_met = std::chrono::steady_clock::now();
    if (m_request.recordsTimes) CLEAVE_TRY_VOID(recordWarm());
    if (m_task->generator) CLEAVE_TRY_VOID(m_task->generator->warmUp(*m_ranks, m_live));
    observeCollectives();
    return {};
  }

  /// Starts to count and report collectives, for one pass or for all training steps.
  void observeCollectives() {
    m_collectives->resetCounts();
    if (m_request.isQuiet) return;
    m_collectives->setObserver([this, index = std::int32_t(0)](const CollectiveRecord& record) mutable {
      m_sink(protocol::CollectiveDone{index++, std::string(record.kind), record.bytes, record.time.count()});
    });
  }

  Result<void> meet() {
    if (m_request.worldSize == 1) return {};
    CLEAVE_TRY(const at::Tensor one, m_collectives->allReduce(at::ones({1}, m_device), Reduction::Sum));
    CLEAVE_TRY_VOID(m_collectives->finish(m_request.connectTimeout));
    if (one.item<float>() != static_cast<float>(m_request.worldSize)) {
      return fail(ErrorCode::RankFailed, "The first all-reduce over {} ranks gave {} instead of the number of ranks.",
                  m_request.worldSize, one.item<float>());
    }
    return checkSharedWeights(*m_task->bound, m_task->program.parameters, *m_collectives);
  }

  /// Runs a pass before the timed one, because a first pass mostly waits for memory and code from the system.
  Result<void> recordWarm() {
    m_task->bound->setRecorder(&m_recorder);
    m_collectives->setRecorder(&m_recorder);
    if (m_request.training.isAsked()) return {};
    const Progress progress(m_progress.stopToken(), throttled(Phase::WarmUp));
    const c10::InferenceMode noGradients;
    CLEAVE_TRY_VOID(m_task->bound->run(*m_ranks, m_live, progress));
    CLEAVE_TRY_VOID(m_collectives->finish());
    return m_request.worldSize > 1 ? m_collectives->barrier() : Result<void>();
  }

  /// Reports the timeline of the step, and its memory by kind.
  void reportTimes() {
    if (!m_request.recordsTimes) return;
    protocol::StepTimes times = m_recorder.stop();
    times.clock = clockName();
    times.meetingNs = std::chrono::duration_cast<std::chrono::nanoseconds>(m_met.time_since_epoch()).count();
    sendInLines(std::move(times), m_sink);
    std::unordered_set<const void*> parameters;
    for (const graph::Node& node : m_task->program.graph->nodes) {
      if (node.kind == graph::NodeKind::Parameter)
        parameters.insert(m_task->bound->given(node.results[0]).storage().data());
    }
    m_sink(m_ledger->account(parameters, *m_task->program.graph, m_request.training.isAsked()));
  }

  void startRecording() {
    m_ledger->startStep();
    m_recorder.start();
  }

  /// Saves the peak and stops counting it until countPeak. Work for the comparison is not part of the plan's
  /// prediction.
  void keepPeak() {
    const std::int64_t now = m_gpu ? m_gpu->peakBytes() : m_allocations.peak();
    m_peakOfRun = std::max(m_peakOfRun.load(), now);
    if (m_gpu) m_roundingOfRun = std::max(m_roundingOfRun.load(), m_gpu->peakRounding());
    m_countsPeak = false;
  }
  void countPeak() {
    m_gpu ? m_gpu->runtime.resetPeak() : m_allocations.resetPeak();
    m_countsPeak = true;
  }

  /// Ranks with the same parameter must compute the same gradient. On GPUs, the default backward kernels of attention,
  /// embeddings and indexing sum in a varying order. Kernels without a deterministic variant still run.
  void useDeterministicKernels() const {
    if (!m_gpu) return;
    at::globalContext().setDeterministicAlgorithms(/*b=*/true, /*warn_only=*/true);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }

  Result<void> train() {
    enter(Phase::Running);
    useDeterministicKernels();
    const program::Training& training = m_request.training;
    auto next = std::make_unique<Trainer>(*m_task->bound, m_task->backward, training, m_task->batches,
                                          m_request.recordsTimes ? &m_recorder : nullptr, m_replicas);
    if (m_trainer) CLEAVE_TRY_VOID(next->continueFrom(*m_trainer));
    m_trainer = std::move(next);
    Trainer& trainer = *m_trainer;
    Progress::Sink report = throttled(Phase::Running);
    std::vector<double> losses;
    while (std::ssize(losses) < training.steps) {
      if (m_progress.cancelled()) return m_progress.cancelledError("training");
      const bool isRecorded = m_request.recordsTimes && std::ssize(losses) + 1 == training.steps;
      if (isRecorded) startRecording();
      const auto start = std::chrono::steady_clock::now();
      CLEAVE_TRY(const StepDone done, trainer.step(*m_ranks, m_live, Progress(m_progress.stopToken(), {})));
      CLEAVE_TRY_VOID(m_collectives->finish());
      const auto time = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
      if (isRecorded) reportTimes();
      losses.push_back(done.loss);
      if (report) report({"training", std::ssize(losses), training.steps});
      m_sink(protocol::TrainingStep{std::ssize(losses), training.steps, done.loss, done.gradientNorm.value_or(0),
                                    done.gradientNorm.has_value(), time.count()});
      m_result.stepMicroseconds = time.count();
      if (m_request.outputFile) noteUndetermined(trainer);
    }
    recordCounts();
    keepPeak();
    m_result.loss = losses.back();
    m_result.hasLoss = true;
    return gatherParameters(trainer, losses);
  }

  /// This work is for the comparison, so its memory does not count for the step.
  void noteUndetermined(Trainer& trainer) {
    keepPeak();
    m_allocations.setLedger(nullptr);
    constexpr double kUnsplitSlack = 16;
    trainer.noteUndetermined(m_request.worldSize == 1 ? kUnsplitSlack : 1);
    if (m_ledger) m_allocations.setLedger(&*m_ledger);
    countPeak();
  }

  /// Rank 0 writes the losses and all parameters. Ranks with different values write theirs too.
  Result<void> gatherParameters(const Trainer& trainer, const std::vector<double>& losses) {
    if (!m_request.outputFile) return m_request.worldSize == 1 ? Result<void>() : m_collectives->barrier();
    enter(Phase::Gathering);
    return outputs().writeTrained(*m_task->bound, m_task->program.parameters, trainer, losses, *m_ranks, m_result);
  }

  Outputs outputs() const { return {m_request, m_index, *m_collectives, m_device}; }

  void recordCounts() {
    m_collectives->setObserver({});
    const CollectiveCounts& counts = m_collectives->counts();
    m_result.allReduce = counts.allReduce;
    m_result.allGather = counts.allGather;
    m_result.reduceScatter = counts.reduceScatter;
  }

  Result<NamedTensors> runProgram() {
    enter(Phase::Running);
    const c10::InferenceMode noGradients;
    std::vector<std::int64_t> times;
    while (std::ssize(times) + 1 < m_request.passes) {
      if (auto ran = runOnce(times); !ran) return ran;
      observeCollectives();
    }
    if (m_watcher) m_task->bound->setWatcher(&*m_watcher);
    if (m_request.recordsTimes) startRecording();
    CLEAVE_TRY(NamedTensors outputs, runOnce(times));
    std::sort(times.begin(), times.end());
    m_result.stepMicroseconds = times[times.size() / 2];
    reportTimes();
    recordCounts();
    if (m_watcher && m_request.watchedFile) CLEAVE_TRY_VOID(m_watcher->write(*m_request.watchedFile));
    return outputs;
  }

  /// One forward pass; its microseconds go to `times`.
  Result<NamedTensors> runOnce(std::vector<std::int64_t>& times) {
    const auto mark = [&] { return m_gpu ? m_gpu->runtime.queue.mark() : nullptr; };
    const auto start = std::chrono::steady_clock::now();
    const auto before = mark();
    const Progress progress(m_progress.stopToken(), throttled(Phase::Running));
    CLEAVE_TRY(NamedTensors outputs, m_task->bound->run(*m_ranks, m_live, progress));
    const auto after = mark();
    CLEAVE_TRY_VOID(m_collectives->finish());
    const auto onHost = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    const auto onDevice = [&] { return std::chrono::duration_cast<std::chrono::microseconds>(after->since(*before)); };
    times.push_back((after ? onDevice() : onHost).count());
    return outputs;
  }

  Result<NamedTensors> generate() {
    enter(Phase::Running);
    const Progress progress(m_progress.stopToken(), throttled(Phase::Running));
    CLEAVE_TRY(const GeneratedTokens done, m_task->generator->run(*m_ranks, m_live, progress));
    m_sink(done.figures);
    m_result.stepMicroseconds = done.figures.decodeMicroseconds / std::max<std::int64_t>(1, done.figures.steps);
    recordCounts();
    return NamedTensors{{"tokens", done.tokens}};
  }

  Result<void> gather(const NamedTensors& ofReplica) {
    enter(Phase::Gathering);
    CLEAVE_TRY(NamedTensors whole, wholeOutputs(ofReplica, m_replicas));
    cutPadding(whole, m_task->rows);
    return outputs().write(whole, m_result);
  }

  Progress::Sink throttled(Phase phase) {
    if (m_request.isQuiet) return {};
    return [this, phase, reports = Throttle(kReportPeriod)](const ProgressUpdate& update) mutable {
      if (reports.isDue(std::chrono::steady_clock::now()))
        m_sink(protocol::PhaseChange{phase, update.done, update.total});
    };
  }

  void fillSample(protocol::MemorySample& sample) const {
    sample.weights = m_loadedBytes;
    sample.activations = m_live.liveBytes();
    sample.peakActivations = m_live.peakBytes();
    sample.programNode = m_live.currentNode();
    fillDevice(sample, m_gpu, m_allocations);
    sample.peak = m_countsPeak ? std::max(m_peakOfRun.load(), sample.peak) : m_peakOfRun.load();
    if (!m_countsPeak) sample.peakRounding = m_roundingOfRun;
  }

  const RankRequest& m_request;
  const EventSink& m_sink;
  CallTime& m_calls;
  const Progress& m_progress;
  StepRecorder m_recorder;
  std::optional<MemoryLedger> m_ledger;  ///< if times are recorded
  AllocationCounter m_allocations;
  WeightReport m_weights;
  std::optional<Gpu> m_gpu;  ///< nullopt on CPUs
  at::Device m_device = at::kCPU;
  std::vector<std::unique_ptr<Task>> m_tasks;
  std::vector<Task*> m_order;  ///< tasks in the order in which they run; one may occur several times
  std::size_t m_index = 0;     ///< index of the current task in m_order
  Task* m_task = nullptr;      ///< the current task
  program::Mesh m_mesh;
  LiveMemory m_live;
  std::atomic<std::int64_t> m_loadedBytes{0};
  std::atomic<std::int64_t> m_peakOfRun{0};  ///< peak bytes until the last keepPeak
  std::atomic<std::int64_t> m_roundingOfRun{0};
  std::atomic<bool> m_countsPeak{true};  ///< the peak is being counted
  std::optional<ValueWatcher> m_watcher;
  std::chrono::steady_clock::time_point m_met{};  ///< end of the barrier in which all ranks met
  std::unique_ptr<Collectives> m_collectives;
  std::unique_ptr<Trainer> m_trainer;  ///< the trainer of the last trained task
  Collectives* m_ranks = nullptr;      ///< the ranks of this replica
  Replicas m_replicas;
  protocol::RankResult m_result;
  std::unique_ptr<MemorySampler> m_sampler;  ///< last, because its thread reads the other members
};

}  // namespace

Result<protocol::RankResult> runRank(const RankRequest& request, const EventSink& sink, const Progress& progress) {
  CallTime calls;
  RankRun rank(request, sink, calls, progress);
  return runWithHeartbeat(sink, calls, [&] { return rank.run(); });
}

}  // namespace cleave::torch_rank
