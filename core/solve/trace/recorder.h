#pragma once
/// The sink that keeps a trace (trace.h).
#include "solve/trace/trace.h"

#include <functional>

namespace cleave::solve {

struct RecorderLimits {
  std::uint64_t memoryBytes = 256ull << 20;
  std::uint64_t totalBytes = 4ull << 30;
  /// At totalBytes: true doubles the limit, false stops the search (what was recorded stays). Default: stop.
  std::function<bool(std::uint64_t bytes)> onFull;
};

/// The sink that keeps a trace.
class TraceRecorder : public TraceSink {
 public:
  explicit TraceRecorder(std::shared_ptr<const Problem> problem, RecorderLimits limits = {});
  ~TraceRecorder() override;
  void onStart(Engine engine) override;
  ChoiceId internChoice(Choice choice) override;
  ConflictId internConflict(ConflictRecord conflict) override;
  bool onEvent(const Event& event) override;
  /// The growing (or finished) recording; outlives the recorder.
  std::shared_ptr<const Trace> trace() const;
  std::uint64_t memoryBytes() const;  ///< bytes of events held in memory now
  /// Why `onEvent` answered false ("The recording reached its limit of 4096 MiB."); empty while it has not.
  std::string whyStopped() const;

 private:
  class Storage;
  std::shared_ptr<Storage> m_storage;
};

}  // namespace cleave::solve
