#include "libtorch/rank/process/task_runner.h"

#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/weights/hand_over.h"
#include "libtorch/rank/weights/shared_weights.h"
#include "program/watch.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace cleave::torch_rank {

using protocol::Phase;

struct TaskRunner::Running {
  Task& task;
  std::size_t index;
  protocol::RankResult result = {};
};

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t microsecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

/// Ranks with the same parameter must compute the same gradient. On GPUs, the default backward kernels of attention,
/// embeddings and indexing sum in a varying order. Kernels without a deterministic variant still run.
void useDeterministicKernels() {
  at::globalContext().setDeterministicAlgorithms(/*b=*/true, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

}  // namespace

Result<void> TaskRunner::readWatchedValues() {
  const RankRequest& request = m_with.request;
  if (!request.watchFile || request.training.isAsked()) return {};
  CLEAVE_TRY(auto watched, program::readWatch(*request.watchFile, m_with.mesh.tp));
  CLEAVE_TRY(m_watcher,
             ValueWatcher::make(m_first.bound->graph(), std::move(watched), request.rank, request.worldSize));
  return {};
}

Result<protocol::RankResult> TaskRunner::run(Task& task, std::size_t index) {
  Running now{task, index};
  now.result.program = task.digestText();
  m_with.peers.replicas.lossShares = task.lossShares;
  if (index > 0) m_with.memory.restartPeak();
  CLEAVE_TRY_VOID(provideWeights(now));
  CLEAVE_TRY_VOID(warmUp(now));
  if (m_with.request.training.isAsked()) {
    CLEAVE_TRY_VOID(train(now));
    return now.result;
  }
  CLEAVE_TRY(const NamedTensors outputs, task.generator ? generate(now) : runPasses(now));
  m_with.memory.keepPeak();
  CLEAVE_TRY_VOID(checkUnwritten(m_weights));
  CLEAVE_TRY_VOID(gather(now, outputs));
  return now.result;
}

// ---- weights

/// The first task loads the weights; the others use them.
Result<void> TaskRunner::provideWeights(Running& now) {
  if (now.task.hasWeights) return {};
  now.task.hasWeights = true;
  if (now.index == 0) return load(now);
  return handOver(*m_first.bound, m_first.program.parameters, *now.task.bound, now.task.program.parameters);
}

Result<void> TaskRunner::load(Running& now) {
  const RankRequest& request = m_with.request;
  const program::RankProgram& program = now.task.program;
  const int place = m_with.mesh.placeOf(request.rank);  // the plan's rank that this rank runs
  m_with.events.enter(Phase::Loading);
  const auto places = formats::WeightPlaces::of(program.source, program.isExported, program.weights);
  const WeightOptions options{places, place, request.skipWeights, request.initMissing, request.training.isAsked()};
  const Progress progress(m_with.progress.stopToken(), m_with.events.progressOf(Phase::Loading));
  AllocationCounter& allocations = m_with.memory.allocations();
  allocations.resetLargest();
  CLEAVE_TRY(m_weights, loadWeights(*now.task.bound, program, options, m_with.memory.loadedBytes(), progress));
  now.result.bytesRead = m_weights.bytesRead;
  now.result.shardBytes = request.skipWeights ? 0 : program::shardBytes(program.parameters, place);
  now.result.largestParameterAllocation = allocations.largest();
  if (!now.task.generator) return {};
  return now.task.generator->prepare(program.parameters, [&memory = m_with.memory] { return memory.programBytes(); });
}

// ---- warm-up

/// Connects and synchronizes the ranks, because lazy connections and different loading times would add to the step
/// time.
Result<void> TaskRunner::warmUp(const Running& now) {
  Peers& peers = m_with.peers;
  m_with.events.enter(Phase::WarmUp);
  if (now.index == 0) CLEAVE_TRY_VOID(meet(now));
  for (const program::GradientSum& sum : now.task.backward.sums) CLEAVE_TRY_VOID(peers.replica->neighbours(sum.ranks));
  if (m_with.request.worldSize > 1) CLEAVE_TRY_VOID(peers.all->barrier());
  m_met = Clock::now();
  if (m_with.request.recordsTimes) CLEAVE_TRY_VOID(recordWarm(now));
  if (now.task.generator) CLEAVE_TRY_VOID(now.task.generator->warmUp(*peers.replica, m_with.memory.live()));
  m_with.events.observe(*peers.all);
  return {};
}

Result<void> TaskRunner::meet(const Running& now) const {
  const int ranks = m_with.request.worldSize;
  if (ranks == 1) return {};
  Collectives& all = *m_with.peers.all;
  CLEAVE_TRY(const at::Tensor one, all.allReduce(at::ones({1}, device()), Reduction::Sum));
  CLEAVE_TRY_VOID(all.finish(m_with.request.connectTimeout));
  if (one.item<float>() != static_cast<float>(ranks)) {
    return fail(ErrorCode::RankFailed, "The first all-reduce over {} ranks gave {} instead of the number of ranks.",
                ranks, one.item<float>());
  }
  return checkSharedWeights(*now.task.bound, now.task.program.parameters, all);
}

/// Runs a pass before the timed one, because a first pass mostly waits for memory and code from the system.
Result<void> TaskRunner::recordWarm(const Running& now) {
  Peers& peers = m_with.peers;
  now.task.bound->setRecorder(&m_with.recorder);
  peers.all->setRecorder(&m_with.recorder);
  if (m_with.request.training.isAsked()) return {};
  const Progress progress(m_with.progress.stopToken(), m_with.events.progressOf(Phase::WarmUp));
  const c10::InferenceMode noGradients;
  CLEAVE_TRY_VOID(now.task.bound->run(*peers.replica, m_with.memory.live(), progress));
  CLEAVE_TRY_VOID(peers.all->finish());
  return m_with.request.worldSize > 1 ? peers.all->barrier() : Result<void>();
}

// ---- times and counts

void TaskRunner::startRecording() {
  m_with.memory.ledger()->startStep();
  m_with.recorder.start();
}

/// Reports the timeline of the step, and its memory by kind.
void TaskRunner::reportTimes(const Running& now) {
  if (!m_with.request.recordsTimes) return;
  protocol::StepTimes times = m_with.recorder.stop();
  times.clock = clockName();
  times.meetingNs = std::chrono::duration_cast<std::chrono::nanoseconds>(m_met.time_since_epoch()).count();
  sendInLines(std::move(times), m_with.events.sink());
  const graph::Graph& graph = *now.task.program.graph;
  std::unordered_set<const void*> parameters;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind == graph::NodeKind::Parameter)
      parameters.insert(now.task.bound->given(node.results[0]).storage().data());
  }
  m_with.events.send(m_with.memory.ledger()->account(parameters, graph, m_with.request.training.isAsked()));
}

