#pragma once
/// Judges the ranks of a run by their messages and by the kernel: which rank failed, why, and when the run can end. It
/// owns no process and reads no clock: the caller passes messages and times, so that a test can do the same. After its
/// result a rank is no longer watched, because taking down its GPU may be silent. Not thread-safe.
///
///     RankWatch watch(2, /*silence=*/10s);
///     watch.start(0, now);  watch.start(1, now);
///     watch.addMessage(0, protocol::Heartbeat{});  watch.markRead(0, now);
///     watch.judge(1, {.exited = true, .code = 3}, now, now);
///     if (watch.isSettled(now)) watch.outcome().firstFailure->what;   // "ended with code 3"
#include "launch/child_process.h"
#include "launch/run_outcome.h"

#include <chrono>
#include <deque>

namespace cleave::launch {

/// Loading LibTorch from a cold disk takes longer than any later silence.
inline constexpr std::chrono::milliseconds kStartGrace{60'000};
/// Observation time that distinguishes a slow rank from a short delay.
inline constexpr std::chrono::milliseconds kSlow{500};

class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `startGrace`: time limit for a rank's first message.
  RankWatch(int ranks, std::chrono::milliseconds silence, std::chrono::milliseconds startGrace = kStartGrace);

  /// Starts to watch a rank: its process runs, or its connection is awaited. `host` is the host it connected from;
  /// empty: this one.
  void start(int rank, Time now, std::string host = {});
  void addMessage(int rank, const protocol::Message& message);
  /// A line that is not a message; `why` describes the error.
  void addProtocolError(int rank, std::string why);
  /// A line of its standard error.
  void addErrorLine(int rank, std::string line);
  /// The messages added since the last call were read at `now`.
  void markRead(int rank, Time now);
  /// `state` is the kernel's answer at `askedAt`, before the rank's pipes were read to their end.
  void judge(int rank, const ChildState& state, Time askedAt, Time now);

  /// A sentence about a live rank that the others have waited for in collectives while all run the program. The first
  /// comes after kSlow, further ones at growing intervals.
  struct Notice {
    int rank = 0;
    std::string text;
  };
  std::optional<Notice> slowness(Time now);

  /// True if every rank has sent its result, and the last one is older than `teardown`: waiting ends.
  bool isTeardownOver(Time now, std::chrono::milliseconds teardown) const;
  /// True if ranks have failed, and waiting longer would not show better which failed first.
  bool isSettled(Time now) const;
  RunOutcome outcome() const;

 private:
  struct Beat {
    Time at{};
    std::chrono::microseconds waited{};  ///< time spent in collectives since the rank began
  };
  struct Rank {
    std::deque<std::string> lastLines;
    std::optional<protocol::RankError> error;
    std::optional<protocol::RankResult> result;
    Time resultAt{};
    std::string protocolError;
    std::deque<Beat> beats;                           ///< heartbeats of the last kSlow, and the one before
    std::optional<std::chrono::microseconds> waited;  ///< time in the last heartbeat, until `markRead`
    protocol::Phase phase = protocol::Phase::Spawned;
    protocol::MemorySample memory;  ///< the last sample
    std::string host;
    Time lastReadAt{};
    std::optional<Time> stoppedSince;
    bool hasSentMessage = false;
    bool isSilent = false;  ///< it sent nothing for too long
  };
  Rank& at(int rank) { return m_ranks[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return m_ranks[static_cast<std::size_t>(rank)]; }
  std::optional<std::string> whatFailed(Rank& rank, const ChildState& state, Time askedAt) const;
  std::string ofMemory(const Rank& rank, const ChildState& state) const;
  std::string whySilent(int silent) const;
  RankExit& failureOf(int rank, Time now);
  std::optional<double> waitingShare(const Rank& rank, Time now) const;
  bool hasFailedByItself(const RankExit& failure) const;
  std::vector<int> waitedFor() const;
  static std::string lastMessage(const Rank& rank);
  RankExit firstFailure() const;

  std::chrono::milliseconds m_silence, m_startGrace;
  std::vector<Rank> m_ranks;
  std::vector<RankExit> m_failures;  ///< in the order of detection, at most one per rank
  Time m_firstFailureAt{};
  std::optional<int> m_slow;                ///< the rank in the last notice of `slowness`
  Time m_slowReportedAt{};                  ///< time of that notice
  std::chrono::milliseconds m_untilNext{};  ///< interval until the next notice about the same rank
};

}  // namespace cleave::launch
