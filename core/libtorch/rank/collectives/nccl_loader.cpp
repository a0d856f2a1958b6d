#include "libtorch/rank/collectives/nccl_loader.h"

#include "base/libtorch_folder.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/collectives/group_store.h"
#include "libtorch/rank/collectives/within_time.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace cleave::torch_rank {

namespace {

/// In a wheel for another CUDA version, the CUDA runtime has another file name. The loader reports only a missing file.
std::string neededCudaText(std::string_view loaderMessage) {
#ifdef CLEAVE_CUDA_VERSION
  if (loaderMessage.find("cannot open shared object file") != std::string_view::npos)
    return fmt::format(" This build needs LibTorch for CUDA {}.", CLEAVE_CUDA_VERSION);
#endif
  (void)loaderMessage;
  return {};
}

constexpr std::string_view kOnCpus = "Use the backend gloo to run on CPUs.";

/// NVIDIA's libraries read these variables when they are loaded, and LibTorch at its first use of CUDA. NVIDIA's images
/// set the first two so that float32 products are rounded to TF32. The third makes sums in cuBLAS deterministic.
void setVariablesOfLibraries() {
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", /*overwrite=*/1);
  ::unsetenv("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE");
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

/// The exported function. The library stays loaded.
template <class Function>
Result<Function> exported(const std::string& library, const char* name) {
  if (!std::filesystem::exists(library)) {
    return fail(ErrorCode::Environment, "{} is missing{}.", library, whyNcclIsMissing());
  }
  setVariablesOfLibraries();
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const std::string why = ::dlerror();
    return fail(ErrorCode::Environment, "NCCL cannot be loaded: {}.{}", why, neededCudaText(why));
  }
  const auto function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (!function)
    return fail(ErrorCode::Environment, "{} is not from this build of Cleave: it has no function {}.", library, name);
  return function;
}

}  // namespace

Result<NcclRuntime> openNccl(const std::string& library, const NcclRequest& request) {
  const auto loaded = exported<NcclOpen>(library, kNcclOpenName);
  if (!loaded) return fail(loaded.error().code, "{} {}", loaded.error().message, kOnCpus);
  const NcclOpen open = *loaded;
  NcclRuntime runtime;
  std::string error;
  if (!open(request, runtime, error)) return fail(ErrorCode::Environment, "{}", bridge::sentenceOf(std::move(error)));
  return runtime;
}

Result<ProbedCuda> probeNccl(const std::string& library) {
  CLEAVE_TRY(const auto probe, exported<NcclProbe>(library, kNcclProbeName));
  ProbedCuda found;
  probe(found);
  return found;
}

namespace {

Result<std::unique_ptr<Collectives>> connectOver(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const NcclRuntime& runtime, const GroupAddress& group) {
  // NCCL connects at once, and would wait forever for a rank that has exited.
  auto connected =
      withinTime(group.connectTimeout, [store, connect = runtime.connect, rank = group.rank, size = group.worldSize] {
        return bridge::translated([&]() -> Result<NcclGroup> { return connect(store, rank, size); });
      });
  if (!connected) {
    return fail(ErrorCode::RankFailed,
                "{} cannot connect to its peers through NCCL: they did not answer within {:g} s.", group.rankText(),
                std::chrono::duration<double>(group.connectTimeout).count());
  }
  if (!*connected) {
    return fail(connected->error().code, "{} cannot connect to its peers through NCCL: {}", group.rankText(),
                connected->error().message);
  }
  DeviceQueue queue = runtime.queue;
  queue.checkHealth = (*connected)->checkHealth;
  const auto others = [=](const std::string& name, int rank, int size) {
    return connectOver(c10::make_intrusive<c10d::PrefixStore>(name, store), runtime, group.part(rank, size));
  };
  return makeCollectives((*connected)->backend, std::move(queue), group.callTimeout, others);
}

}  // namespace

Result<std::unique_ptr<Collectives>> connectNccl(const NcclRuntime& runtime, const GroupAddress& group) {
  CLEAVE_TRY(const auto store, connectStore(group));
  return connectOver(store, runtime, group);
}

}  // namespace cleave::torch_rank
