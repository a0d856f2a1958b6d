#pragma once
/// What a rank reports while it runs: phases, their progress, and collectives. This header uses LibTorch.
#include "base/progress.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/process/event_sink.h"
#include "protocol/events.h"

namespace cleave::torch_rank {

class RankEvents {
 public:
  /// A quiet rank reports phases, but neither their progress nor collectives. `sink` must outlive this object.
  RankEvents(const EventSink& sink, bool isQuiet) : m_sink(sink), m_isQuiet(isQuiet) {}
  void send(const protocol::Message& message) const { m_sink(message); }
  const EventSink& sink() const { return m_sink; }
  bool isQuiet() const { return m_isQuiet; }
  void enter(protocol::Phase phase) const { m_sink(protocol::PhaseChange{phase, 0, 0}); }
  /// Reports the progress of a phase a few times per second. Empty for a quiet rank.
  Progress::Sink progressOf(protocol::Phase phase) const;
  /// Counts and reports collectives from here on, for one pass or for all training steps.
  void observe(Collectives& collectives) const;

 private:
  const EventSink& m_sink;
  bool m_isQuiet;
};

}  // namespace cleave::torch_rank
