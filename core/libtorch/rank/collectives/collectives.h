#pragma once
/// The interface for all communication between ranks. It is the same for Gloo on CPUs and NCCL on GPUs. This header
/// uses LibTorch.
///
/// Every rank makes the same calls in the same order. On CPUs a call blocks until it has its result. On a device a call
/// is put into the device's queue, and `finish` waits for all calls. Not thread-safe. A call or `finish` fails with
/// RankFailed if a peer exits or does not answer in time.
///
///     CLEAVE_TRY(auto collectives, connectGloo(group));
///     CLEAVE_TRY(at::Tensor whole, collectives->allReduce(std::move(partial), Reduction::Sum));
///     CLEAVE_TRY_VOID(collectives->finish());
#include "base/result.h"
#include "libtorch/rank/collectives/device_calls.h"
#include "libtorch/rank/collectives/group_address.h"
#include "libtorch/rank/collectives/heartbeat.h"
#include "libtorch/rank/collectives/step_recorder.h"
#include "spec/rank/rank_spec.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace c10d {
class Backend;
}  // namespace c10d

namespace cleave::torch_rank {

enum class Reduction : std::uint8_t { Sum, Max };

/// Number of calls. Each call counts once, however many operations the backend uses for it.
struct CollectiveCounts {
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
};

/// One completed call. As in the plan, `bytes` is the size of the full tensor that was reduced, gathered or scattered.
struct CollectiveRecord {
  std::string_view kind;  ///< "all_reduce", "all_gather", "reduce_scatter"
  std::int64_t bytes = 0;
  std::chrono::microseconds time{0};
};

class Collectives {
 public:
  Collectives(int rank, int worldSize, DeviceQueue queue = {},
              std::chrono::milliseconds callTimeout = spec::kCallTimeout);
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const { return m_rank; }
  int worldSize() const { return m_worldSize; }

  /// Element-wise reduction of the ranks' tensors, which have equal shapes. Takes ownership of the tensor, and reduces
  /// it in place if it is the only owner.
  Result<at::Tensor> allReduce(at::Tensor x, Reduction reduction);
  /// The ranks' tensors, concatenated along `dim`.
  Result<at::Tensor> allGather(const at::Tensor& x, std::int64_t dim);
  /// This rank's part, along `dim`, of the sum over the ranks. Returns BadInput if the size is not divisible.
  Result<at::Tensor> reduceScatter(const at::Tensor& x, std::int64_t dim);
  /// Returns when every rank has called it. `limit` as in `finish`.
  Result<void> barrier(std::chrono::milliseconds limit = {});
  /// The group of `count` consecutive ranks that contains this rank; the first is a multiple of `count`. For all ranks,
  /// it is this group. All ranks make the first call, which connects the groups. Its calls are counted and observed
  /// here.
  Result<Collectives*> neighbours(int count) { return part({.size = count, .stride = 1}); }
  /// The ranks at the same position in each group of `count` neighbours. With 4 ranks and `count` 2 these are ranks 0
  /// and 2, and ranks 1 and 3. All else is as with `neighbours`.
  Result<Collectives*> counterparts(int count);
  /// Returns when the device has completed all calls and computation in its queue. Returns RankFailed and aborts the
  /// group if that takes longer than `limit` (if zero: the limit of one call) or communication has failed.
  Result<void> finish(std::chrono::milliseconds limit = {});
  /// The error that aborted the group, worded as in `finish`, or nullopt. It is the cause of all later errors. The
  /// watch may find it while the host waits for the device elsewhere.
  std::optional<Error> abortReason() const;

  const CollectiveCounts& counts() const { return m_counts; }
  void resetCounts() { m_counts = {}; }
  /// Receives each completed call of this group and its parts, except barriers, in the order of the calls. On a device,
  /// `finish` reports the last ones.
  void setObserver(std::function<void(const CollectiveRecord&)> observer) { m_observer = std::move(observer); }
  /// Records each call of this group and its parts, except barriers. May be null. It must outlive this object.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  /// Measures the calls of this group and its parts. On a device, a call or `finish` detects their start and end. May
  /// be null. It must outlive this object.
  void setCallTime(CallTime* calls) { m_callTime = calls; }
  /// Waits for all ranks and closes the connections. Call this after the last call. Errors are not reported, because
  /// the result is complete.
  void close();

