#pragma once
/// The other ranks of a run, as one rank sees them. This header uses LibTorch.
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/training/replicas.h"

#include <memory>

namespace cleave::torch_rank {

struct Peers {
  std::unique_ptr<Collectives> all;  ///< all ranks of the run; null before the rank has connected
  Collectives* replica = nullptr;    ///< the ranks of this rank's replica
  Replicas replicas;
};

}  // namespace cleave::torch_rank
