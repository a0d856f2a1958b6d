#pragma once
/// The parts of stored tensors that make up each rank's parameters.
#include "graph/graph.h"
#include "rules/placement.h"

#include <string>
#include <vector>

namespace cleave::program {

/// A region of a checkpoint tensor, contiguous per row: [start, start+length) of dimension `dim`; the whole tensor if
/// dim < 0.
struct ShardPiece {
  std::string tensor;  ///< name in the checkpoint (a tied parameter's canonical name may differ from the parameter's)
  std::string file;    ///< relative to the model folder; empty: missing in the checkpoint (to be initialised)
  int dim = -1;
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const ShardPiece&) const = default;
};

/// The stored location of a part of a parameter: a region of a tensor, as in ShardPiece.
struct StoredRegion {
  std::int64_t item = 0, part = 0;  ///< item of a stacked parameter
  int dim = -1;
  std::int64_t start = 0;
  std::int64_t length = 0;
};

struct ParameterShards {
  std::string name;
  graph::TensorType type;                            ///< whole shape, in the program's dtype
  graph::DType storedDtype = graph::DType::Float32;  ///< dtype in the checkpoint
  graph::Shape localShape;
  rules::Placement placement;
  std::vector<std::vector<ShardPiece>> piecesByRank;  ///< per rank, concatenated along the split dimension in order
  /// 0: stored as one tensor. Otherwise each item of its first dimension is stored as this many equal tensors,
  /// concatenated in row-major order. Pieces are then regions of those tensors, in the same order.
  int stacked = 0;

  bool isStoredFor(int rank) const;  ///< every piece of the rank is in a file of the checkpoint
  graph::Shape storedShape() const;  ///< shape of a stored tensor
};

/// A rank's part as regions of the whole parameter along its split dimension.
std::vector<StoredRegion> wholeRegions(const ParameterShards& parameter, int ranks, int rank);
/// The regions of stored tensors that pieces refer to; they differ from the above only for stacked parameters.
std::vector<StoredRegion> storedRegions(const ParameterShards& parameter, int ranks, int rank);

using ShardMap = std::vector<ParameterShards>;  ///< in name order

/// Payload bytes that a rank reads from the checkpoint: exactly its pieces, in the stored dtype.
std::int64_t shardBytes(const ShardMap& parameters, int rank);

/// Limit of the buffer for reads that cannot be done in place.
inline constexpr std::int64_t kStagingBytes = 1 << 20;

}  // namespace cleave::program
