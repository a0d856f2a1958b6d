/// The device interface for PyTorch: streams, events and the generator.
#include "tests/support/simulated_gpu/memory.h"
#include "tests/support/simulated_gpu/settings.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace simulated_gpu {
namespace {

thread_local c10::DeviceIndex currentDevice = 0;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDevice, std::exchange(currentDevice, device.index())};
  }
  c10::Device getDevice() const override { return {kDevice, currentDevice}; }
  void setDevice(c10::Device device) const override { currentDevice = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { currentDevice = device.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(settings().devices); }

  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, currentStream().id());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, newStream().id());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), exchangeCurrentStream(stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override { return streamOf(stream.id()).record()->isReached(); }
  void synchronizeStream(const c10::Stream& stream) const override { streamOf(stream.id()).synchronize(); }
  void synchronizeDevice(c10::DeviceIndex) const override { currentStream().synchronize(); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    delete static_cast<EventPtr*>(*event);
    *event = new EventPtr(streamOf(stream.id()).record());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) streamOf(stream.id()).waitFor(*static_cast<EventPtr*>(event));
  }
  bool queryEvent(void* event) const override {
    throwIfFailed();
    return !event || (*static_cast<EventPtr*>(event))->isReached();
  }
  void synchronizeEvent(void* event) const override {
    if (event) (*static_cast<EventPtr*>(event))->wait();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<EventPtr*>(event);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return static_cast<at::DeviceIndex>(settings().devices); }
  at::DeviceIndex getCurrentDevice() const override { return currentDevice; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static auto* const generator = new at::Generator(at::detail::createCPUGenerator());
    return *generator;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    c10::DataPtr memory = Memory::get().allocate(bytes);
    const std::size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) Memory::get().copy_data(memory.get(), storage.data(), kept);
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

void registerDevice(c10::DeviceIndex device) {
  c10::register_privateuse1_backend("simulated_gpu");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::SetAllocator(kDevice, &Memory::get());
  Memory::get().setDevice(device);
  currentDevice = device;
  explainSegmentationFaults();
}

}  // namespace simulated_gpu