void TaskRunner::recordCounts(Running& now) {
  Collectives& all = *m_with.peers.all;
  all.setObserver({});
  const CollectiveCounts& counts = all.counts();
  now.result.allReduce = counts.allReduce;
  now.result.allGather = counts.allGather;
  now.result.reduceScatter = counts.reduceScatter;
}

// ---- training

Result<void> TaskRunner::train(Running& now) {
  m_with.events.enter(Phase::Running);
  if (m_with.gpu) useDeterministicKernels();
  const program::Training& training = m_with.request.training;
  auto next =
      std::make_unique<Trainer>(*now.task.bound, now.task.backward, training, now.task.batches,
                                m_with.request.recordsTimes ? &m_with.recorder : nullptr, m_with.peers.replicas);
  if (m_trainer) CLEAVE_TRY_VOID(next->continueFrom(*m_trainer));
  m_trainer = std::move(next);
  Progress::Sink report = m_with.events.progressOf(Phase::Running);
  std::vector<double> losses;
  while (std::ssize(losses) < training.steps) {
    CLEAVE_TRY(const StepDone step, trainStep(now, std::ssize(losses)));
    losses.push_back(step.loss);
    if (report) report({"training", std::ssize(losses), training.steps});
    m_with.events.send(protocol::TrainingStep{std::ssize(losses), training.steps, step.loss,
                                              step.gradientNorm.value_or(0), step.gradientNorm.has_value(),
                                              now.result.stepMicroseconds});
    // This work is for the comparison.
    constexpr double kUnsplitSlack = 16;
    if (m_with.request.outputFile)
      m_with.memory.uncounted([&] { m_trainer->noteUndetermined(m_with.request.worldSize == 1 ? kUnsplitSlack : 1); });
  }
  recordCounts(now);
  m_with.memory.keepPeak();
  now.result.loss = losses.back();
  now.result.hasLoss = true;
  // Rank 0 writes the losses and all parameters. Ranks with different values write theirs too.
  if (!m_with.request.outputFile) return m_with.request.worldSize == 1 ? Result<void>() : m_with.peers.all->barrier();
  m_with.events.enter(Phase::Gathering);
  return outputs(now).writeTrained(*now.task.bound, now.task.program.parameters, *m_trainer, losses,
                                   *m_with.peers.replica, now.result);
}

