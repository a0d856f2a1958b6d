#pragma once
/// What is known of a run while it goes on: the events of all ranks boiled down to what the run view draws.
///
/// `apply` is called on the launching thread, `snapshot` on the GUI thread, a few times a second: samples arrive at 10
/// Hz a rank and are painted at 5 Hz at most.
#include <QString>
#include <QStringList>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "launch/launcher.h"

namespace cleave::views {

/// Bytes on one rank's device; `kept` is what the program holds besides: gradients, optimizer states, activations saved
/// for the backward pass, work space. `other` is what the process holds besides, `total` 0 while unknown. Each of the
/// two current figures has the peak of the same things, which is never below it.
struct RankMemory {
  std::int64_t weights = 0, activations = 0, kept = 0, communication = 0, other = 0, total = 0;
  protocol::PeakMemory peak;  ///< most so far; of a rank that is through, as its report has it
  std::int64_t program() const { return weights + activations + kept; }
  std::int64_t process() const { return program() + communication + other; }
};

/// What a rank held at a moment of the run, in milliseconds since the first event of any rank.
struct MemoryPoint {
  std::int64_t atMs = 0;
  std::int64_t program = 0, process = 0;  ///< bytes
};
/// When a rank entered a phase.
struct PhaseBegin {
  std::int64_t atMs = 0;
  protocol::Phase phase = protocol::Phase::Spawned;
};

struct RankView {
  int rank = 0;
  protocol::Phase phase = protocol::Phase::Spawned;
  bool isStopped = false;            ///< its process ended in that phase, with the run
  std::int64_t done = 0, total = 0;  ///< progress inside the phase
  std::int64_t pid = 0;
  QString device;
  RankMemory memory;
  std::vector<MemoryPoint> history;  ///< one sample per 100 ms, the last 60 s, oldest first
  std::vector<PhaseBegin> phases;    ///< in order
  std::int64_t collectives = 0;
  std::optional<protocol::RankResult> result;
  QString error;    ///< its own error message
  QStringList log;  ///< the end of its standard error, and what the launcher noticed of it
  QString noticed;  ///< what the launcher said of it last while it ran
  std::int64_t noticedAtMs = 0;

  /// "loading 43 %", "running", "failed", "stopped (running)".
  QString state() const;
};

/// What a memory sample says in the categories of the run view.
RankMemory memoryOf(const protocol::MemorySample& sample);

class RunMonitor {
 public:
  explicit RunMonitor(int ranks = 0);
  void apply(const launch::RankEvent& event);
  /// All ranks by number.
  std::vector<RankView> snapshot() const;
  /// Training steps that are through, as rank 0 tells them.
  std::vector<protocol::TrainingStep> steps() const;
  /// The launcher has spoken of a rank; false: none was started.
  bool hasStarted() const;
  /// The end of the run: done everywhere, or the first failure marked on its rank; all others were stopped. `outcome`
  /// null: all were.
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
