#pragma once
/// Receives the lines of a run's ranks from pipes or connections, and passes them to the observer and to the watch. Not
/// thread-safe.
#include "launch/rank_watch.h"

namespace cleave::launch {

/// Longest wait for lines, so that a stop and silent ranks are seen soon.
inline constexpr std::chrono::milliseconds kPollPeriod{50};

class RankInbox {
 public:
  using Time = RankWatch::Time;
  RankInbox(int ranks, std::chrono::milliseconds silence, const Observer& observer,
            std::chrono::milliseconds startGrace = kStartGrace)
      : watch(ranks, silence, startGrace), m_observer(observer) {}

  /// The clock for judging ranks. It stops while the observer is busy.
  Time now() const { return std::chrono::steady_clock::now() - m_observing; }
  void observe(const RankEvent& event);
  /// The message in a rank's line. For an invalid line nullopt, after reporting it to the watch.
  std::optional<protocol::Message> decoded(int rank, const std::string& line);
  void accept(int rank, protocol::Message message);
  void reportSlowness();

  RankWatch watch;

 private:
  const Observer& m_observer;
  std::chrono::steady_clock::duration m_observing{};
};

}  // namespace cleave::launch
