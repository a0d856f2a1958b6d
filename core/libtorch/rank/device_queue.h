#pragma once
/// What a device that works behind the host's back offers to those who wait for it and time it: marks in its queue of
/// work. CUDA's are events (nccl/nccl_runtime.cpp); a CPU has no queue. LibTorch inside.
#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>

namespace cleave::torch_rank {

class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  /// Whether the device has come so far; never waits. Throws when the device has failed.
  virtual bool isReached() = 0;
  /// The device's time between two reached marks.
  virtual std::chrono::nanoseconds since(DeviceMark& earlier) = 0;
};

struct DeviceQueue {
  c10::Device device = c10::Device(c10::kCPU);
  /// A mark behind all work handed to the device so far; empty: every call has done its work when it returns.
  std::function<std::unique_ptr<DeviceMark>()> mark;
  /// Throws when communication has failed since the start; may be empty.
  std::function<void()> checkHealth;
};

}  // namespace cleave::torch_rank
