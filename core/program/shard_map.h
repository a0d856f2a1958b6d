#pragma once
/// Which parts of which stored tensors make up a rank's parameters.
#include "graph/graph.h"
#include "rules/placement.h"

#include <string>
#include <vector>

namespace cleave::program {

/// One contiguous-per-row region of a checkpoint tensor: [start, start+length) of dimension `dim`; the whole tensor
/// when dim < 0.
struct ShardPiece {
  std::string tensor;  ///< name in the checkpoint (a tied parameter's canonical name may differ from the parameter's)
  std::string file;    ///< relative to the model folder; empty: not in any checkpoint (to be initialised)
  int dim = -1;
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const ShardPiece&) const = default;
};

struct ParameterShards {
  std::string name;
  graph::TensorType type;                            ///< whole, in the dtype it has in the program
  graph::DType storedDtype = graph::DType::Float32;  ///< in the checkpoint
  graph::Shape localShape;
  rules::Placement placement;
  std::vector<std::vector<ShardPiece>> piecesByRank;  ///< per rank, concatenated along the split dimension in order

  bool isStoredFor(int rank) const;  ///< every piece of the rank lies in a file of the checkpoint
};

using ShardMap = std::vector<ParameterShards>;  ///< in name order

/// Payload bytes that a rank reads from the checkpoint: exactly its pieces, in the stored dtype.
std::int64_t shardBytes(const ShardMap& parameters, int rank);

/// Where a rank cannot read in place it reads through a buffer, of at most this many bytes.
inline constexpr std::int64_t kStagingBytes = 1 << 20;

}  // namespace cleave::program
