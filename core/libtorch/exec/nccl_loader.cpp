#include "libtorch/exec/nccl_loader.h"

#include "libtorch/exec/torch_errors.h"

#include <dlfcn.h>

#include <filesystem>

namespace cleave::torch_exec {

Result<NcclRuntime> openNccl(const std::string& library, const NcclRequest& request) {
  if (!std::filesystem::exists(library)) {
    return fail(ErrorCode::Environment,
                "The backend nccl needs {}, which is not there: this build's LibTorch has no CUDA. Use the backend "
                "gloo to run on CPUs.",
                library);
  }
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    return fail(ErrorCode::Environment, "The backend nccl cannot be loaded: {}. Use the backend gloo to run on CPUs.",
                ::dlerror());
  }
  const auto open = reinterpret_cast<NcclOpen>(::dlsym(handle, kNcclOpenName));
  if (!open)
    return fail(ErrorCode::Environment, "{} is not from this build of Cleave: it lacks {}.", library, kNcclOpenName);
  NcclRuntime runtime;
  std::string error;
  if (!open(request, runtime, error)) return fail(ErrorCode::Environment, "{}", messageOf(std::runtime_error(error)));
  return runtime;
}

}  // namespace cleave::torch_exec
