#pragma once
/// The state of a running run: the events of all ranks, reduced to the data that the run view draws.
///
/// `apply` is called on the launching thread, `snapshot` on the GUI thread, a few times a second. Samples arrive at 10
/// Hz per rank and are painted at 5 Hz at most.
#include <QString>
#include <QStringList>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "launch/launcher.h"

namespace cleave::views {

/// Bytes on one rank's device. `kept`: other memory of the program, that is gradients, optimizer states, activations
/// saved for the backward pass, and workspace. `other`: other memory of the process. `total`: 0 while unknown. Each
/// current figure has a peak of the same quantity, which is never below it.
struct RankMemory {
  std::int64_t weights = 0, activations = 0, kept = 0, communication = 0, other = 0, total = 0;
  protocol::PeakMemory peak;  ///< peak so far; for a finished rank the report's peak
  std::int64_t program() const { return weights + activations + kept; }
  std::int64_t process() const { return program() + communication + other; }
};

/// A rank's memory at a moment of the run, in milliseconds since the first event of any rank.
struct MemoryPoint {
  std::int64_t atMs = 0;
  std::int64_t program = 0, process = 0;  ///< bytes
};
/// The start of a rank's phase.
struct PhaseBegin {
  std::int64_t atMs = 0;
  protocol::Phase phase = protocol::Phase::Spawned;
};

struct RankView {
  int rank = 0;
  protocol::Phase phase = protocol::Phase::Spawned;
  bool isStopped = false;            ///< the process ended in that phase, together with the run
  std::int64_t done = 0, total = 0;  ///< progress inside the phase
  std::int64_t pid = 0;
  QString device;
  RankMemory memory;
  std::vector<MemoryPoint> history;  ///< one sample per 100 ms, the last 60 s, oldest first
  std::vector<PhaseBegin> phases;    ///< in order
  std::int64_t collectives = 0;
  std::optional<protocol::RankResult> result;
  QString error;    ///< its own error message
  QStringList log;  ///< the end of its standard error, and the launcher's notices about it
  QString noticed;  ///< the launcher's last notice during the run
  std::int64_t noticedAtMs = 0;

  /// "loading 43 %", "running", "failed", "stopped (running)".
  QString state() const;
};

/// A memory sample in the categories of the run view.
RankMemory memoryOf(const protocol::MemorySample& sample);

class RunMonitor {
 public:
  explicit RunMonitor(int ranks = 0);
  void apply(const launch::RankEvent& event);
  /// All ranks by number.
  std::vector<RankView> snapshot() const;
  /// Finished training steps, as reported by rank 0.
  std::vector<protocol::TrainingStep> steps() const;
  /// The launcher has reported a rank. False: no rank was started.
  bool hasStarted() const;
  /// Ends the run: all ranks are done, or the first failure is marked on its rank and all others were stopped.
  /// `outcome` null: all ranks were stopped.
  void finish(const launch::RunOutcome* outcome);

 private:
  using Clock = std::chrono::steady_clock;
  void applyMessage(RankView& view, const protocol::Message& message, std::int64_t atMs);
  static void enter(RankView& view, protocol::Phase phase, std::int64_t atMs);
  std::int64_t now();
  mutable std::mutex m_mutex;
  std::optional<Clock::time_point> m_begin;  ///< of the first event
  std::vector<protocol::TrainingStep> m_steps;
  std::vector<RankView> m_ranks;
};

}  // namespace cleave::views
