#include "libtorch/rank/collectives/periodic.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>

namespace cleave::torch_rank {

Periodic::Periodic(std::chrono::milliseconds first, std::chrono::milliseconds period, std::function<void()> work)
    : m_thread([=, work = std::move(work)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        for (auto pause = first;; pause = period) {
          wake.wait_for(lock, stop, pause, [] { return false; });
          if (stop.stop_requested()) return;
          try {
            work();
          } catch (const std::exception&) {
          }
        }
      }) {}

}  // namespace cleave::torch_rank
