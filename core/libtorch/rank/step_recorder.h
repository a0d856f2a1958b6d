#pragma once
/// What a rank does when, while a step is recorded: its nodes forward and backward, its collectives, what it does with
/// gradients. LibTorch inside.
///
/// Whoever runs a part of the step enters it; parts nest (a collective lies within its node). On a device the times are
/// those of the device, so that recording never waits for it; on CPUs those of the steady clock.
///
///     recorder.start();
///     { const StepRecorder::Scope scope(&recorder, SpanKind::Forward, node); ...; }
///     CLEAVE_TRY_VOID(collectives.finish());
///     sink(recorder.stop());
#include "graph/graph.h"
#include "libtorch/rank/device_queue.h"
#include "protocol/events.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace cleave::torch_rank {

using protocol::SpanKind;

class StepRecorder {
 public:
  /// The device whose times are recorded; none: a CPU. Before the first part.
  void setQueue(DeviceQueue queue) { m_queue = std::move(queue); }

  /// Forgets what it has and records from here on, as many parts as one step may have (of very many micro-batches the
  /// first): the device has nothing to do.
  void start();
  /// Records no more; the device has done all that was handed to it. In the order in which they began.
  protocol::StepTimes stop();

  /// The innermost part that goes on, also while nothing is recorded; nullopt: none does. Any thread.
  struct Current {
    SpanKind kind = SpanKind::Forward;
    std::int32_t node = -1;
    bool operator==(const Current&) const = default;
  };
  std::optional<Current> current() const {
    const Packed now = m_current.load(std::memory_order_relaxed);
    return now.kind < 0 ? std::nullopt : std::optional(Current{static_cast<SpanKind>(now.kind), now.node});
  }

  /// A part of the step from here to the end of the scope. Without a recorder nothing.
  class Scope {
   public:
    Scope(StepRecorder* recorder, SpanKind kind, graph::NodeId node = {});
    /// A collective of the node around it.
    Scope(StepRecorder* recorder, SpanKind kind, std::int64_t bytes, int ranks, int stride = 1);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void begin(protocol::Span span);
    StepRecorder* m_recorder;
    std::optional<std::size_t> m_index;  ///< of the part, where it is recorded
    std::optional<Current> m_around;
  };

 private:
  struct Packed {
    std::int32_t kind = -1, node = -1;  ///< kind -1: nothing goes on
  };
  void setCurrent(const std::optional<Current>& part) {
    m_current.store(part ? Packed{static_cast<std::int32_t>(part->kind), part->node} : Packed{},
                    std::memory_order_relaxed);
  }
  using Clock = std::chrono::steady_clock;
  struct Part {
    protocol::Span span;               ///< without times
    Clock::time_point begin{}, end{};  ///< on CPUs
    std::unique_ptr<DeviceMark> first, last;
  };
  DeviceQueue m_queue;
  bool m_isRecording = false;
  Clock::time_point m_start{};
  std::unique_ptr<DeviceMark> m_startMark;
  std::vector<Part> m_parts;
  std::atomic<Packed> m_current{Packed{}};
};

/// Of all processes on this host until it starts again: they share the steady clock.
std::string clockName();
/// As many lines as it takes.
void tellInLines(protocol::StepTimes times, const std::function<void(const protocol::Message&)>& sink);

}  // namespace cleave::torch_rank
