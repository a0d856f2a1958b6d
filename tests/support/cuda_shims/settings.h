#pragma once
/// Shims: replacements for CUDA's runtime, driver, cuBLAS and NCCL that run on a machine without a GPU.
///
/// The real libcleave_nccl.so, libtorch_cuda.so, c10d's ProcessGroupNCCL with its watchdog and the caching allocator
/// run on them. Device memory is host memory; a stream is a queue of tasks with a thread; collectives move memory
/// between the rank processes. Kernels are counted but compute nothing, except for the few in kernels.h. LibTorch looks
/// for its libraries along its own DT_RPATH, so the shims are preloaded: build/.../shims/preload has the value of
/// LD_PRELOAD.
///
///   CUDA_SHIMS=devices=4,hang=1:7,log=/tmp/calls LD_PRELOAD=$(cat shims/preload) cleave-rank plan.json --backend nccl
///
/// This header: the settings in CUDA_SHIMS, and the log of one line per event.
#include <cstdint>
#include <string>

namespace cleave::shims {

/// "RANK:N" in CUDA_SHIMS.
struct Fault {
  int rank = -1;  ///< -1: no fault
  std::int64_t number = 0;
};

struct Settings {
  int devices = 2;
  std::int64_t memoryMib = 81920;  ///< of each device
  int capability = 90;             ///< 10 × major + minor
  int driver = 13000;              ///< newest CUDA version that the driver supports
  std::int64_t eventDelayUs = 0;   ///< from the moment a stream reaches an event until the event is complete
  bool noDriver = false;           ///< no driver is installed
  bool noKernelImage = false;      ///< launches fail with cudaErrorNoKernelImageForDevice
  bool sameGpu = false;            ///< all devices of all processes have one identity
  bool noPeerAccess = false;
  bool mig = false;         ///< one device, a MIG instance
  bool peerGone = false;    ///< a communicator reports ncclRemoteError once a peer's process is gone
  bool cublasTf32 = false;  ///< log one line per cuBLAS product: its compute type, and whether TF32 is allowed
  Fault outOfMemory;        ///< the rank's N-th cudaMalloc and all later ones fail
  Fault ncclOutOfMemory;    ///< the rank's N-th NCCL call (initialization or collective) fails
  Fault hang;               ///< the rank's N-th collective never completes
  Fault slowDestroy;        ///< milliseconds that the rank's ncclCommDestroy takes
  std::string log;          ///< file to append to; empty: no log
};

/// Read at the first call. A setting that is not known ends the process with a sentence.
const Settings& settings();

/// Environment variable RANK; 0 without it.
int ownRank();

/// This call is the N-th (or, with `orLater`, a later one) of the rank in `fault`.
bool isHit(const Fault& fault, std::int64_t call, bool orLater = false);

/// Appends "rank=0 pid=123 TEXT". A no-op without `log`.
void logLine(const std::string& text);

/// Calls `report` when the process ends, by _exit as well.
void atEnd(void (*report)());

}  // namespace cleave::shims

/// A function that generate.py made.
struct Stub {
  const char* name;
  unsigned calls;
};
/// Called by each shim at its start; the log names the stubs that were called.
extern "C" void cleaveShimStubs(const char* library, const Stub* stubs, unsigned count);
