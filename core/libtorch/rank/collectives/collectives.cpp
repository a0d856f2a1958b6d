#include "libtorch/rank/collectives/collectives.h"

#include "base/quantities.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/collectives/group_store.h"
#include "libtorch/rank/collectives/within_time.h"
#include "protocol/tcp.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

// The wheel contains Gloo, but its header declares the class only if this is defined.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cleave::torch_rank {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kAbortLimit{2'000};
// Eight GPUs need several seconds to close their communicators.
constexpr std::chrono::milliseconds kShutDownLimit{30'000};
constexpr std::string_view kBarrier = "the barrier";

/// The type in which a sum is computed. Neither Gloo nor NCCL supports int16. For Gloo, half precision is summed in
/// float32, which is also more exact over many ranks. NCCL sums half precision in its own type.
at::ScalarType reducibleType(at::ScalarType type, bool isOnCpu) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16: return isOnCpu ? at::kFloat : type;
    case at::kBool: return isOnCpu ? at::kByte : type;
    case at::kShort: return at::kInt;
    default: return type;
  }
}

class SoloCollectives final : public Collectives {
 public:
  explicit SoloCollectives(DeviceQueue queue) : Collectives(0, 1, std::move(queue)) {}

 protected:
  void reduceInPlace(at::Tensor&, Reduction) override {}
  void gatherInto(at::Tensor& out, at::Tensor& x) override { out.select(0, 0).copy_(x); }
  void scatterSumInto(at::Tensor& out, at::Tensor& x) override { out.copy_(x.select(0, 0)); }
  void waitForAll() override {}
};

/// A contiguous tensor with one owner.
at::Tensor ownCopy(at::Tensor x) {
  const bool isOurs = x.use_count() == 1 && x.storage().use_count() == 1 && x.is_contiguous();
  return isOurs ? std::move(x) : x.clone(at::MemoryFormat::Contiguous);
}

/// The same memory without ownership. Gloo's threads release a tensor some time after the call, so with ownership the
/// memory would be freed at an unpredictable time, and the measured peak would vary.
at::Tensor withoutOwnership(const at::Tensor& x) {
  return x.is_cpu() ? at::from_blob(x.data_ptr(), x.sizes(), x.options()) : x;
}

class BackendCollectives final : public Collectives {
 public:
  BackendCollectives(c10::intrusive_ptr<c10d::Backend> backend, DeviceQueue queue,
                     std::chrono::milliseconds callTimeout, ConnectGroup connect)
      : Collectives(backend->getRank(), backend->getSize(), std::move(queue), callTimeout),
        m_backend(std::move(backend)),
        m_connect(std::move(connect)) {}

 protected:
  void reduceInPlace(at::Tensor& x, Reduction reduction) override {
    const at::ScalarType type = reducibleType(x.scalar_type(), x.is_cpu());
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::Sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    const at::Tensor sum = x.to(type);
    std::vector<at::Tensor> tensors{withoutOwnership(sum)};
    m_backend->allreduce(tensors, options)->wait();
    if (type != x.scalar_type()) x.copy_(sum);
  }
  // Gloo's flat calls split the large tensor along its first dimension. The small one must have the shape of a part.
  void gatherInto(at::Tensor& out, at::Tensor& x) override {
    // Sends bytes, because Gloo supports fewer types than ATen.
    at::Tensor outBytes = withoutOwnership(out).view(at::kByte);
    at::Tensor xBytes = withoutOwnership(x).unsqueeze(0).view(at::kByte);
    m_backend->_allgather_base(outBytes, xBytes)->wait();
  }
  void scatterSumInto(at::Tensor& out, at::Tensor& x) override {
    if (!x.is_cpu()) {
      at::Tensor part = out.unsqueeze(0);
      m_backend->_reduce_scatter_base(part, x)->wait();
      return;
    }
    // c10d also implements this with an all-reduce for Gloo, but in a buffer that Gloo's threads free.
    at::Tensor sum = ownCopy(std::move(x));
    reduceInPlace(sum, Reduction::Sum);
    out.copy_(sum.select(0, rank()));
  }
  void waitForAll() override {
    if (!queue().mark) {
      m_backend->barrier()->wait();
      return;
    }
    // NCCL's barrier blocks the host without a limit. A sum in the queue has the same effect, and `finish` waits for
    // it.
    std::vector<at::Tensor> tensors{at::ones({1}, queue().device)};
    m_backend->allreduce(tensors)->wait();
  }
  Result<std::unique_ptr<Collectives>> connectPart(const std::string& name, int rank, int size) override {
    return m_connect ? m_connect(name, rank, size) : Collectives::connectPart(name, rank, size);
  }
  void shutDown() override {
    withinTime(kShutDownLimit, [backend = m_backend] {
      backend->shutdown();
      return true;
    });
  }
  std::function<void()> breaker() override {
    // An abort may also block, because a communicator waits for its kernels.
    return [backend = m_backend] {
      withinTime(kAbortLimit, [backend] {
        backend->abort();
        return true;
      });
    };
  }

