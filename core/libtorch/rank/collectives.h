#pragma once
/// The one way in which ranks talk: whatever Gloo proves on CPUs is what NCCL runs on GPUs. LibTorch inside.
///
/// Every rank makes the same calls in the same order. On CPUs a call blocks until the result is there; on a device it
/// is put into the device's queue, and `finish` waits for all of them. Not thread-safe; the counts may be read by the
/// thread that makes the calls. A call or `finish` fails with RankFailed when a peer is gone or does not answer in
/// time.
///
///     CLEAVE_TRY(auto collectives, connectGloo(group));
///     CLEAVE_TRY(at::Tensor whole, collectives->allReduce(std::move(partial), Reduction::Sum));
///     CLEAVE_TRY_VOID(collectives->finish());
#include "base/result.h"
#include "libtorch/rank/device_calls.h"
#include "libtorch/rank/limits.h"
#include "libtorch/rank/pulse.h"
#include "libtorch/rank/step_recorder.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace cleave::torch_rank {

enum class Reduction : std::uint8_t { Sum, Max };

/// How many calls there were; every call counts once, however the backend carries it out.
struct CollectiveCounts {
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
};

/// One finished call. `bytes` are those of the whole tensor that was reduced, gathered or scattered (as in the plan).
struct CollectiveRecord {
  std::string_view kind;  ///< "all_reduce", "all_gather", "reduce_scatter"
  std::int64_t bytes = 0;
  std::chrono::microseconds time{0};
};

class Collectives {
 public:
  Collectives(int rank, int worldSize, DeviceQueue queue = {}, std::chrono::milliseconds callTimeout = kCallTimeout);
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const { return m_rank; }
  int worldSize() const { return m_worldSize; }

  /// Element-wise over the ranks' tensors of equal shape. Takes the tensor over: one that nobody else holds is reduced
  /// in place.
  Result<at::Tensor> allReduce(at::Tensor x, Reduction reduction);
  /// The ranks' tensors one behind the other along `dim`.
  Result<at::Tensor> allGather(const at::Tensor& x, std::int64_t dim);
  /// Sum over the ranks, of which this rank keeps its part of `dim`. BadInput when the size does not divide.
  Result<at::Tensor> reduceScatter(const at::Tensor& x, std::int64_t dim);
  /// Returns when every rank has called it. `limit`: as of finish.
  Result<void> barrier(std::chrono::milliseconds limit = {});
  /// The `count` neighbours that this rank is one of, the first of them a multiple of `count`: as many groups as there
  /// are. Connected on the first call, which all ranks make; all of them: this group. What it does is counted and
  /// observed here.
  Result<Collectives*> neighbours(int count) { return part({.size = count, .stride = 1}); }
  /// The ranks that stand where this one does in each group of `count` neighbours: of 4 ranks and 2 neighbours 0 and 2,
  /// or 1 and 3. Otherwise the same.
  Result<Collectives*> counterparts(int count);
  /// Returns when the device has done all that was handed to it, calls and computation. RankFailed, and the group is
  /// broken off, when that takes longer than `limit` (zero: the time that one call may take) or communication has
  /// failed.
  Result<void> finish(std::chrono::milliseconds limit = {});
  /// What broke the group off, as `finish` says it, also while the host waited for the device in another way: whatever
  /// went wrong since then follows from it. nullopt: nothing did.
  std::optional<Error> brokenOff() const;

  const CollectiveCounts& counts() const { return m_counts; }
  void resetCounts() { m_counts = {}; }
  /// Told of every call but barriers, those of its parts too, in the order of the calls, once each has completed; on a
  /// device at the latest by `finish`.
  void setObserver(std::function<void(const CollectiveRecord&)> observer) { m_observer = std::move(observer); }
  /// Is told of every call but barriers, those of its parts too; null: nobody is. It must outlive this.
  void setRecorder(StepRecorder* recorder) { m_recorder = recorder; }
  /// Is told when a call of this group or a part of it begins and ends; on a device when a call or `finish` sees it.
  /// Null: nobody is. It must outlive this.
  void setCallTime(CallTime* calls) { m_callTime = calls; }
  /// After the last call of all ranks: waits for them and ends the connections in order. What goes wrong is not
  /// reported: the result is known. No call may follow.
  void close();

