// CUDA's runtime: memory and copies.
#include "cudart.h"
#include "device.h"
#include "settings.h"

#include <atomic>
#include <cstring>
#include <memory>

using namespace cleave::shims;

namespace {

std::atomic<std::int64_t> mallocs{0};

bool isPageable(const void* memory) { return placeOf(memory).kind == Place::Kind::Pageable; }

/// As CUDA does, a copy from pageable memory leaves the source free at once, and one to pageable memory waits.
cudaError_t copy(void* to, const void* from, std::size_t bytes, Stream& stream, bool waits) {
  if (bytes == 0) return cudaSuccess;
  if (isPageable(from) && !stream.isIdle()) {
    const auto staged = std::make_shared<std::unique_ptr<char[]>>(new char[bytes]);
    std::memcpy(staged->get(), from, bytes);
    stream.run([=] { std::memcpy(to, staged->get(), bytes); });
  } else {
    stream.run([=] { std::memcpy(to, from, bytes); });
  }
  if (waits || isPageable(to)) stream.synchronize();
  return cudaSuccess;
}

cudaError_t fill(void* memory, int value, std::size_t bytes, Stream& stream) {
  stream.run([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (const cudaError_t error = checkDriver(); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  if (isHit(settings().outOfMemory, ++mallocs, /*orLater=*/true)) {
    logLine("cudaMalloc bytes=" + std::to_string(bytes) + " fails");
    return failed(cudaErrorMemoryAllocation);
  }
  *memory = allocateDevice(currentDevice(), bytes);
  return *memory ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* memory) {
  if (!memory) return checkDriver();  // the usual way to make a context
  const int device = placeOf(memory).device;
  synchronizeDevice(device);
  return release(memory) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* freed, std::size_t* total) {
  *freed = freeBytes(currentDevice());
  *total = totalBytes();
  return checkDriver();
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = bytes > 0 ? allocatePinned(bytes) : nullptr;
  return *memory || bytes == 0 ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }
cudaError_t cudaFreeHost(void* memory) {
  return !memory || release(memory) ? cudaSuccess : failed(cudaErrorInvalidValue);
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  pin(memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  unpin(memory);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const Place place = placeOf(memory);
  std::memset(attributes, 0, sizeof *attributes);
  auto* const address = const_cast<void*>(memory);
  attributes->device = place.device;
  if (place.kind == Place::Kind::Pageable) return cudaSuccess;
  attributes->type = place.kind == Place::Kind::Device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->devicePointer = address;
  if (place.kind == Place::Kind::Pinned) attributes->hostPointer = address;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return copy(to, from, bytes, streamOf(nullptr), /*waits=*/true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, streamOf(stream), /*waits=*/false);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, streamOf(stream), /*waits=*/false);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t toPitch, const void* from, std::size_t fromPitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row)
    copy(static_cast<char*>(to) + row * toPitch, static_cast<const char*>(from) + row * fromPitch, width,
         streamOf(stream), /*waits=*/false);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return fill(memory, value, bytes, streamOf(nullptr));
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return fill(memory, value, bytes, streamOf(stream));
}

}  // extern "C"
