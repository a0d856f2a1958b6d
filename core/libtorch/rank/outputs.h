#pragma once
/// What a rank leaves behind of one task: digests of its outputs in its result, the files of rank 0, and those of a
/// rank whose outputs are not bit for bit the same. LibTorch inside.
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/inputs.h"
#include "libtorch/rank/training.h"

namespace cleave::torch_rank {

class Outputs {
 public:
  /// `index`: of the task among those that run on the same weights. `all`: every rank of the run, which all make the
  /// same calls. All of them must outlive this.
  Outputs(const RankRequest& request, std::size_t index, Collectives& all, at::Device device)
      : m_request(request), m_index(index), m_all(all), m_device(device) {}

  /// Of a forward pass, or the tokens of a generation. Returns when all ranks are done.
  Result<void> leave(const NamedTensors& outputs, protocol::RankResult& result) const;
  /// Of training: the losses and all parameters, gathered over `ranks`, those of one replica.
  Result<void> leaveTrained(const Program& program, const program::ShardMap& parameters, const Trainer& trainer,
                            const std::vector<double>& losses, Collectives& ranks, protocol::RankResult& result) const;

 private:
  std::filesystem::path numbered(const std::filesystem::path& file) const;
  std::filesystem::path ownDeviationFile() const;
  Result<std::vector<bool>> whoDiffersFromRankZero(const std::vector<std::int64_t>& digests) const;

  const RankRequest& m_request;
  std::size_t m_index;
  Collectives& m_all;
  at::Device m_device;
};

}  // namespace cleave::torch_rank