/// The step after `done` others.
Result<StepDone> TaskRunner::trainStep(Running& now, std::int64_t done) {
  if (m_with.progress.cancelled()) return m_with.progress.cancelledError("training");
  const bool isRecorded = m_with.request.recordsTimes && done + 1 == m_with.request.training.steps;
  if (isRecorded) startRecording();
  const auto start = Clock::now();
  CLEAVE_TRY(const StepDone step,
             m_trainer->step(*m_with.peers.replica, m_with.memory.live(), Progress(m_with.progress.stopToken(), {})));
  CLEAVE_TRY_VOID(m_with.peers.all->finish());
  now.result.stepMicroseconds = microsecondsSince(start);
  if (isRecorded) reportTimes(now);
  return step;
}

// ---- forward passes and generation

Result<NamedTensors> TaskRunner::runPasses(Running& now) {
  m_with.events.enter(Phase::Running);
  const c10::InferenceMode noGradients;
  std::vector<std::int64_t> times;
  while (std::ssize(times) + 1 < m_with.request.passes) {
    if (auto ran = runOnce(now, times); !ran) return ran;
    m_with.events.observe(*m_with.peers.all);
  }
  if (m_watcher) now.task.bound->setWatcher(&*m_watcher);
  if (m_with.request.recordsTimes) startRecording();
  CLEAVE_TRY(NamedTensors outputs, runOnce(now, times));
  std::sort(times.begin(), times.end());
  now.result.stepMicroseconds = times[times.size() / 2];
  reportTimes(now);
  recordCounts(now);
  if (m_watcher && m_with.request.watchedFile) CLEAVE_TRY_VOID(m_watcher->write(*m_with.request.watchedFile));
  return outputs;
}

/// One forward pass; its microseconds go to `times`.
Result<NamedTensors> TaskRunner::runOnce(const Running& now, std::vector<std::int64_t>& times) {
  const auto mark = [&] { return m_with.gpu ? m_with.gpu->runtime.queue.mark() : nullptr; };
  const auto start = Clock::now();
  const auto before = mark();
  const Progress progress(m_with.progress.stopToken(), m_with.events.progressOf(Phase::Running));
  CLEAVE_TRY(NamedTensors outputs, now.task.bound->run(*m_with.peers.replica, m_with.memory.live(), progress));
  const auto after = mark();
  CLEAVE_TRY_VOID(m_with.peers.all->finish());
  const std::int64_t onHost = microsecondsSince(start);
  const auto onDevice = [&] {
    return std::chrono::duration_cast<std::chrono::microseconds>(after->since(*before)).count();
  };
  times.push_back(after ? onDevice() : onHost);
  return outputs;
}

Result<NamedTensors> TaskRunner::generate(Running& now) {
  m_with.events.enter(Phase::Running);
  const Progress progress(m_with.progress.stopToken(), m_with.events.progressOf(Phase::Running));
  CLEAVE_TRY(const GeneratedTokens done,
             now.task.generator->run(*m_with.peers.replica, m_with.memory.live(), progress));
  m_with.events.send(done.figures);
  now.result.stepMicroseconds = done.figures.decodeMicroseconds / std::max<std::int64_t>(1, done.figures.steps);
  recordCounts(now);
  return NamedTensors{{"tokens", done.tokens}};
}

// ---- outputs

Outputs TaskRunner::outputs(const Running& now) const {
  return {m_with.request, now.index, *m_with.peers.all, device()};
}

Result<void> TaskRunner::gather(Running& now, const NamedTensors& ofReplica) {
  m_with.events.enter(Phase::Gathering);
  CLEAVE_TRY(NamedTensors whole, wholeOutputs(ofReplica, m_with.peers.replicas));
  cutPadding(whole, now.task.rows);
  return outputs(now).write(whole, now.result);
}

}  // namespace cleave::torch_rank
