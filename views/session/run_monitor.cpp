#include "views/session/run_monitor.h"

#include <algorithm>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kHistorySamples = 600;  // 60 s at 10 Hz
constexpr int kLogLines = 200;
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not deduce it
}  // namespace

QString RankView::state() const {
  QString name = toQ(protocol::toText(phase));
  if (isStopped)
    return phase == protocol::Phase::Spawned ? QStringLiteral("stopped") : QStringLiteral("stopped (%1)").arg(name);
  if (total > 0 && done < total) return QStringLiteral("%1 %2 %").arg(name).arg(100 * done / total);
  return name;
}

RankMemory memoryOf(const protocol::MemorySample& sample) {
  RankMemory memory;
  memory.weights = sample.weights;
  memory.activations = sample.activations;
  memory.kept = std::max<std::int64_t>(0, sample.allocated - memory.weights - memory.activations);
  memory.communication = sample.communication;
  memory.total = sample.deviceTotal;
  memory.other = std::max<std::int64_t>(0, sample.deviceUsed - memory.program() - memory.communication);
  memory.peak = protocol::peakOf(sample);
  return memory;
}

RunMonitor::RunMonitor(int ranks) {
  m_ranks.resize(static_cast<std::size_t>(std::max(0, ranks)));
  for (std::size_t i = 0; i < m_ranks.size(); ++i) m_ranks[i].rank = static_cast<int>(i);
}

std::int64_t RunMonitor::now() {
  const Clock::time_point at = Clock::now();
  if (!m_begin) m_begin = at;
  return std::chrono::duration_cast<std::chrono::milliseconds>(at - *m_begin).count();
}

void RunMonitor::enter(RankView& view, protocol::Phase phase, std::int64_t atMs) {
  view.phase = phase;
  if (view.phases.empty() || view.phases.back().phase != phase) view.phases.push_back({atMs, phase});
}

void RunMonitor::apply(const launch::RankEvent& event) {
  const std::lock_guard lock(m_mutex);
  if (event.rank < 0 || static_cast<std::size_t>(event.rank) >= m_ranks.size()) return;
  const std::int64_t atMs = now();
  RankView& view = m_ranks[static_cast<std::size_t>(event.rank)];
  if (!event.notice.empty()) {
    view.noticed = toQ(event.notice);
    view.noticedAtMs = atMs;
  }
  if (!event.notice.empty() || !event.line.empty()) {
    view.log << (event.notice.empty() ? toQ(event.line) : QStringLiteral("(seen from outside) %1").arg(view.noticed));
    if (view.log.size() > kLogLines) view.log.removeFirst();
  }
  if (event.message) applyMessage(view, *event.message, atMs);
}

void RunMonitor::applyMessage(RankView& view, const protocol::Message& message, std::int64_t atMs) {
  std::visit(Overloaded{[&](const protocol::Hello& hello) {
                          view.pid = hello.pid;
                          view.device = toQ(hello.device);
                        },
                        [&](const protocol::PhaseChange& change) {
                          enter(view, change.phase, atMs);
                          view.done = change.done;
                          view.total = change.total;
                        },
                        [&](const protocol::MemorySample& sample) {
                          RankMemory memory = memoryOf(sample);
                          view.history.push_back({atMs, memory.program(), memory.process()});
                          memory.peak.program = std::max(view.memory.peak.program, memory.peak.program);
                          memory.peak.process = std::max(view.memory.peak.process, memory.peak.process);
                          if (view.result) memory.peak = view.result->peak;
                          // A finished rank frees everything, so its last figures are kept.
                          if (memory.program() > 0 || view.memory.program() == 0) view.memory = memory;
                          if (view.history.size() > kHistorySamples) view.history.erase(view.history.begin());
                        },
                        [](const protocol::Heartbeat&) {}, [](const protocol::OutputPart&) {},
                        [](const protocol::Measurement&) {}, [](const protocol::CudaFound&) {},
                        [](const protocol::GpuFound&) {},  // not part of a run
                        [&](const protocol::CollectiveDone&) { ++view.collectives; },
                        [&](const protocol::TrainingStep& step) {
                          if (view.rank == 0 && std::ssize(m_steps) < program::kMostSteps) m_steps.push_back(step);
                        },
                        [](const protocol::StepTimes&) {}, [](const protocol::MemoryAccount&) {},  // in the report
                        [](const protocol::Generated&) {}, [](const protocol::ProgramDone&) {},
                        [&](const protocol::RankResult& result) {
                          view.result = result;
                          view.memory.peak = result.peak;
                        },
                        [&](const protocol::RankError& error) {
                          view.error = toQ(error.message);
                          enter(view, protocol::Phase::Failed, atMs);
                        }},
             message);
}

std::vector<RankView> RunMonitor::snapshot() const {
  const std::lock_guard lock(m_mutex);
  return m_ranks;
}

std::vector<protocol::TrainingStep> RunMonitor::steps() const {
  const std::lock_guard lock(m_mutex);
  return m_steps;
}

bool RunMonitor::hasStarted() const {
  const std::lock_guard lock(m_mutex);
  return m_begin.has_value();
}

void RunMonitor::finish(const launch::RunOutcome* outcome) {
  const std::lock_guard lock(m_mutex);
  const launch::RankExit* failure = outcome && outcome->firstFailure ? &*outcome->firstFailure : nullptr;
  for (RankView& view : m_ranks) {
    if (outcome && outcome->succeeded) view.phase = protocol::Phase::Done;
    if (failure && failure->rank == view.rank) {
      view.phase = protocol::Phase::Failed;
      if (view.error.isEmpty()) view.error = toQ(failure->what);
    }
    view.isStopped = view.phase != protocol::Phase::Done && view.phase != protocol::Phase::Failed;
  }
}

}  // namespace cleave::views
