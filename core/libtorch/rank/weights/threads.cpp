#include "libtorch/rank/weights/threads.h"

#include "libtorch/bridge/errors.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cleave::torch_rank {

Result<void> onThreads(int threads, std::int64_t parts, const std::function<Result<void>(std::int64_t part)>& work) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> hasFailed{false};
  std::mutex mutex;
  Result<void> result;
  const auto workOnParts = [&] {
    for (std::int64_t part = next++; part < parts && !hasFailed; part = next++) {
      auto done = bridge::translated([&] { return work(part); });
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!hasFailed.exchange(true)) result = std::move(done);
    }
  };
  {
    std::vector<std::jthread> others;
    others.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(parts - 1, 0, std::max(0, threads - 1))));
    try {
      while (others.size() < others.capacity()) others.emplace_back(workOnParts);
    } catch (const std::system_error&) {
      // The existing threads do all the work.
    }
    workOnParts();
  }
  return result;
}

}  // namespace cleave::torch_rank
