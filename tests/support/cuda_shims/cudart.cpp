// CUDA's runtime: devices, errors and kernels. Memory and streams are in cudart_memory.cpp and cudart_streams.cpp.
#include "cudart.h"

#include "device.h"
#include "kernels.h"
#include "settings.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

namespace cleave::shims {
namespace {

constexpr int kRuntimeVersion = 13000;
thread_local cudaError_t lastError = cudaSuccess;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const ErrorText& textOf(cudaError_t error) {
  static constexpr ErrorText kUnknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  const auto* const found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& row) { return row.error == error; });
  return found == std::end(kErrors) ? kUnknown : *found;
}

cudaError_t launch(const void* kernel, void** arguments, cudaStream_t stream) {
  if (settings().noKernelImage) return failed(cudaErrorNoKernelImageForDevice);
  if (auto work = workOf(kernel, arguments)) streamOf(stream).run(std::move(work));
  return cudaSuccess;
}

int attribute(cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor: return settings().capability / 10;
    case cudaDevAttrComputeCapabilityMinor: return settings().capability % 10;
    case cudaDevAttrMultiProcessorCount: return 132;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 228 << 10;
    case cudaDevAttrL2CacheSize: return 50 << 20;
    case cudaDevAttrUnifiedAddressing: return 1;
    default: return 0;
  }
}

/// What the shims' driver has under this name; a function that returns success for any other.
void* driverFunction(const char* name) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (void* const found = driver ? ::dlsym(driver, name) : nullptr) return found;
  return reinterpret_cast<void*>(+[] { return 0L; });
}

}  // namespace

cudaError_t failed(cudaError_t error) {
  lastError = error;
  return error;
}

cudaError_t checkDriver() {
  const int driver = settings().noDriver ? 0 : settings().driver;
  if (driver < kRuntimeVersion) return failed(cudaErrorInsufficientDriver);
  return settings().devices > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t checkDevice(int device) {
  if (const cudaError_t error = checkDriver(); error != cudaSuccess) return error;
  return device >= 0 && device < settings().devices ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

}  // namespace cleave::shims

using namespace cleave::shims;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().noDriver ? 0 : settings().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = checkDriver(); error != cudaSuccess) return error;
  *count = settings().devices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = currentDevice();
  return checkDriver();
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return error;
  setCurrentDevice(device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = checkDevice(device); error != cudaSuccess) return error;
  cudaDeviceProp& p = *properties;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, settings().mig ? "NVIDIA H100 80GB HBM3 MIG 1g.10gb" : "NVIDIA H100 80GB HBM3");
  const int identity = settings().sameGpu ? 0 : device;
  for (int i = 0; i < 16; ++i) p.uuid.bytes[i] = static_cast<char>(0x10 * identity + i);
  p.pciBusID = 0x10 + identity;
  p.major = attribute(cudaDevAttrComputeCapabilityMajor);
  p.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  p.totalGlobalMem = totalBytes();
  p.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  p.warpSize = attribute(cudaDevAttrWarpSize);
  p.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  for (int i = 0; i < 3; ++i) {
    p.maxThreadsDim[i] = attribute(static_cast<cudaDeviceAttr>(cudaDevAttrMaxBlockDimX + i));
    p.maxGridSize[i] = attribute(static_cast<cudaDeviceAttr>(cudaDevAttrMaxGridDimX + i));
  }
  p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  p.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  p.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  p.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  p.sharedMemPerBlock = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlock));
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  p.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  p.unifiedAddressing = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  *value = attribute(which);
  return checkDevice(device);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", 0x10 + (settings().sameGpu ? 0 : device));
  return checkDevice(device);
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccess, int device, int peer) {
  *canAccess = !settings().noPeerAccess && device != peer;
  return checkDevice(device) == cudaSuccess ? checkDevice(peer) : cudaErrorInvalidDevice;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = lastError;
  lastError = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return lastError; }
const char* cudaGetErrorName(cudaError_t error) { return textOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return textOf(error).text; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = driverFunction(name);
  if (result) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  if (settings().noKernelImage) return failed(cudaErrorNoKernelImageForDevice);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  attributes->binaryVersion = attributes->ptxVersion = settings().capability;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t,
                                                                   unsigned) {
  *blocks = 8;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  *blocks = 8;
  return cudaSuccess;
}

// What nvcc's code calls for each module at the start and for each launch.
void** __cudaRegisterFatBinary(void*) {
  static void* module[1];
  return module;
}

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  registerKernel(function, name);
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

static thread_local struct {
  dim3 grid, block;
  std::size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t sharedBytes, cudaStream_t stream) {
  pushed = {grid, block, sharedBytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* sharedBytes, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *sharedBytes = pushed.sharedBytes;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t, cudaStream_t stream) {
  return launch(kernel, arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, std::size_t, cudaStream_t stream) {
  return launch(function, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return launch(function, arguments, config->stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3, dim3, void** arguments, std::size_t,
                                        cudaStream_t stream) {
  return launch(function, arguments, stream);
}

}  // extern "C"