 private:
  c10::intrusive_ptr<c10d::Backend> m_backend;
  const ConnectGroup m_connect;
};

/// Calls c10d. An exception means that a peer failed, unless its type shows another cause.
template <class Call>
Result<void> callBackend(Call&& call) {
  return bridge::translated(
      [&]() -> Result<void> {
        call();
        return {};
      },
      ErrorCode::RankFailed);
}

}  // namespace

Collectives::Collectives(int rank, int worldSize, DeviceQueue queue, std::chrono::milliseconds callTimeout)
    : m_rank(rank), m_worldSize(worldSize), m_queue(std::move(queue)), m_callTimeout(callTimeout) {}

DeviceCalls& Collectives::deviceCalls() {
  Collectives& whole = root();
  if (!whole.m_deviceCalls) {
    DeviceCalls::Listener listener;
    listener.onBegin = [&whole] { whole.noteCall(/*isBegun=*/true); };
    listener.onEnd = [&whole](const DeviceCalls::Call& call) {
      whole.noteCall(/*isBegun=*/false);
      if (call.kind == kBarrier) return;
      const auto time = std::chrono::duration_cast<std::chrono::microseconds>(call.after->since(*call.before));
      whole.notify({call.kind, call.bytes, time});
    };
    whole.m_deviceCalls = std::make_unique<DeviceCalls>(whole.m_callTimeout, std::move(listener));
    whole.m_deviceCalls->add({whole.m_queue.checkHealth, whole.breaker()});
  }
  return *whole.m_deviceCalls;
}

template <class Call>
Result<void> Collectives::enqueue(std::string_view kind, std::int64_t bytes, Call&& call) {
  DeviceCalls& calls = deviceCalls();
  calls.report();
  auto before = m_queue.mark();
  CLEAVE_TRY_VOID(call());
  calls.push(kind, bytes, std::move(before), m_queue.mark());
  return {};
}

template <class Call>
Result<void> Collectives::runCollective(SpanKind span, const at::Tensor& whole, std::int64_t CollectiveCounts::*count,
                                        Call&& call) {
  const std::string_view kind = protocol::toText(span);
  const auto start = Clock::now();
  const std::int64_t bytes = whole.numel() * static_cast<std::int64_t>(whole.element_size());
  const StepRecorder::Scope recorded(root().m_recorder, span, bytes, m_worldSize, m_stride);
  const auto callOut = [&] { return callBackend(call); };
  if (!m_queue.mark) noteCall(/*isBegun=*/true);
  // A failed device is not the fault of a peer, so only the call itself may return RankFailed.
  auto result = !m_queue.mark ? callOut() : bridge::translated([&] { return enqueue(kind, bytes, callOut); });
  if (!m_queue.mark) noteCall(/*isBegun=*/false);
  if (!result) {
    return fail(result.error().code, "{} of {} failed on rank {} of {}: {}", kind, counted(bytes, "byte"),
                root().m_rank, root().m_worldSize, result.error().message);
  }
  ++(m_counts.*count);
  if (m_root) ++(m_root->m_counts.*count);
  if (!m_queue.mark) notify({kind, bytes, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start)});
  return {};
}

void Collectives::notify(const CollectiveRecord& record) const {
  if (root().m_observer) root().m_observer(record);
}

void Collectives::noteCall(bool isBegun) {
  CallTime* const calls = root().m_callTime;
  if (!calls) return;
  if (isBegun)
    calls->begin();
  else
    calls->end();
}

Result<void> Collectives::finish(std::chrono::milliseconds limit) {
  if (!m_queue.mark) return {};
  // The stream waits for the calls of all groups, so this group's mark is after the calls of its parts.
  const auto wait = [&] { return deviceCalls().waitFor(*m_queue.mark(), limit.count() > 0 ? limit : m_callTimeout); };
  const auto result = bridge::translated(wait);
  if (result) return {};
  return fail(result.error().code, "Rank {} of {} gave up: {}", root().m_rank, root().m_worldSize,
              result.error().message);
}

