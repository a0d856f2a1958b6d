#include "tests/support/simulated_gpu/collectives.h"

#include "tests/support/simulated_gpu/memory.h"
#include "tests/support/simulated_gpu/settings.h"
#include "tests/support/simulated_gpu/stream.h"

#include <ATen/ATen.h>
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <atomic>
#include <cstdio>
#include <set>
#include <thread>

namespace simulated_gpu {
namespace {

/// Work in the communicator's stream. `wait` blocks the current stream, not the host.
class StreamWork final : public c10d::Work {
 public:
  explicit StreamWork(EventPtr end) : m_end(std::move(end)) {}
  bool wait(std::chrono::milliseconds) override {
    currentStream().waitFor(m_end);
    return true;
  }
  bool isCompleted() override { return m_end->isReached(); }

 private:
  EventPtr m_end;
};

/// The checks of ProcessGroupNCCL.
void check(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(isOnDevice(tensor) && tensor.layout() == at::kStrided, "Tensors must be CUDA and dense");
  TORCH_CHECK_VALUE(tensor.is_contiguous(), "Tensors must be contiguous");
  static const std::set<at::ScalarType> known{at::kChar, at::kByte, at::kFloat, at::kDouble,  at::kInt,
                                              at::kLong, at::kHalf, at::kBool,  at::kBFloat16};
  TORCH_CHECK_TYPE(known.contains(tensor.scalar_type()),
                   "Input tensor data type is not supported for NCCL process group: ", tensor.scalar_type());
}

at::Tensor bytesOf(const at::Tensor& tensor) { return tensor.reshape({-1}).view(at::kByte); }

/// State shared by jobs of the stream and the group. The group may be destroyed first.
struct Shared {
  explicit Shared(c10::intrusive_ptr<c10d::ProcessGroupGloo> group) : gloo(std::move(group)) {}
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  std::atomic<bool> isAborted{false};

  at::Tensor gathered(const at::Tensor& own) const {
    at::Tensor mine = bytesOf(own).unsqueeze(0);
    at::Tensor all = at::empty({gloo->getSize(), mine.size(1)}, mine.options());
    gloo->_allgather_base(all, mine)->wait();
    return all.view(own.scalar_type());
  }
  /// Adds rank by rank in the tensor's own type, so a half-precision sum is rounded after each.
  at::Tensor reduced(const at::Tensor& own, const c10d::ReduceOp& op) const {
    const at::Tensor all = gathered(own);
    const bool isMax = op == c10d::ReduceOp::MAX || own.scalar_type() == at::kBool;
    at::Tensor result = all[0].clone();
    for (std::int64_t rank = 1; rank < all.size(0); ++rank)
      isMax ? result.copy_(at::maximum(result, all[rank])) : result.add_(all[rank]);
    return result.view(own.sizes());
  }
};

std::atomic<std::int64_t> calls{0};

class Group final : public c10d::Backend {
 public:
  Group(c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo, std::chrono::milliseconds limit)
      : Backend(gloo->getRank(), gloo->getSize()),
        m_shared(std::make_shared<Shared>(std::move(gloo))),
        m_stream(newStream()),
        m_limit(limit) {}
  ~Group() override {
    if (m_isEnded) return;
    std::fprintf(stderr,
                 "WARNING: destroy_process_group() was not called before program exit, which can leak "
                 "resources.\n");
  }
  const std::string getBackendName() const override { return "simulated_gpu"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    check(tensors.at(0));
    return queue([tensor = forKernels(tensors[0]), op = options.reduceOp](const Shared& shared) {
      tensor.copy_(shared.reduced(tensor, op));
    });
  }

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions&) override {
    check(out);
    check(in);
    TORCH_CHECK_TYPE(out.scalar_type() == in.scalar_type(), "output tensor must have the same type as input tensor");
    TORCH_CHECK_VALUE(in.numel() * getSize() == out.numel(),
                      "output tensor size must be equal to world_size times input tensor size");
    return queue([all = forKernels(out), own = forKernels(in)](const Shared& shared) {
      bytesOf(all).copy_(bytesOf(shared.gathered(own)));
    });
  }

  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions& options) override {
    check(out);
    check(in);
    TORCH_CHECK_VALUE(out.numel() * getSize() == in.numel(),
                      "input tensor must be the same size as output size times world size");
    return queue(
        [own = forKernels(out), all = forKernels(in), op = options.reduceOp, rank = getRank()](const Shared& shared) {
          const at::Tensor sum = shared.reduced(all, op).reshape({-1, own.numel()});
          own.copy_(sum[rank].view(own.sizes()));
        });
  }

