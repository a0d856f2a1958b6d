#pragma once
/// Progress of a download, for display.
#include "base/throttle.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace cleave::hub {

struct DownloadState {
  std::string file;            ///< file being downloaded or checked
  int number = 0, files = 0;   ///< number of this file, from 1, and number of all files
  std::int64_t doneBytes = 0;  ///< bytes of all files to download, including those present before
  std::int64_t totalBytes = 0;
  double bytesPerSecond = 0;  ///< average over the last seconds; 0: not known yet
  bool isChecking = false;    ///< all bytes are there and their hash is being computed
  std::string waitingFor;     ///< reason for waiting: another process or the server's retry time; empty: not waiting

  /// "model-00001-of-00002.safetensors (1 of 2): 1.20 GiB of 9.80 GiB, 85.2 MiB/s, 1 min 43 s left".
  std::string text;
};

/// Receives progress, on the downloading thread.
struct Watcher {
  std::function<void(const DownloadState&)> onState;  ///< called a few times a second
  std::function<void(const std::string&)> onNote;     ///< receives sentences for the log, such as what will be
                                                      ///< downloaded
};

/// Counts received bytes and reports them to the watcher a few times a second.
class Meter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Meter(const Watcher& watcher) : m_watcher(watcher) {}
  DownloadState state;
  void add(std::int64_t bytes);
  void report();  ///< reports at once

 private:
  struct Sample {
    Time time;
    std::int64_t bytes;
  };
  void measure(Time now);
  std::string text() const;
  const Watcher& m_watcher;
  std::int64_t m_received = 0;  ///< bytes received by this process
  std::deque<Sample> m_samples;
  Throttle m_tells{std::chrono::milliseconds(200)};
};

}  // namespace cleave::hub
