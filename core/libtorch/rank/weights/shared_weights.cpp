#include "libtorch/rank/weights/shared_weights.h"

#include "libtorch/rank/execute/tensor_digest.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>
#include <set>

namespace cleave::torch_rank {
namespace {

/// By rank: the first rank with the same part of the parameter. Each replica has all parts.
std::vector<int> firstHolders(const program::ParameterShards& parameter, int ranks) {
  const auto& pieces = parameter.piecesByRank;
  std::vector<int> first(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    const auto own = std::find(pieces.begin(), pieces.end(), pieces[rank % pieces.size()]);
    first[rank] = static_cast<int>(own - pieces.begin());
  }
  return first;
}

struct Shared {
  const program::ParameterShards* parameter = nullptr;
  std::vector<int> firstHolder;
};

std::vector<Shared> sharedParameters(const program::ShardMap& parameters, int ranks) {
  std::vector<Shared> shared;
  for (const program::ParameterShards& parameter : parameters) {
    std::vector<int> first = firstHolders(parameter, ranks);
    if (std::set(first.begin(), first.end()).size() < first.size()) shared.push_back({&parameter, std::move(first)});
  }
  return shared;
}

/// A rank whose part differs from the majority of the ranks with this part; with two ranks, from the lower rank.
struct Deviation {
  int rank = 0, reference = 0;
};

template <class DigestOf>
std::vector<Deviation> deviationsOf(const Shared& shared, DigestOf&& digestOf) {
  const int ranks = static_cast<int>(shared.firstHolder.size());
  std::map<int, std::map<std::int64_t, std::vector<int>>> holders;  // by first holder and digest
  for (int rank = 0; rank < ranks; ++rank)
    holders[shared.firstHolder[static_cast<std::size_t>(rank)]][digestOf(rank)].push_back(rank);
  std::vector<Deviation> deviations;
  for (const auto& [first, byDigest] : holders) {
    const auto most = std::max_element(byDigest.begin(), byDigest.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                                : a.second.front() > b.second.front();
    });
    for (const auto& [digest, ranksOfIt] : byDigest) {
      if (digest == most->first) continue;
      for (const int rank : ranksOfIt) deviations.push_back({rank, most->second.front()});
    }
  }
  return deviations;
}

}  // namespace

Result<void> checkSharedWeights(const Program& program, const program::ShardMap& parameters, Collectives& collectives) {
  const std::vector<Shared> shared = sharedParameters(parameters, collectives.worldSize());
  if (shared.empty()) return {};
  std::vector<std::int64_t> digests;
  for (const Shared& part : shared) {
    digests.push_back(
        static_cast<std::int64_t>(digest(program.given(program.graph().findValue(part.parameter->name)))));
  }
  CLEAVE_TRY(const at::Tensor gathered, collectives.allGather(at::tensor(digests, at::kLong).to(program.device()), 0));
  CLEAVE_TRY_VOID(collectives.finish());
  const at::Tensor all = gathered.cpu();
  const auto count = static_cast<std::int64_t>(shared.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto digestOf = [&](int rank) { return all.data_ptr<std::int64_t>()[rank * count + i]; };
    const Shared& part = shared[static_cast<std::size_t>(i)];
    const std::vector<Deviation> deviations = deviationsOf(part, digestOf);
    if (deviations.empty()) continue;
    const bool isOwn = std::any_of(deviations.begin(), deviations.end(),
                                   [&](const Deviation& d) { return d.rank == collectives.rank(); });
    return fail(isOwn ? ErrorCode::BadInput : ErrorCode::RankFailed,
                "Rank {} has other values of {} than rank {}. Give all ranks the same model files.",
                deviations.front().rank, part.parameter->name, deviations.front().reference);
  }
  return {};
}

}  // namespace cleave::torch_rank