  void shutdown() override {
    end();
    m_stream.synchronize();
  }
  void abort() override {
    m_shared->isAborted = true;
    end();
  }

 private:
  void end() {
    const auto& slow = settings().slowTeardown;
    if (!m_isEnded && slow && slow->rank == settings().rank)
      std::this_thread::sleep_for(std::chrono::milliseconds(slow->number));
    m_isEnded = true;
  }

  /// False if a peer has ended. NCCL's kernel then waits, like for a peer that is slow.
  template <class Job>
  static bool runs(const Job& job, const Shared& shared) {
    if (shared.isAborted) return false;
    try {
      job(shared);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  template <class Job>
  c10::intrusive_ptr<c10d::Work> queue(Job job) {
    const std::int64_t call = ++calls;
    if (settings().hits(settings().ncclOutOfMemory, call)) {
      TORCH_CHECK_WITH(DistBackendError, false,
                       "NCCL error in: NCCLUtils.cpp:93, unhandled cuda error (run with NCCL_DEBUG=INFO for details), "
                       "NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
                       "Cuda failure 2 'out of memory'");
    }
    m_stream.waitFor(currentStream().record());
    m_stream.push([shared = m_shared, job, hangs = settings().hits(settings().hang, call), limit = m_limit] {
      if (!hangs && runs(job, *shared)) return;
      const auto end = Clock::now() + limit;
      while (!shared->isAborted && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      TORCH_CHECK(false,
                  shared->isAborted ? "the communicator was aborted" : "NCCL: a collective exceeded its time limit");
    });
    return c10::make_intrusive<StreamWork>(m_stream.record());
  }

  std::shared_ptr<Shared> m_shared;
  Stream& m_stream;
  const std::chrono::milliseconds m_limit;
  bool m_isEnded = false;
};

/// The same check as checkOwnGpu in nccl_group.cpp: two ranks must not share a GPU.
void checkOwnGpu(c10d::Store& store, int rank, int size, const std::string& uuid) {
  const auto key = [](int of) { return "cleave/gpu/" + std::to_string(of); };
  store.set(key(rank), uuid);
  int same = rank;
  for (int other = 0; other < size; ++other) {
    if (store.get_to_str(key(other)) == uuid && other != rank) same = other;
  }
  store.set(key(rank) + "/read", "");
  for (int other = 1; rank == 0 && other < size; ++other) store.get(key(other) + "/read");
  if (same == rank) return;
  throw std::runtime_error("Ranks " + std::to_string(std::min(rank, same)) + " and " +
                           std::to_string(std::max(rank, same)) +
                           " have the same GPU, but NCCL needs one GPU per rank. Start fewer ranks, or use the "
                           "backend gloo to run on CPUs.");
}

}  // namespace

cleave::torch_rank::NcclGroup connectGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const std::string& uuid, std::chrono::milliseconds limit) {
  checkOwnGpu(*store, rank, size, uuid);
  auto options = c10d::ProcessGroupGloo::Options::create(limit);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
  return {c10::make_intrusive<Group>(std::move(gloo), limit), [] { throwIfFailed(); }};
}

}  // namespace simulated_gpu
