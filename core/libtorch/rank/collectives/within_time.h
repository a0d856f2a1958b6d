#pragma once
/// A time limit for LibTorch calls that may block forever, such as a socket without an answer or a communicator whose
/// peer has exited.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace cleave::torch_rank {

/// The result of `body`, or nullopt if it takes longer than `limit`. The body runs on its own thread, which continues
/// after a timeout, so capture by value. Rethrows an exception of the body.
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
