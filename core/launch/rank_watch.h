#pragma once
/// Judges the ranks of a run by what they say and by what the kernel says of them: which one failed, of what, and when
/// enough is known to end the run. Holds no process and reads no clock: whoever reads the pipes tells it what it read
/// and when, so that a test can do the same. A result ends the watch over a rank: it may take down its GPU in silence.
/// Not thread-safe.
///
///     RankWatch watch(2, /*silence=*/10s);
///     watch.start(0, now);  watch.start(1, now);
///     watch.hear(0, protocol::Heartbeat{});  watch.heard(0, now);
///     watch.judge(1, {.exited = true, .code = 3}, now, now);
///     if (watch.isSettled(now)) watch.outcome().firstFailure->what;   // "ended with code 3"
#include "launch/child_process.h"
#include "launch/launcher.h"

#include <chrono>
#include <deque>

namespace cleave::launch {

/// Reading LibTorch from a cold disk takes longer than any silence afterwards.
inline constexpr std::chrono::milliseconds kStartGrace{60'000};
/// So long is looked at to tell a slow rank from one that is just behind.
inline constexpr std::chrono::milliseconds kSlow{500};

class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `startGrace`: how long a rank may take until its first word.
  RankWatch(int ranks, std::chrono::milliseconds silence, std::chrono::milliseconds startGrace = kStartGrace);

  /// The rank's process is there, or its connection awaited: it must not be silent for too long from here on. `host`:
  /// where it connected from; empty: this one.
  void start(int rank, Time now, std::string host = {});
  void hear(int rank, const protocol::Message& message);
  /// A line that is no message; `why` says what is wrong with it.
  void hearNonsense(int rank, std::string why);
  /// A line of its standard error.
  void hearLine(int rank, std::string line);
  /// What was told last has been said by `now`.
  void heard(int rank, Time now);
  /// `state` is what the kernel said, and `askedAt` when, before the rank's pipes were read to their end.
  void judge(int rank, const ChildState& state, Time askedAt, Time now);

  /// A sentence about a rank that lives and that others have waited for in a collective for some time, while all run
  /// the program: a first one after kSlow, further ones ever more seldom as long as it lasts.
  struct Notice {
    int rank = 0;
    std::string text;
  };
  std::optional<Notice> slowness(Time now);

  /// Every rank has sent its result, and the last of these is older than `teardown`: nothing more is waited for.
  bool isTeardownOver(Time now, std::chrono::milliseconds teardown) const;
  /// Ranks have failed, and waiting longer would not say better which of them was the first.
  bool isSettled(Time now) const;
  RunOutcome outcome() const;

 private:
  struct Beat {
    Time at{};
    std::chrono::microseconds waited{};  ///< for others in collectives, since the rank began
  };
  struct Rank {
    std::deque<std::string> lastLines;
    std::optional<protocol::RankError> error;
    std::optional<protocol::RankResult> result;
    Time resultAt{};
    std::string protocolError;
    std::deque<Beat> beats;                           ///< of the last kSlow, and the one before
    std::optional<std::chrono::microseconds> waited;  ///< what it said last, until `heard`
    protocol::Phase phase = protocol::Phase::Spawned;
    protocol::MemorySample memory;  ///< the last
    std::string host;
    Time lastHeard{};
    std::optional<Time> stoppedSince;
    bool hasSpoken = false;
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
  static std::string lastWords(const Rank& rank);
  RankExit firstFailure() const;

  std::chrono::milliseconds m_silence, m_startGrace;
  std::vector<Rank> m_ranks;
  std::vector<RankExit> m_failures;  ///< in the order they were seen, at most one a rank
  Time m_firstFailureAt{};
  std::optional<int> m_slow;                ///< that `slowness` told of last
  Time m_toldOfSlow{};                      ///< when
  std::chrono::milliseconds m_untilNext{};  ///< how long it says nothing of the same rank
};

}  // namespace cleave::launch
