// NCCL: communicators of real rank processes, and collectives that move their memory.
#include <nccl.h>

#include "device.h"
#include "exchange.h"
#include "reductions.h"
#include "settings.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

using namespace cleave::shims;

struct ncclComm {
  std::unique_ptr<Exchange> exchange;
  int device = 0;
  std::atomic<int> running{0};  ///< collectives that are queued or run
  std::mutex mutex;             ///< one collective at a time, on any stream
};

namespace {

/// Device memory that a communicator allocates outside the caching allocator.
constexpr std::size_t kCommunicatorBytes = std::size_t{64} << 20;
std::atomic<std::int64_t> calls{0}, collectives{0};

__attribute__((constructor)) void begin() {
  atEnd([] {
    if (calls > 0) logLine("nccl calls=" + std::to_string(calls) + " collectives=" + std::to_string(collectives));
  });
}

std::mutex lastErrorMutex;
std::string lastError;

ncclResult_t failed(ncclResult_t result, const std::string& text) {
  const std::lock_guard lock(lastErrorMutex);
  lastError = text;
  return result;
}

void logCall(const char* name, const ncclComm& comm) {
  logLine(std::string(name) + " rank=" + std::to_string(comm.exchange->rank()) + "/" +
          std::to_string(comm.exchange->size()));
}

/// NCCL allocates device memory in both kinds of calls.
bool isOutOfMemory() { return isHit(settings().ncclOutOfMemory, ++calls); }

ncclResult_t outOfMemory() { return failed(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'"); }

std::string identityOf(int device) {
  char bus[32] = {}, host[16] = {};
  cudaDeviceGetPCIBusId(bus, sizeof bus, device);
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + bus;
}

using Work = std::function<bool(Exchange&)>;

/// Queues a collective, with the requested faults. `work` is false if the communicator was aborted.
ncclResult_t enqueue(ncclComm* comm, cudaStream_t stream, Work work) {
  if (isOutOfMemory()) return outOfMemory();
  const std::int64_t number = ++collectives;
  ++comm->running;
  streamOf(stream).queue([=, work = std::move(work)] {
    const std::lock_guard lock(comm->mutex);
    if (isHit(settings().hang, number)) {
      logLine("collective " + std::to_string(number) + " hangs");
      comm->exchange->waitForAbort();
    } else {
      work(*comm->exchange);
    }
    --comm->running;
  });
  return ncclSuccess;
}

std::string describe(const char* name, std::size_t count, ncclDataType_t type) {
  return std::string(name) + " count=" + std::to_string(count) + " type=" + std::to_string(type);
}

bool isReducible(ncclDataType_t type, ncclRedOp_t operation) { return sizeOf(type) > 0 && operation < ncclNumOps; }

ncclResult_t unsupported(const std::string& call) {
  return failed(ncclInvalidArgument, "CUDA shims do not support " + call + ".");
}

ncclResult_t initialize(ncclComm_t* comm, int size, const ncclUniqueId& id, int rank) {
  if (isOutOfMemory() || !allocateDevice(currentDevice(), kCommunicatorBytes)) return outOfMemory();
  auto exchange = Exchange::open(id.internal, rank, size, identityOf(currentDevice()));
  if (!exchange) return failed(ncclRemoteError, "bootstrap: the rank that made the unique id is gone");
  auto* const made = new ncclComm;  // tasks of streams may use it until the process exits
  made->device = currentDevice();
  made->exchange = std::move(exchange);
  if (const auto other = made->exchange->rankOnSameDevice()) {
    return failed(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                                        std::to_string(*other) + " both on CUDA device " +
                                        std::to_string(made->device));
  }
  *comm = made;
  logCall("ncclCommInit", *made);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  Exchange::newName().copy(id->internal, sizeof id->internal - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  return initialize(comm, size, id, rank);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return initialize(comm, size, id, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  logCall("ncclCommFinalize", *comm);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  if (isHit(settings().slowDestroy, settings().slowDestroy.number))
    std::this_thread::sleep_for(std::chrono::milliseconds(settings().slowDestroy.number));
  logCall("ncclCommDestroy", *comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  logCall("ncclCommAbort", *comm);
  comm->exchange->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = ncclSuccess;
  if (!settings().peerGone) return ncclSuccess;
  if (const auto gone = comm->exchange->rankThatIsGone())
    *error = failed(ncclRemoteError, "socketProgress: Connection closed by rank " + std::to_string(*gone));
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string text;
  const std::lock_guard lock(lastErrorMutex);
  text = lastError;
  return text.c_str();
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->exchange->size();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->exchange->rank();
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::string call = describe("ncclAllReduce", count, type) + " op=" + std::to_string(operation);
  if (!isReducible(type, operation)) return unsupported(call);
  return enqueue(comm, stream, [=](Exchange& exchange) {
    const auto read = [=](std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks) {
      reduce(operation, type, chunks, bytes, static_cast<char*>(to) + offset);
    };
    return exchange.run(call, static_cast<const char*>(from), count * sizeOf(type), read);
  });
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  const std::string call = describe("ncclReduce", count, type) + " root=" + std::to_string(root);
  if (!isReducible(type, operation)) return unsupported(call);
  return enqueue(comm, stream, [=](Exchange& exchange) {
    const auto read = [=](std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks) {
      if (comm->exchange->rank() == root) reduce(operation, type, chunks, bytes, static_cast<char*>(to) + offset);
    };
    return exchange.run(call, static_cast<const char*>(from), count * sizeOf(type), read);
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const std::string call = describe("ncclReduceScatter", count, type) + " op=" + std::to_string(operation);
  if (!isReducible(type, operation)) return unsupported(call);
  return enqueue(comm, stream, [=](Exchange& exchange) {
    const std::size_t part = count * sizeOf(type);
    // `to` may be part of `from`, so it is written after all of `from` is sent.
    std::string own(part, '\0');
    for (int rank = 0; rank < exchange.size(); ++rank) {
      const auto read = [&](std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks) {
        if (rank == exchange.rank()) reduce(operation, type, chunks, bytes, own.data() + offset);
      };
      const char* const source = static_cast<const char*>(from) + static_cast<std::size_t>(rank) * part;
      if (!exchange.run(call, source, part, read)) return false;
    }
    std::memcpy(to, own.data(), part);
    return true;
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::string call = describe("ncclAllGather", count, type);
  if (sizeOf(type) == 0) return unsupported(call);
  return enqueue(comm, stream, [=](Exchange& exchange) {
    const std::size_t part = count * sizeOf(type);
    const auto read = [=](std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks) {
      for (std::size_t rank = 0; rank < chunks.size(); ++rank)
        std::memcpy(static_cast<char*>(to) + rank * part + offset, chunks[rank], bytes);
    };
    return exchange.run(call, static_cast<const char*>(from), part, read);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::string call = describe("ncclBroadcast", count, type) + " root=" + std::to_string(root);
  if (sizeOf(type) == 0) return unsupported(call);
  return enqueue(comm, stream, [=](Exchange& exchange) {
    const auto read = [=](std::size_t offset, std::size_t bytes, const std::vector<const char*>& chunks) {
      std::memcpy(static_cast<char*>(to) + offset, chunks[static_cast<std::size_t>(root)], bytes);
    };
    return exchange.run(call, comm->exchange->rank() == root ? static_cast<const char*>(from) : nullptr,
                        count * sizeOf(type), read);
  });
}
ncclResult_t ncclBcast(void* memory, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(memory, memory, count, type, root, comm, stream);
}

// A stub that returns success would leave memory unwritten.
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return unsupported("ncclSend");
}
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return unsupported("ncclRecv");
}
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*) { return unsupported("ncclCommSplit"); }

}  // extern "C"
