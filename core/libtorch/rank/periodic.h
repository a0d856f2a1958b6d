#pragma once
/// Work that a thread of its own does again and again. No LibTorch in this header.
#include <chrono>
#include <functional>
#include <thread>

namespace cleave::torch_rank {

class Periodic {
 public:
  /// Does it for the first time after `first`, then `period` behind the end of the one before, until destroyed, which
  /// waits for it. What it throws for want of memory is dropped: the thread that the rank works on meets the same and
  /// says so.
  Periodic(std::chrono::milliseconds first, std::chrono::milliseconds period, std::function<void()> work);

 private:
  std::jthread m_thread;
};

}  // namespace cleave::torch_rank
