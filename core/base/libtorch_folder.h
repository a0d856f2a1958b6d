#pragma once
/// The LibTorch that this process runs with. Asks the loader what it has loaded, and loads nothing.
#include <filesystem>
#include <optional>
#include <string_view>

namespace cleave {

/// The installed torch package, whose lib/ has libtorch_cpu.so; nullopt: this process has loaded none.
std::optional<std::filesystem::path> libTorchFolder();

/// Cleave's part that links CUDA and NCCL. It lies beside cleave-rank, unless Cleave was built without.
inline constexpr const char* kNcclLibrary = "libcleave_nccl.so";
/// Why that library is not where it belongs, as the end of a sentence: this build made none, or somebody removed it.
std::string_view whyNcclIsMissing();

/// Whether that LibTorch can compute on GPUs: a bundle for CPUs has libtorch_cpu.so alone.
bool hasCudaLibrary(const std::filesystem::path& libTorch);

}  // namespace cleave
