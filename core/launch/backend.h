#pragma once
/// The communication backend of the ranks: NCCL on GPUs or Gloo on CPUs.
///
///     CLEAVE_TRY(const BackendChoice choice, chooseBackend(Backend::Auto, ranks));
///     print(choice.why);   // "Gloo on CPUs: no GPU found."
#include "base/progress.h"
#include "launch/gpus.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cleave::launch {

enum class Backend : std::uint8_t { Auto, Gloo, Nccl };
std::string_view toText(Backend backend);
std::optional<Backend> parseBackend(std::string_view text);

/// The backend of the ranks and the reason, in one sentence.
struct BackendChoice {
  Backend backend = Backend::Gloo;  ///< Gloo or Nccl
  std::string why;                  ///< "Gloo on CPUs: no GPU found."
};
/// Auto selects Nccl if NCCL can run this many ranks here (gpus.h), else Gloo. Nccl fails with Environment if it cannot
/// run. `bytesPerRank`: memory per rank on its GPU; Auto selects Gloo if a GPU has less; 0: not checked. Queries CUDA
/// (seconds) unless Gloo is requested, or Auto on a machine without any sign of a GPU.
Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank = 0,
                                    const Progress& progress = {});
/// The same for a given answer of CUDA.
Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank, const GpuProbe& probe);

}  // namespace cleave::launch
