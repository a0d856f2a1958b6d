#include "libtorch/exec/collectives.h"

#include "libtorch/exec/torch_errors.h"

// The wheel is built with Gloo; the class is declared only where this is defined.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace cleave::torch_exec {
namespace {

// c10d's Gloo reduces these; a half-precision sum over many ranks is done in float32, which is also more exact.
at::ScalarType reducibleType(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16: return at::kFloat;
    case at::kBool: return at::kByte;
    case at::kShort: return at::kInt;
    default: return type;
  }
}

class SoloCollectives final : public Collectives {
 public:
  SoloCollectives() : Collectives(0, 1) {}

 protected:
  void reduceInPlace(at::Tensor&, Reduction) override {}
  void gatherInto(at::Tensor& out, at::Tensor& x) override { out.select(0, 0).copy_(x); }
  void scatterSumInto(at::Tensor& out, at::Tensor& x) override { out.copy_(x.select(0, 0)); }
  void waitForAll() override {}
};

class BackendCollectives final : public Collectives {
 public:
  BackendCollectives(c10::intrusive_ptr<c10d::Backend> backend, std::function<void()> synchronize)
      : Collectives(backend->getRank(), backend->getSize()),
        m_backend(std::move(backend)),
        m_synchronize(std::move(synchronize)) {}

 protected:
  void reduceInPlace(at::Tensor& x, Reduction reduction) override {
    const at::ScalarType type = x.is_cpu() ? reducibleType(x.scalar_type()) : x.scalar_type();
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::Sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    std::vector<at::Tensor> tensors{x.to(type)};
    m_backend->allreduce(tensors, options)->wait();
    if (type != x.scalar_type()) x.copy_(tensors[0]);
  }
  // Gloo's flat calls cut the large tensor along its first dimension and want the small one to look like such a piece.
  void gatherInto(at::Tensor& out, at::Tensor& x) override {
    // Bytes are bytes: Gloo knows fewer types than ATen.
    at::Tensor outBytes = out.view(at::kByte), xBytes = x.unsqueeze(0).view(at::kByte);
    m_backend->_allgather_base(outBytes, xBytes)->wait();
  }
  void scatterSumInto(at::Tensor& out, at::Tensor& x) override {
    const at::ScalarType type = x.is_cpu() ? reducibleType(x.scalar_type()) : x.scalar_type();
    at::Tensor input = x.to(type);
    const bool isDirect = type == out.scalar_type();
    at::Tensor part = (isDirect ? out : at::empty_like(out, out.options().dtype(type))).unsqueeze(0);
    m_backend->_reduce_scatter_base(part, input)->wait();
    if (!isDirect) out.copy_(part.squeeze(0));
  }
  void waitForAll() override { m_backend->barrier()->wait(); }
  void synchronize() override {
    if (m_synchronize) m_synchronize();
  }

 private:
  c10::intrusive_ptr<c10d::Backend> m_backend;
  std::function<void()> m_synchronize;
};

/// A contiguous tensor that nobody else sees.
at::Tensor ownCopy(at::Tensor x) {
  const bool isOurs = x.use_count() == 1 && x.storage().use_count() == 1 && x.is_contiguous();
  return isOurs ? std::move(x) : x.clone(at::MemoryFormat::Contiguous);
}

}  // namespace

template <class Call>
Result<void> Collectives::timed(std::string_view kind, const at::Tensor& whole, std::int64_t& count, Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t bytes = whole.numel() * static_cast<std::int64_t>(whole.element_size());
  auto result = translated([&]() -> Result<void> {
    call();
    synchronize();
    return {};
  });
  if (!result) {
    return fail(ErrorCode::RankFailed, "{} of {} bytes failed on rank {} of {}: {}", kind, bytes, m_rank, m_worldSize,
                result.error().message);
  }
  ++count;
  if (m_observer) {
    m_observer(
        {kind, bytes, std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start)});
  }
  return {};
}

Result<at::Tensor> Collectives::allReduce(at::Tensor x, Reduction reduction) {
  at::Tensor result = ownCopy(std::move(x));
  CLEAVE_TRY_VOID(timed("all_reduce", result, m_counts.allReduce, [&] { reduceInPlace(result, reduction); }));
  return result;
}

