#pragma once
/// The sink that records a trace (trace.h).
#include "solve/trace/trace.h"

#include <functional>

namespace cleave::solve {

struct RecorderLimits {
  std::uint64_t memoryBytes = 256ull << 20;
  std::uint64_t totalBytes = 4ull << 30;
  /// Called at totalBytes: true doubles the limit, false stops the search and keeps the recorded events. Default: stop.
  std::function<bool(std::uint64_t bytes)> onFull;
};

class TraceRecorder : public TraceSink {
 public:
  explicit TraceRecorder(std::shared_ptr<const Problem> problem, RecorderLimits limits = {});
  ~TraceRecorder() override;
  void onStart(Engine engine) override;
  ChoiceId internChoice(Choice choice) override;
  ConflictId internConflict(ConflictRecord conflict) override;
  bool onEvent(const Event& event) override;
  /// The trace, which may still grow and may outlive the recorder.
  std::shared_ptr<const Trace> trace() const;
  std::uint64_t memoryBytes() const;  ///< bytes of events that are in memory now
  /// The reason why `onEvent` returned false, "The trace reached its limit of 4.00 GiB."; empty before.
  std::string whyStopped() const;

 private:
  class Storage;
  std::shared_ptr<Storage> m_storage;
};

}  // namespace cleave::solve
