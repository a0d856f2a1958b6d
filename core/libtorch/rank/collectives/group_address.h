#pragma once
#include "spec/rank/rank_spec.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cleave::torch_rank {

/// The address at which the ranks of one run connect.
struct GroupAddress {
  int rank = 0, worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int listenFd = -1;       ///< rank 0: a socket that already listens on the port; -1: no socket
  std::string agentStore;  ///< prefix in a store of the launcher (torchrun's agent); empty: rank 0 serves the store
  std::chrono::milliseconds connectTimeout{60'000};  ///< limit for the store and the connections together
  std::chrono::milliseconds callTimeout = spec::kCallTimeout;
  /// Settings that must be equal on all ranks, as names ("plan") and values. All ranks have the same names.
  std::vector<std::pair<std::string, std::string>> alike = {};
  std::string whole = {};  ///< for a part of the ranks: this rank in the whole run, "Rank 2 of 4"

  /// The same address, for a group of `ofSize` ranks.
  GroupAddress part(int ofRank, int ofSize) const;
  /// This rank in the whole run: "Rank 2 of 4".
  std::string rankText() const;
};

}  // namespace cleave::torch_rank
