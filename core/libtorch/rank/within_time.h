#pragma once
/// Calls into LibTorch that may block for ever (a socket that never answers, a communicator whose peer is gone) under a
/// limit of ours.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace cleave::torch_rank {

/// The result of `body`, or nullopt when it takes longer than `limit`. It runs on a thread of its own, which is left to
/// itself then: capture by value. An exception of the body's is thrown here.
template <class Body>
std::optional<std::invoke_result_t<Body>> withinTime(std::chrono::milliseconds limit, Body body) {
  using T = std::invoke_result_t<Body>;
  auto task = std::make_shared<std::packaged_task<T()>>(std::move(body));
  std::future<T> result = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace cleave::torch_rank
