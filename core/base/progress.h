#pragma once
/// Progress reports and cancellation of long work.
///
/// The caller passes a `Progress`. The worker calls `report` from its own thread, at most a few hundred times a second,
/// and polls `cancelled()` in every loop over nodes or bytes. A default-constructed Progress is silent and never
/// cancelled.
///
///     Progress progress(source.get_token(), [](const ProgressUpdate& u) { ... });
///     for (...) { if (progress.cancelled()) return progress.cancelledError("loading weights"); ... }
#include "base/result.h"

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace cleave {

struct ProgressUpdate {
  std::string_view stage;  ///< "capture", "solve", "load weights", ...
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0: not known, as in a search; `done` then counts tried assignments
};

class Progress {
 public:
  using Sink = std::function<void(const ProgressUpdate&)>;
  Progress() = default;
  explicit Progress(std::stop_token stop, Sink sink = {}) : m_stop(std::move(stop)), m_sink(std::move(sink)) {}

  bool cancelled() const { return m_stop.stop_requested(); }
  const std::stop_token& stopToken() const { return m_stop; }
  void report(std::string_view stage, std::int64_t done = 0, std::int64_t total = 0) const {
    if (m_sink) m_sink({stage, done, total});
  }
  tl::unexpected<Error> cancelledError(std::string_view what) const {
    return fail(ErrorCode::Cancelled, "Stopped while {}.", what);
  }

 private:
  std::stop_token m_stop;
  Sink m_sink;
};

}  // namespace cleave
