#pragma once
/// A replacement for libcleave_nccl.so: a PyTorch device on which an unmodified `cleave-rank` runs without a GPU. It
/// detects errors that otherwise only a GPU would show.
///
/// - Work is asynchronous: each stream (stream.h) is a queue with its own thread, and runs CPU kernels later.
///   Only events order two streams, so code without the necessary event computes wrong numbers.
/// - The host cannot access device memory (memory.h): its mapping is PROT_NONE. Unwritten and freed memory is 0xFF,
///   which is NaN in every floating-point type.
/// - The allocator has the block sizes of CUDA's caching allocator; products reserve a workspace as in cuBLAS.
/// - Collectives (collectives.h) have NCCL's checks and run on their own stream over Gloo.
///
/// It does not include CUDA's kernels, libraries and driver. tests/support/cuda_shims covers those.
///
/// SIMULATED_GPU configures it with names and values separated by commas, `devices=2,delay_us=50,hang=1:3`. RANK:N is
/// the N-th event of that rank; N starts at 1.
///
/// | name                  | meaning                                                               | default |
/// |-----------------------|-----------------------------------------------------------------------|---------|
/// | devices               | GPUs that CUDA lists                                                  | 8       |
/// | memory_mib            | memory of each                                                        | 8192    |
/// | capability            | 10 × major + minor; no kernel runs below 75                           | 90      |
/// | driver, runtime       | CUDA versions; a driver older than the runtime, or 0, lists no GPU    | 13000   |
/// | delay_us              | each kernel runs this many microseconds later                         | 0       |
/// | workspace_mib         | memory of products for each host thread and stream                    | 32      |
/// | same_gpu, mig, no_peer_access | 1 turns it on                                                 | 0       |
/// | out_of_memory=RANK:N  | this and all later allocations fail                                   |         |
/// | fail=RANK:N           | this kernel fails, and every later call                               |         |
/// | hang=RANK:N           | this collective never completes                                       |         |
/// | nccl_out_of_memory=RANK:N | this collective has no memory for its buffers                     |         |
/// | slow_teardown=RANK:MS | shutting a process group down takes this long                         |         |
/// | slow_probe=MS         | answering --probe takes this long                                     |         |
#include <cstdint>
#include <optional>

namespace simulated_gpu {

struct Fault {
  int rank = -1;
  std::int64_t number = 0;
};

struct Settings {
  int devices = 8, capability = 90, driver = 13000, runtime = 13000;
  std::int64_t memoryMib = 8192, delayUs = 0, workspaceMib = 32, slowProbe = 0;
  bool sameGpu = false, mig = false, noPeerAccess = false;
  std::optional<Fault> outOfMemory, fail, hang, ncclOutOfMemory, slowTeardown;
  int rank = 0;  ///< of this process, from the request

  /// True if this is the faulty event of this rank. `count` starts at 1.
  bool hits(const std::optional<Fault>& fault, std::int64_t count) const {
    return fault && fault->rank == rank && count == fault->number;
  }
};

/// Read once. A wrong name or value ends the process with a message.
Settings& settings();

}  // namespace simulated_gpu
