#pragma once
/// Listens to the ranks of a run, whichever way their lines come: what they say goes to the observer and to the watch
/// that judges them. Not thread-safe.
#include "launch/rank_watch.h"

namespace cleave::launch {

class Hearing {
 public:
  using Time = RankWatch::Time;
  Hearing(int ranks, std::chrono::milliseconds silence, const Observer& observer,
          std::chrono::milliseconds startGrace = kStartGrace)
      : watch(ranks, silence, startGrace), m_observer(observer) {}

  /// The clock that ranks are judged by: it stands still while the observer is busy.
  Time now() const { return std::chrono::steady_clock::now() - m_observing; }
  void tell(const RankEvent& event);
  /// The message in a line of a rank; nullopt, and the watch knows, for a line that is none.
  std::optional<protocol::Message> decoded(int rank, const std::string& line);
  void take(int rank, protocol::Message message);
  void tellOfSlowness();

  RankWatch watch;

 private:
  const Observer& m_observer;
  std::chrono::steady_clock::duration m_observing{};
};

}  // namespace cleave::launch
