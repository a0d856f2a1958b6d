#pragma once
/// Periodic work on its own thread. This header does not use LibTorch.
#include <chrono>
#include <functional>
#include <thread>

namespace cleave::torch_rank {

class Periodic {
 public:
  /// Calls `work` after `first`, and then `period` after the end of each call. The destructor stops the thread and
  /// waits for it. Drops exceptions, such as those for lack of memory: the rank's main thread gets and reports the same
  /// one.
  Periodic(std::chrono::milliseconds first, std::chrono::milliseconds period, std::function<void()> work);

 private:
  std::jthread m_thread;
};

}  // namespace cleave::torch_rank
