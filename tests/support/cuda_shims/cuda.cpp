// CUDA's driver: the functions that LibTorch looks up by name.
#include <cuda.h>

#include "device.h"
#include "settings.h"

#include <dlfcn.h>

#include <cstdint>

using namespace cleave::shims;

extern "C" {

CUresult cuInit(unsigned) { return settings().noDriver ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = settings().noDriver ? 0 : settings().driver;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = settings().noDriver ? 0 : settings().devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < settings().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* isActive) {
  *flags = 0;
  *isActive = device == currentDevice();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(1 + currentDevice()));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "error of the CUDA shims' driver";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) { return cuGetErrorString(error, name); }

CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* found) {
  *function = ::dlsym(RTLD_DEFAULT, name);
  if (found) *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
