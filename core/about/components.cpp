#include "about/components.h"

#include "base/files.h"
#include "base/libtorch_folder.h"
#include "base/version.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <filesystem>
#include <optional>

namespace cleave::about {
namespace {

constexpr std::int64_t kMostVersionBytes = 1 << 16;

/// version.py of PyTorch's wheel has "__version__ = '2.11.0+cu130'", the archive of LibTorch alone a build-version.
std::string libTorchVersion(const fs::path& folder) {
  if (const auto text = readTextFile(folder / "version.py", kMostVersionBytes)) {
    constexpr std::string_view kKey = "\n__version__ = '";
    const auto at = text->find(kKey);
    const auto begin = at + kKey.size(), end = at == std::string::npos ? at : text->find('\'', begin);
    if (end != std::string::npos) return text->substr(begin, end - begin);
  }
  if (const auto text = readTextFile(folder / "build-version", kMostVersionBytes))
    return text->substr(0, text->find('\n'));
  return "version unknown";
}

/// Asks the CUDA runtime. A CUDA wheel's libtorch_cpu.so loads it into the process.
std::string cudaVersion() {
  const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion"));
  int version = 0;
  if (!ask || ask(&version) != 0) return "version unknown";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string ncclVersion(const fs::path& libTorch) {
  const fs::path ofWheel = libTorch / "../nvidia/nccl/lib/libnccl.so.2";
  void* library = ::dlopen(ofWheel.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return "not found";
  const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, "ncclGetVersion"));
  int version = 0;
  const bool hasSaid = ask && ask(&version) == 0;
  ::dlclose(library);
  if (!hasSaid) return "version unknown";
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

/// Why ranks of this installation cannot use GPUs on any machine; nullopt: they can.
std::optional<std::string> whyNoCuda(const fs::path& libTorch) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!fs::exists(self.parent_path() / kNcclLibrary, error)) return "not in this build";
  if (!hasCudaLibrary(libTorch)) return "not in this LibTorch";
  return std::nullopt;
}

std::string compilerText() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

std::vector<Component> components(const std::vector<Component>& own) {
  std::vector<Component> all;
  if (const auto libTorch = libTorchFolder()) {
    const auto obstacle = whyNoCuda(*libTorch);
    all.push_back({"LibTorch", libTorchVersion(*libTorch)});
    all.push_back({"CUDA", obstacle ? *obstacle : cudaVersion()});
    all.push_back({"NCCL", obstacle ? *obstacle : ncclVersion(*libTorch)});
  }
  all.insert(all.end(), own.begin(), own.end());
  all.push_back({"Compiler", compilerText()});
  all.push_back({"C library", fmt::format("glibc {}", ::gnu_get_libc_version())});
  return all;
}

std::string versionText(const std::string& program, const std::vector<Component>& own) {
  std::string text = fmt::format("{} {}", program, version());
  for (const Component& component : components(own)) text += fmt::format("\n{}: {}", component.name, component.version);
  return text;
}

}  // namespace cleave::about