 protected:
  // Functions of a backend. Tensors are contiguous. They may throw; the message is translated.
  virtual void reduceInPlace(at::Tensor& x, Reduction reduction) = 0;
  /// `out` is [worldSize, ...x's shape].
  virtual void gatherInto(at::Tensor& out, at::Tensor& x) = 0;
  /// `x` is [worldSize, ...out's shape] and may be overwritten.
  virtual void scatterSumInto(at::Tensor& out, at::Tensor& x) = 0;
  virtual void waitForAll() = 0;
  /// A function that aborts the connections without waiting for the peers; later calls fail. It may be called from any
  /// thread, also after this object is destroyed.
  virtual std::function<void()> breaker() { return {}; }
  /// Closes the connections after the last call. May throw.
  virtual void shutDown() {}
  /// A part of the group, whose ranks connect under `name`.
  virtual Result<std::unique_ptr<Collectives>> connectPart(const std::string& name, int rank, int size);
  const DeviceQueue& queue() const { return m_queue; }

 private:
  /// `size` ranks; the difference between consecutive ranks is `stride`.
  struct Part {
    int size = 1, stride = 1;
    auto operator<=>(const Part&) const = default;
  };
  Result<Collectives*> part(const Part& part);
  /// The group of the whole run, also for a part of a part.
  Collectives& root() { return m_root ? *m_root : *this; }
  const Collectives& root() const { return m_root ? *m_root : *this; }
  template <class Call>
  Result<void> runCollective(SpanKind kind, const at::Tensor& whole, std::int64_t CollectiveCounts::*count,
                             Call&& call);
  void notify(const CollectiveRecord& record) const;
  /// Puts a call into the device's queue.
  template <class Call>
  Result<void> enqueue(std::string_view kind, std::int64_t bytes, Call&& call);
  /// The calls of the root. The first use starts the watch.
  DeviceCalls& deviceCalls();
  void shutDownQuietly();
  void noteCall(bool isBegun);
  int m_rank, m_worldSize;
  DeviceQueue m_queue;
  std::chrono::milliseconds m_callTimeout;
  CollectiveCounts m_counts;
  std::function<void(const CollectiveRecord&)> m_observer;
  StepRecorder* m_recorder = nullptr;
  CallTime* m_callTime = nullptr;
  Collectives* m_root = nullptr;  ///< null if this is the root
  int m_stride = 1;               ///< difference between consecutive ranks in the root
  std::map<Part, std::unique_ptr<Collectives>> m_parts;
  std::unique_ptr<DeviceCalls> m_deviceCalls;  ///< of the root on a device; last, so its thread ends before the groups
};

/// One rank: every call is the identity.
std::unique_ptr<Collectives> makeSoloCollectives(DeviceQueue queue = {});
/// Makes a group of `size` ranks that connect under `name`.
using ConnectGroup = std::function<Result<std::unique_ptr<Collectives>>(const std::string& name, int rank, int size)>;

/// Collectives over any of c10d's backends. `queue` belongs to the device of the tensors. `connect` makes parts of the
/// group.
std::unique_ptr<Collectives> makeCollectives(c10::intrusive_ptr<c10d::Backend> backend, DeviceQueue queue = {},
                                             std::chrono::milliseconds callTimeout = spec::kCallTimeout,
                                             ConnectGroup connect = {});
/// Connects to all peers (a full mesh) through Gloo, on CPUs. Uses the interface in GLOO_SOCKET_IFNAME, or else this
/// host's address on the route to `masterAddress`.
Result<std::unique_ptr<Collectives>> connectGloo(const GroupAddress& group);

}  // namespace cleave::torch_rank
