#include "base/libtorch_folder.h"

#include <link.h>

#include <string_view>

namespace cleave {

namespace fs = std::filesystem;

std::optional<fs::path> libTorchFolder() {
  std::optional<fs::path> library;
  const auto look = [](dl_phdr_info* object, std::size_t, void* found) -> int {
    const std::string_view name = object->dlpi_name ? object->dlpi_name : "";
    if (!name.ends_with("/libtorch_cpu.so")) return 0;
    *static_cast<std::optional<fs::path>*>(found) = name;
    return 1;
  };
  ::dl_iterate_phdr(look, &library);
  if (!library) return std::nullopt;
  std::error_code error;
  const fs::path real = fs::canonical(*library, error);
  return (error ? *library : real).parent_path().parent_path();
}

bool hasCudaLibrary(const fs::path& libTorch) {
  std::error_code error;
  return fs::exists(libTorch / "lib" / "libtorch_cuda.so", error);
}

std::string_view whyNcclIsMissing() {
#ifdef CLEAVE_CUDA_VERSION
  return ". The installation is incomplete: install Cleave again";
#else
  return ", because Cleave was built without CUDA";
#endif
}

}  // namespace cleave