std::optional<Error> Collectives::abortReason() const {
  const Collectives& whole = root();
  auto why = whole.m_deviceCalls ? whole.m_deviceCalls->failure() : std::nullopt;
  if (why) why->message = fmt::format("Rank {} of {} gave up: {}", whole.m_rank, whole.m_worldSize, why->message);
  return why;
}

void Collectives::close() {
  if (m_queue.mark && m_worldSize > 1 && !barrier(kShutDownLimit)) return;
  if (m_deviceCalls) m_deviceCalls->stopWatching();
  for (const auto& [which, group] : m_parts) group->shutDownQuietly();
  shutDownQuietly();
}

void Collectives::shutDownQuietly() {
  (void)bridge::translated([&]() -> Result<void> {
    shutDown();
    return {};
  });
}

Result<at::Tensor> Collectives::allReduce(at::Tensor x, Reduction reduction) {
  at::Tensor result = ownCopy(std::move(x));
  CLEAVE_TRY_VOID(runCollective(SpanKind::AllReduce, result, &CollectiveCounts::allReduce,
                                [&] { reduceInPlace(result, reduction); }));
  return result;
}

Result<at::Tensor> Collectives::allGather(const at::Tensor& x, std::int64_t dim) {
  if (dim < 0) dim += x.dim();
  if (dim < 0 || dim >= x.dim())
    return fail(ErrorCode::BadInput, "all_gather: dimension {} does not exist in a tensor with {}.", dim,
                counted(x.dim(), "dimension"));
  at::Tensor mine = x.contiguous();
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), m_worldSize);
  at::Tensor parts = at::empty(shape, mine.options());
  CLEAVE_TRY_VOID(
      runCollective(SpanKind::AllGather, parts, &CollectiveCounts::allGather, [&] { gatherInto(parts, mine); }));
  // [ranks, ..., d, ...] → [..., ranks·d, ...]. This is a view for dim 0, and one copy otherwise.
  return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous();
}

Result<at::Tensor> Collectives::reduceScatter(const at::Tensor& x, std::int64_t dim) {
  if (dim < 0) dim += x.dim();
  if (dim < 0 || dim >= x.dim()) {
    return fail(ErrorCode::BadInput, "reduce_scatter: dimension {} does not exist in a tensor with {}.", dim,
                counted(x.dim(), "dimension"));
  }
  if (x.size(dim) % m_worldSize != 0) {
    return fail(ErrorCode::BadInput, "reduce_scatter: the size of dimension {} is {}, not divisible by {} ranks.", dim,
                x.size(dim), m_worldSize);
  }
  at::Tensor parts =
      x.unflatten(dim, std::vector<std::int64_t>{m_worldSize, x.size(dim) / m_worldSize}).movedim(dim, 0).contiguous();
  std::vector<std::int64_t> shape = parts.sizes().slice(1).vec();
  at::Tensor mine = at::empty(shape, x.options());
  CLEAVE_TRY_VOID(runCollective(SpanKind::ReduceScatter, x, &CollectiveCounts::reduceScatter,
                                [&] { scatterSumInto(mine, parts); }));
  return mine;
}

Result<std::unique_ptr<Collectives>> Collectives::connectPart(const std::string&, int, int size) {
  return fail(ErrorCode::Environment, "This backend cannot connect groups of {} ranks.", size);
}

Result<Collectives*> Collectives::counterparts(int count) {
  CLEAVE_CHECK(count > 0 && m_worldSize % count == 0, "{} ranks cannot form groups of {}", m_worldSize, count);
  return part({.size = m_worldSize / count, .stride = count});
}

Result<Collectives*> Collectives::part(const Part& wanted) {
  if (wanted.size == m_worldSize) return this;
  const int span = wanted.size * wanted.stride;
  CLEAVE_CHECK(wanted.size > 0 && m_worldSize % span == 0, "{} ranks cannot form groups of {} with stride {}",
               m_worldSize, wanted.size, wanted.stride);
  std::unique_ptr<Collectives>& group = m_parts[wanted];
  if (!group) {
    const int first = m_rank / span * span + m_rank % wanted.stride;
    const std::string name = fmt::format("cleave/part/{}/{}/{}", wanted.size, wanted.stride, first);
    CLEAVE_TRY(group, wanted.size == 1 ? makeSoloCollectives(m_queue)
                                       : connectPart(name, (m_rank - first) / wanted.stride, wanted.size));
    group->m_root = &root();
    group->m_stride = m_stride * wanted.stride;
    if (m_queue.mark && wanted.size > 1) deviceCalls().add({group->m_queue.checkHealth, group->breaker()});
  }
  return group.get();
}

