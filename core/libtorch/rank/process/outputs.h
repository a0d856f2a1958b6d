#pragma once
/// The outputs of one task: digests in the rank's result, files of rank 0, and files of ranks whose outputs differ from
/// those of rank 0 in any bit. This header uses LibTorch.
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/process/rank_request.h"
#include "libtorch/rank/training/training.h"

namespace cleave::torch_rank {

class Outputs {
 public:
  /// `index`: index of the task among those on the same weights. `all`: all ranks of the run, which make the same
  /// calls. The arguments must outlive this object.
  Outputs(const RankRequest& request, std::size_t index, Collectives& all, at::Device device)
      : m_request(request), m_index(index), m_all(all), m_device(device) {}

  /// Writes the outputs of a forward pass or the tokens of a generation. Returns when all ranks have done so.
  Result<void> write(const NamedTensors& outputs, protocol::RankResult& result) const;
  /// Writes the losses and all parameters of training, gathered over `ranks` (the ranks of one replica).
  Result<void> writeTrained(const Program& program, const program::ShardMap& parameters, const Trainer& trainer,
                            const std::vector<double>& losses, Collectives& ranks, protocol::RankResult& result) const;

 private:
  std::filesystem::path numbered(const std::filesystem::path& file) const;
  std::filesystem::path ownDeviationFile() const;
  Result<std::vector<bool>> differsFromRankZero(const std::vector<std::int64_t>& digests) const;

  const RankRequest& m_request;
  std::size_t m_index;
  Collectives& m_all;
  at::Device m_device;
};

}  // namespace cleave::torch_rank
