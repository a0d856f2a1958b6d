#pragma once
/// The LibTorch that this process runs with. It asks the loader and loads nothing.
#include <filesystem>
#include <optional>
#include <string_view>

namespace cleave {

/// The installed torch package, whose lib/ has libtorch_cpu.so; nullopt: this process has not loaded LibTorch.
std::optional<std::filesystem::path> libTorchFolder();

/// Cleave's library that links CUDA and NCCL. It is in the folder of cleave-rank if Cleave was built with CUDA.
inline constexpr const char* kNcclLibrary = "libcleave_nccl.so";
/// Why that library is missing, as the end of a sentence: this build has no CUDA, or the file was removed.
std::string_view whyNcclIsMissing();

/// True if that LibTorch can compute on GPUs: a CPU bundle has only libtorch_cpu.so.
bool hasCudaLibrary(const std::filesystem::path& libTorch);

}  // namespace cleave
