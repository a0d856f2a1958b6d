#pragma once
/// The request for one rank: what its launcher asks of all ranks, and this rank's place among them. This header does
/// not use LibTorch.
#include "spec/rank/rank_spec.h"

#include <filesystem>
#include <string>

namespace cleave::torch_rank {

struct RankRequest : spec::RankSpec {
  using Plan = spec::RankPlan;
  std::filesystem::path planFile;
  int rank = 0, localRank = 0, worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;        ///< rank 0: an inherited socket that listens on masterPort; -1: no socket
  std::string agentStore;   ///< as in protocol::RankEnvironment
  std::string ncclLibrary;  ///< path of libcleave_nccl.so, for the backend "nccl"
};

}  // namespace cleave::torch_rank