 protected:
  // What a backend does; tensors are contiguous. They may throw; the message is translated.
  virtual void reduceInPlace(at::Tensor& x, Reduction reduction) = 0;
  /// `out` is [worldSize, ...x's shape].
  virtual void gatherInto(at::Tensor& out, at::Tensor& x) = 0;
  /// `x` is [worldSize, ...out's shape] and may be used up.
  virtual void scatterSumInto(at::Tensor& out, at::Tensor& x) = 0;
  virtual void waitForAll() = 0;
  /// Gives up on the peers without waiting for them; later calls fail. For any thread, and longer than this lives.
  virtual std::function<void()> breaker() { return {}; }
  /// Ends the connection in order. May throw.
  virtual void shutDown() {}
  /// A part of the group, whose ranks find each other under `name`.
  virtual Result<std::unique_ptr<Collectives>> connectPart(const std::string& name, int rank, int size);
  const DeviceQueue& queue() const { return m_queue; }

 private:
  /// So many ranks, each `stride` behind the one before.
  struct Part {
    int size = 1, stride = 1;
    auto operator<=>(const Part&) const = default;
  };
  Result<Collectives*> part(const Part& part);
  /// The group that a part, or a part of a part, was made from.
  Collectives& root() { return m_root ? *m_root : *this; }
  const Collectives& root() const { return m_root ? *m_root : *this; }
  template <class Call>
  Result<void> carryOut(SpanKind kind, const at::Tensor& whole, std::int64_t CollectiveCounts::*count, Call&& call);
  void tell(const CollectiveRecord& record) const;
  /// Puts a call into the device's queue.
  template <class Call>
  Result<void> enqueue(std::string_view kind, std::int64_t bytes, Call&& call);
  /// The root's. The first use starts the watch over the peers.
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
  Collectives* m_root = nullptr;  ///< null: this is no part of another group
  int m_stride = 1;               ///< of its ranks in the whole group
  std::map<Part, std::unique_ptr<Collectives>> m_parts;
  std::unique_ptr<DeviceCalls> m_deviceCalls;  ///< of the root, on a device: its thread ends before the groups do
};

/// Where the ranks of one run meet.
struct GroupAddress {
  int rank = 0, worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;       ///< rank 0: a socket that already listens on the port; -1: none
  std::string agentStore;  ///< prefix in a store that the launcher serves (torchrun's agent); empty: rank 0 serves one
  std::chrono::milliseconds connectTimeout{60'000};  ///< for meeting and connecting together
  std::chrono::milliseconds callTimeout = kCallTimeout;
  /// What every rank must have been started with alike: names ("plan") and values, the same names on all of them.
  std::vector<std::pair<std::string, std::string>> alike = {};
  std::string whole = {};  ///< of a part of the run's ranks: which of them this one is, "Rank 2 of 4"

  /// The same meeting place, for a group of `ofSize` ranks.
  GroupAddress part(int ofRank, int ofSize) const;
  /// The rank in the whole run: "Rank 2 of 4".
  std::string whoText() const;
};

/// The store the ranks find each other with. Environment when it cannot be reached in time, whatever holds it up: no
/// route, a name that does not resolve, a port where somebody listens and says nothing. BadInput on a rank whose
/// `alike` is not that of rank 0, and RankFailed on rank 0 then.
Result<c10::intrusive_ptr<c10d::Store>> connectStore(const GroupAddress& group);

/// One rank: every call is the identity.
std::unique_ptr<Collectives> makeSoloCollectives(DeviceQueue queue = {});
/// Makes a group of `size` ranks that find each other under `name`.
using ConnectGroup = std::function<Result<std::unique_ptr<Collectives>>(const std::string& name, int rank, int size)>;

/// Over any of c10d's backends. `queue`: of the device whose tensors it takes. `connect`: makes parts of the group.
std::unique_ptr<Collectives> makeCollectives(c10::intrusive_ptr<c10d::Backend> backend, DeviceQueue queue = {},
                                             std::chrono::milliseconds callTimeout = kCallTimeout,
                                             ConnectGroup connect = {});
/// Connects to all peers (a full mesh) through Gloo, on CPUs: by the address of this host that the way to
/// `masterAddress` begins at, or on the interface that GLOO_SOCKET_IFNAME names.
Result<std::unique_ptr<Collectives>> connectGloo(const GroupAddress& group);

}  // namespace cleave::torch_rank
