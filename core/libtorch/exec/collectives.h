#pragma once
/// The one way in which ranks talk: whatever Gloo proves on CPUs is what NCCL runs on GPUs. LibTorch inside.
///
/// Every rank makes the same calls in the same order. Calls block until the result is there. Not thread-safe; the
/// counts may be read by the thread that makes the calls. A call fails with RankFailed when a peer is gone or does not
/// answer in time.
///
///     CLEAVE_TRY(auto collectives, connectGloo(group));
///     CLEAVE_TRY(at::Tensor whole, collectives->allReduce(std::move(partial), Reduction::Sum));
#include "base/result.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace cleave::torch_exec {

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
  Collectives(int rank, int worldSize) : m_rank(rank), m_worldSize(worldSize) {}
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
  /// Returns when every rank has called it.
  Result<void> barrier();

  const CollectiveCounts& counts() const { return m_counts; }
  void resetCounts() { m_counts = {}; }
  /// Called after every call but barriers.
  void setObserver(std::function<void(const CollectiveRecord&)> observer) { m_observer = std::move(observer); }

 protected:
  // What a backend does; tensors are contiguous. They may throw; the message is translated.
  virtual void reduceInPlace(at::Tensor& x, Reduction reduction) = 0;
  /// `out` is [worldSize, ...x's shape].
  virtual void gatherInto(at::Tensor& out, at::Tensor& x) = 0;
  /// `x` is [worldSize, ...out's shape].
  virtual void scatterSumInto(at::Tensor& out, at::Tensor& x) = 0;
  virtual void waitForAll() = 0;
  virtual void synchronize() {}

 private:
  template <class Call>
  Result<void> timed(std::string_view kind, const at::Tensor& whole, std::int64_t& count, Call&& call);
  int m_rank, m_worldSize;
  CollectiveCounts m_counts;
  std::function<void(const CollectiveRecord&)> m_observer;
};

/// Where the ranks of one run meet.
struct GroupAddress {
  int rank = 0, worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;  ///< rank 0: a socket that already listens on the port; -1: none
  std::chrono::milliseconds connectTimeout{60'000};
  std::chrono::milliseconds callTimeout{600'000};
};

/// True for "localhost", 127.x.x.x and ::1: then the ranks talk over the loopback device.
bool isLoopback(const std::string& address);

/// The store the ranks find each other with; rank 0 serves it. Environment when it cannot be reached in time.
Result<c10::intrusive_ptr<c10d::Store>> connectStore(const GroupAddress& group);

/// One rank: every call is the identity.
std::unique_ptr<Collectives> makeSoloCollectives();
/// Over any of c10d's backends. `synchronize` waits for the device (empty: not needed).
std::unique_ptr<Collectives> makeCollectives(c10::intrusive_ptr<c10d::Backend> backend,
                                             std::function<void()> synchronize = {});
/// Connects to all peers (a full mesh) through Gloo, on CPUs.
Result<std::unique_ptr<Collectives>> connectGloo(const GroupAddress& group);

}  // namespace cleave::torch_exec