Result<at::Tensor> Collectives::allGather(const at::Tensor& x, std::int64_t dim) {
  if (dim < 0) dim += x.dim();
  if (dim < 0 || dim >= x.dim())
    return fail(ErrorCode::BadInput, "all_gather along dimension {} of a tensor with {} dimensions.", dim, x.dim());
  at::Tensor mine = x.contiguous();
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), m_worldSize);
  at::Tensor parts = at::empty(shape, mine.options());
  CLEAVE_TRY_VOID(timed("all_gather", parts, m_counts.allGather, [&] { gatherInto(parts, mine); }));
  // [ranks, ..., d, ...] → [..., ranks·d, ...]: for dim 0 a view, else one copy.
  return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous();
}

Result<at::Tensor> Collectives::reduceScatter(const at::Tensor& x, std::int64_t dim) {
  if (dim < 0) dim += x.dim();
  if (dim < 0 || dim >= x.dim()) {
    return fail(ErrorCode::BadInput, "reduce_scatter along dimension {} of a tensor with {} dimensions.", dim, x.dim());
  }
  if (x.size(dim) % m_worldSize != 0) {
    return fail(ErrorCode::BadInput, "reduce_scatter: dimension {} of size {} does not divide by {} ranks.", dim,
                x.size(dim), m_worldSize);
  }
  at::Tensor parts =
      x.unflatten(dim, std::vector<std::int64_t>{m_worldSize, x.size(dim) / m_worldSize}).movedim(dim, 0).contiguous();
  std::vector<std::int64_t> shape = parts.sizes().slice(1).vec();
  at::Tensor mine = at::empty(shape, x.options());
  CLEAVE_TRY_VOID(timed("reduce_scatter", x, m_counts.reduceScatter, [&] { scatterSumInto(mine, parts); }));
  return mine;
}

Result<void> Collectives::barrier() {
  auto result = translated([&]() -> Result<void> {
    waitForAll();
    synchronize();
    return {};
  });
  if (!result)
    return fail(ErrorCode::RankFailed, "Waiting for the other ranks failed on rank {} of {}: {}", m_rank, m_worldSize,
                result.error().message);
  return {};
}

bool isLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Result<c10::intrusive_ptr<c10d::Store>> connectStore(const GroupAddress& group) {
  if (group.masterPort <= 0 || group.masterPort > 65535) {
    return fail(ErrorCode::BadUsage, "MASTER_PORT must lie in 1..65535, not {}.", group.masterPort);
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(group.masterPort);
  options.isServer = group.rank == 0;
  options.numWorkers = group.worldSize;
  options.timeout = group.connectTimeout;
  if (group.listenFd >= 0 && options.isServer) options.masterListenFd = group.listenFd;
  auto store = translated([&]() -> Result<c10::intrusive_ptr<c10d::Store>> {
    return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::TCPStore>(group.masterAddress, options));
  });
  if (!store) {
    return fail(ErrorCode::Environment, "Rank {} of {} cannot meet the others at {}:{} within {} s: {}", group.rank,
                group.worldSize, group.masterAddress, group.masterPort, group.connectTimeout.count() / 1000,
                store.error().message);
  }
  return store;
}

std::unique_ptr<Collectives> makeSoloCollectives() {
  return std::make_unique<SoloCollectives>();
}

std::unique_ptr<Collectives> makeCollectives(c10::intrusive_ptr<c10d::Backend> backend,
                                             std::function<void()> synchronize) {
  return std::make_unique<BackendCollectives>(std::move(backend), std::move(synchronize));
}

Result<std::unique_ptr<Collectives>> connectGloo(const GroupAddress& group) {
  CLEAVE_TRY(auto store, connectStore(group));
  auto connected = translated([&]() -> Result<std::unique_ptr<Collectives>> {
    auto options = c10d::ProcessGroupGloo::Options::create(group.connectTimeout);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    options->devices.push_back(interface && *interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                               : isLoopback(group.masterAddress)
                                   ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                   : c10d::ProcessGroupGloo::createDefaultDevice());
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, group.rank, group.worldSize, options);
    backend->setTimeout(group.callTimeout);
    return makeCollectives(backend);
  });
  if (!connected) {
    return fail(ErrorCode::RankFailed, "Rank {} of {} cannot connect to its peers through Gloo: {}", group.rank,
                group.worldSize, connected.error().message);
  }
  return connected;
}

}  // namespace cleave::torch_exec
