#pragma once
/// How far a download is, for whoever shows it.
#include "base/throttle.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace cleave::hub {

struct DownloadState {
  std::string file;            ///< that is fetched or checked
  int number = 0, files = 0;   ///< it is the first of so many
  std::int64_t doneBytes = 0;  ///< of all files that are to be fetched, with what was there before
  std::int64_t totalBytes = 0;
  double bytesPerSecond = 0;  ///< of the last seconds; 0: not known yet
  bool isChecking = false;    ///< the bytes are all there, their hash is computed
  std::string waitingFor;     ///< another process, or the server's patience; empty: nothing

  /// "model-00001-of-00002.safetensors (1 of 2): 1.20 GiB of 9.80 GiB, 85.2 MiB/s, 1 min 43 s left".
  std::string text;
};

/// Hears what happens, from the thread that downloads.
struct Watcher {
  std::function<void(const DownloadState&)> onState;  ///< a few times a second
  std::function<void(const std::string&)> onNote;     ///< a sentence that stays true: what is to be fetched
};

/// Counts bytes as they come and tells the watcher, a few times a second.
class Meter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Meter(const Watcher& watcher) : m_watcher(watcher) {}
  DownloadState state;
  void add(std::int64_t bytes);
  void tell();  ///< at once

 private:
  struct Sample {
    Time time;
    std::int64_t bytes;
  };
  void measure(Time now);
  std::string text() const;
  const Watcher& m_watcher;
  std::int64_t m_received = 0;  ///< in this process
  std::deque<Sample> m_samples;
  Throttle m_tells{std::chrono::milliseconds(200)};
};

}  // namespace cleave::hub
