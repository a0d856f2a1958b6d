/// The two functions that cleave-rank loads from libcleave_nccl.so.
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"
#include "tests/support/simulated_gpu/collectives.h"
#include "tests/support/simulated_gpu/memory.h"
#include "tests/support/simulated_gpu/settings.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/ATen.h>

#include <thread>

namespace simulated_gpu {

void registerDevice(c10::DeviceIndex device);  // device.cpp

namespace {

using cleave::torch_rank::DeviceMark;
using cleave::torch_rank::NcclRequest;
using cleave::torch_rank::NcclRuntime;
using cleave::torch_rank::ProbedCuda;
using cleave::torch_rank::ProbedGpu;

constexpr std::chrono::seconds kWatchdogGrace{30};  // as in nccl_group.cpp
constexpr int kLeastCapability = 75, kNcclVersion = 22809;

class Mark final : public DeviceMark {
 public:
  Mark() : m_event(currentStream().record()) {}
  bool isReached() override {
    throwIfFailed();
    return m_event->isReached();
  }
  std::chrono::nanoseconds since(DeviceMark& earlier) override {
    return m_event->time() - dynamic_cast<Mark&>(earlier).m_event->time();
  }

 private:
  EventPtr m_event;
};

std::string uuidOf(int device) { return "GPU-simulated-" + std::to_string(settings().sameGpu ? 0 : device); }
std::string nameOf() { return settings().mig ? "Simulated GPU MIG 1g.10gb" : "Simulated GPU"; }

std::string whyNoGpu() {
  if (settings().driver / 1000 < settings().runtime / 1000 || settings().driver == 0)
    return "CUDA driver version is insufficient for CUDA runtime version";
  return settings().devices == 0 ? "no CUDA-capable device is detected" : "";
}

int deviceOf(const NcclRequest& request) {
  if (const std::string why = whyNoGpu(); !why.empty())
    throw std::runtime_error("No GPU for NCCL: " + why + ". Use the backend gloo to run on CPUs.");
  if (request.localRank < settings().devices) return request.localRank;
  if (settings().devices == 1) return 0;
  throw std::runtime_error("Local rank " + std::to_string(request.localRank) + " has no GPU: CUDA lists " +
                           std::to_string(settings().devices) +
                           " GPUs. Start fewer ranks, or use the backend gloo to run on CPUs.");
}

void open(const NcclRequest& request, NcclRuntime& runtime) {
  settings().rank = request.rank;
  const int device = deviceOf(request);
  if (settings().capability < kLeastCapability)
    throw std::runtime_error("CUDA error: no kernel image is available for execution on the device.");
  registerDevice(static_cast<c10::DeviceIndex>(device));
  runtime.queue.device = c10::Device(kDevice, static_cast<c10::DeviceIndex>(device));
  runtime.queue.mark = []() -> std::unique_ptr<DeviceMark> { return std::make_unique<Mark>(); };
  runtime.deviceName = nameOf() + " (cuda:" + std::to_string(device) + ")";
  runtime.precision = "IEEE float32 (TF32 off)";
  runtime.memory = [] { return Memory::get().figures(); };
  runtime.resetPeak = [] { Memory::get().forgetPeaks(); };
  runtime.traceAllocations = [](cleave::torch_rank::AllocationTrace trace) { Memory::get().trace(std::move(trace)); };
  runtime.connect = [device, limit = request.callTimeout + kWatchdogGrace](const c10::intrusive_ptr<c10d::Store>& store,
                                                                           int rank, int size) {
    return connectGroup(store, rank, size, uuidOf(device), limit);
  };
}

ProbedGpu probeGpu(int device) {
  ProbedGpu gpu;
  gpu.name = nameOf();
  gpu.uuid = uuidOf(device);
  gpu.capability = settings().capability;
  gpu.totalBytes = settings().memoryMib << 20;
  for (int other = 0; settings().noPeerAccess && other < settings().devices; ++other) {
    if (other != device) gpu.withoutAccess.push_back(other);
  }
  if (settings().capability < kLeastCapability) {
    gpu.error = "CUDA error: no kernel image is available for execution on the device";
    return gpu;
  }
  const at::Tensor twos = at::ones({8}, c10::Device(kDevice, 0)) + 1;
  if (twos.sum().item<float>() != 16) gpu.error = "a kernel computed a wrong result";
  gpu.freeBytes = Memory::get().figures().deviceFree;
  return gpu;
}

}  // namespace
}  // namespace simulated_gpu

extern "C" __attribute__((visibility("default"))) bool cleaveNcclOpen(const cleave::torch_rank::NcclRequest& request,
                                                                      cleave::torch_rank::NcclRuntime& runtime,
                                                                      std::string& error) {
  try {
    simulated_gpu::open(request, runtime);
    return true;
  } catch (const c10::Error& e) {
    error = e.what_without_backtrace();
  } catch (const std::exception& e) {
    error = e.what();
  }
  return false;
}

extern "C" __attribute__((visibility("default"))) void cleaveNcclProbe(cleave::torch_rank::ProbedCuda& found) {
  using namespace simulated_gpu;
  settings().rank = -1;  // the faults are for ranks
  std::this_thread::sleep_for(std::chrono::milliseconds(settings().slowProbe));
  found.driver = settings().driver;
  found.runtime = settings().runtime;
  found.nccl = kNcclVersion;
  found.error = whyNoGpu();
  if (!found.error.empty()) return;
  registerDevice(0);
  for (int device = 0; device < settings().devices; ++device) found.gpus.push_back(probeGpu(device));
}
