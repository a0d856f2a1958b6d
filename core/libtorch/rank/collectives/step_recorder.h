#pragma once
/// The timeline of a rank during a recorded step: nodes forward and backward, collectives, and work on gradients. This
/// header uses LibTorch.
///
/// The code that runs a part of the step opens a scope. Scopes nest: a collective is inside its node. On a device,
/// times are the device's times, so recording never waits for it. On CPUs they are times of the steady clock.
///
///     recorder.start();
///     { const StepRecorder::Scope scope(&recorder, SpanKind::Forward, node); ...; }
///     CLEAVE_TRY_VOID(collectives.finish());
///     sink(recorder.stop());
#include "graph/graph.h"
#include "libtorch/rank/collectives/device_queue.h"
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
  /// The device whose times are recorded. Call this before the first part; do not call it on CPUs.
  void setQueue(DeviceQueue queue) { m_queue = std::move(queue); }

  /// Discards all parts and starts recording. The device must be idle. Records at most protocol::kMostSpans parts,
  /// which are the first micro-batches if there are very many.
  void start();
  /// Stops recording and returns the parts, ordered by their start. The device must be idle.
  protocol::StepTimes stop();

  /// The innermost open part, or nullopt. Also works without a recording. May be called from any thread.
  struct Current {
    SpanKind kind = SpanKind::Forward;
    std::int32_t node = -1;
    bool operator==(const Current&) const = default;
  };
  std::optional<Current> current() const {
    const Packed now = m_current.load(std::memory_order_relaxed);
    return now.kind < 0 ? std::nullopt : std::optional(Current{static_cast<SpanKind>(now.kind), now.node});
  }

  /// A part of the step, until the end of the scope. Does nothing if the recorder is null.
  class Scope {
   public:
    Scope(StepRecorder* recorder, SpanKind kind, graph::NodeId node = {});
    /// A collective of the enclosing node.
    Scope(StepRecorder* recorder, SpanKind kind, std::int64_t bytes, int ranks, int stride = 1);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void begin(protocol::Span span);
    StepRecorder* m_recorder;
    std::optional<std::size_t> m_index;  ///< index of the part, if it is recorded
    std::optional<Current> m_around;
  };

 private:
  struct Packed {
    std::int32_t kind = -1, node = -1;  ///< kind -1: no open part
  };
  void setCurrent(const std::optional<Current>& part) {
    m_current.store(part ? Packed{static_cast<std::int32_t>(part->kind), part->node} : Packed{},
                    std::memory_order_relaxed);
  }
  using Clock = std::chrono::steady_clock;
  struct Part {
    protocol::Span span;               ///< without times
    Clock::time_point begin{}, end{};  ///< for CPUs
    std::unique_ptr<DeviceMark> first, last;
  };
  DeviceQueue m_queue;
  bool m_isRecording = false;
  Clock::time_point m_start{};
  std::unique_ptr<DeviceMark> m_startMark;
  std::vector<Part> m_parts;
  std::atomic<Packed> m_current{Packed{}};
};

/// The name of this host's steady clock. All processes share the clock until the next boot.
std::string clockName();
/// Sends the spans in as many messages as their size limit requires.
void sendInLines(protocol::StepTimes times, const std::function<void(const protocol::Message&)>& sink);

}  // namespace cleave::torch_rank