Result<void> Collectives::barrier(std::chrono::milliseconds limit) {
  if (!m_queue.mark) noteCall(/*isBegun=*/true);
  const auto wait = [&] { return callBackend([&] { waitForAll(); }); };
  auto result = !m_queue.mark ? wait() : bridge::translated([&] { return enqueue(kBarrier, 0, wait); });
  if (!m_queue.mark) noteCall(/*isBegun=*/false);
  if (!result) {
    return fail(result.error().code, "The barrier failed on rank {} of {}: {}", root().m_rank, root().m_worldSize,
                result.error().message);
  }
  return finish(limit);
}

std::unique_ptr<Collectives> makeSoloCollectives(DeviceQueue queue) {
  return std::make_unique<SoloCollectives>(std::move(queue));
}

std::unique_ptr<Collectives> makeCollectives(c10::intrusive_ptr<c10d::Backend> backend, DeviceQueue queue,
                                             std::chrono::milliseconds callTimeout, ConnectGroup connect) {
  return std::make_unique<BackendCollectives>(std::move(backend), std::move(queue), callTimeout, std::move(connect));
}

namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using GlooOptions = c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>;

Result<std::unique_ptr<Collectives>> connectGlooOver(const StorePtr& store, const GlooOptions& options,
                                                     const GroupAddress& group, std::chrono::milliseconds limit) {
  const auto others = [=](const std::string& name, int rank, int size) {
    const GroupAddress part = group.part(rank, size);
    return connectGlooOver(c10::make_intrusive<c10d::PrefixStore>(name, store), options, part, group.connectTimeout);
  };
  const auto connect = [=]() -> Result<std::unique_ptr<Collectives>> {
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, group.rank, group.worldSize, options);
    backend->setTimeout(group.callTimeout);
    return makeCollectives(backend, {}, group.callTimeout, others);
  };
  auto connected = withinTime(limit, [connect] { return bridge::translated(connect, ErrorCode::RankFailed); });
  if (!connected) {
    return fail(ErrorCode::RankFailed,
                "{} cannot connect to its peers through Gloo: they did not answer within {:g} s.", group.rankText(),
                std::chrono::duration<double>(limit).count());
  }
  // Environment if this rank itself ran out of threads, memory or descriptors.
  if (!*connected) {
    return fail(connected->error().code, "{} cannot connect to its peers through Gloo: {}", group.rankText(),
                connected->error().message);
  }
  return std::move(*connected);
}

}  // namespace

Result<std::unique_ptr<Collectives>> connectGloo(const GroupAddress& group) {
  const auto start = Clock::now();
  CLEAVE_TRY(const auto store, connectStore(group));
  const auto left = std::max<std::chrono::milliseconds>(
      std::chrono::milliseconds(1),
      group.connectTimeout - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start));
  // The network device belongs to this machine, so an error is not the fault of a peer.
  const auto ownDevice = [group, left]() -> Result<GlooOptions> {
    auto options = c10d::ProcessGroupGloo::Options::create(left);
    using Gloo = c10d::ProcessGroupGloo;
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    // The host name often resolves to the loopback device, or to a network without the other ranks.
    const auto own = protocol::ownAddressTowards(group.masterAddress);
    options->devices.push_back(interface && *interface ? Gloo::createDeviceForInterface(interface)
                               : own                   ? Gloo::createDeviceForHostname(*own)
                                                       : Gloo::createDefaultDevice());
    return options;
  };
  auto device = withinTime(left, [ownDevice] { return bridge::translated(ownDevice, ErrorCode::Environment); });
  if (!device || !*device) {
    return fail(ErrorCode::Environment, "Rank {} of {} has no network device for Gloo: {}", group.rank, group.worldSize,
                device ? device->error().message : "the look-up of its own host name exceeded the time limit.");
  }
  return connectGlooOver(store, **device, group, left);
}

}  // namespace cleave::torch_rank
