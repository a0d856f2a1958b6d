#include "libtorch/rank/process/outputs.h"

#include "libtorch/rank/execute/output_file.h"
#include "libtorch/rank/execute/tensor_digest.h"
#include "libtorch/rank/training/trained_outputs.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

namespace cleave::torch_rank {

Result<void> Outputs::write(const NamedTensors& outputs, protocol::RankResult& result) const {
  std::vector<std::int64_t> digests;
  for (const auto& [name, tensor] : outputs) {
    const std::uint64_t own = digest(tensor);
    digests.push_back(static_cast<std::int64_t>(own));
    result.outputDigests[name] = fmt::format("{:016x}", own);
    if (name == "loss" && tensor.numel() == 1) {
      result.loss = tensor.item<double>();
      result.hasLoss = true;
    }
  }
  if (m_request.outputFile && m_request.rank == 0)
    CLEAVE_TRY_VOID(writeOutputs(outputs, numbered(*m_request.outputFile)));
  if (m_request.worldSize == 1) return {};
  CLEAVE_TRY(const std::vector<bool> deviates, differsFromRankZero(digests));
  if (deviates[static_cast<std::size_t>(m_request.rank)] && m_request.deviationFile)
    CLEAVE_TRY_VOID(writeOutputs(outputs, ownDeviationFile()));
  // All ranks wait here, because a rank that exits early breaks the connections of the others.
  return m_all.barrier();
}

Result<void> Outputs::writeTrained(const Program& program, const program::ShardMap& parameters, const Trainer& trainer,
                                   const std::vector<double>& losses, Collectives& ranks,
                                   protocol::RankResult& result) const {
  CLEAVE_TRY(const ByParameter undetermined, trainer.undetermined(ranks));
  const auto gatherTo = [&](const std::optional<std::filesystem::path>& file) {
    return gatherTrained(program, parameters, losses, undetermined, ranks, file);
  };
  CLEAVE_TRY(const std::uint64_t own,
             gatherTo(m_request.rank == 0 ? std::optional(numbered(*m_request.outputFile)) : std::nullopt));
  result.outputDigests["trained"] = fmt::format("{:016x}", own);
  if (m_request.worldSize == 1) return {};
  CLEAVE_TRY(const std::vector<bool> deviates, differsFromRankZero({static_cast<std::int64_t>(own)}));
  if (std::find(deviates.begin(), deviates.end(), true) != deviates.end() && m_request.deviationFile) {
    const bool isOther = deviates[static_cast<std::size_t>(m_request.rank)];
    CLEAVE_TRY_VOID(gatherTo(isOther ? std::optional(ownDeviationFile()) : std::nullopt));
  }
  return m_all.barrier();
}

/// The file of this task: "outputs" for the first task, "outputs-2" for the second.
std::filesystem::path Outputs::numbered(const std::filesystem::path& file) const {
  return m_index == 0 ? file : std::filesystem::path(fmt::format("{}-{}", file.string(), m_index + 1));
}

std::filesystem::path Outputs::ownDeviationFile() const {
  return fmt::format("{}.{}", numbered(*m_request.deviationFile).string(), m_request.rank);
}

/// By rank: true if its digests differ from those of rank 0.
Result<std::vector<bool>> Outputs::differsFromRankZero(const std::vector<std::int64_t>& digests) const {
  std::vector<bool> deviates(static_cast<std::size_t>(m_request.worldSize));
  if (digests.empty()) return deviates;
  const at::Tensor own = at::tensor(digests, at::kLong);
  CLEAVE_TRY(const at::Tensor all, m_all.allGather(own.to(m_device).unsqueeze(0), 0));
  CLEAVE_TRY_VOID(m_all.finish());
  const at::Tensor gathered = all.cpu();
  for (int rank = 0; rank < m_request.worldSize; ++rank)
    deviates[static_cast<std::size_t>(rank)] = !at::equal(gathered[rank], gathered[0]);
  return deviates;
}

}  // namespace cleave::torch_rank
