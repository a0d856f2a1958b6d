#pragma once
/// The queue of work of an asynchronous device, with marks to wait for the work and time it. CUDA's marks are events
/// (nccl/nccl_library.cpp); a CPU has no queue. This header uses LibTorch.
#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>

namespace cleave::torch_rank {

class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  /// True if the device has reached the mark. Never waits. Throws if the device has failed.
  virtual bool isReached() = 0;
  /// The device's time since an earlier mark. The device must have reached both marks.
  virtual std::chrono::nanoseconds since(DeviceMark& earlier) = 0;
};

struct DeviceQueue {
  c10::Device device = c10::Device(c10::kCPU);
  /// Sets a mark after all work in the queue. Empty for a CPU, where a call returns when its work is done.
  std::function<std::unique_ptr<DeviceMark>()> mark;
  /// Throws if communication has failed since the start. May be empty.
  std::function<void()> checkHealth;
};

}  // namespace cleave::torch_rank
