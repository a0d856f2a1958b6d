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

/// Where a part of a parameter is stored: a region of a tensor, as in ShardPiece.
struct StoredRegion {
  std::int64_t item = 0, part = 0;  ///< of a stacked parameter
  int dim = -1;
  std::int64_t start = 0;
  std::int64_t length = 0;
};

struct ParameterShards {
  std::string name;
  graph::TensorType type;                            ///< whole, in the dtype it has in the program
  graph::DType storedDtype = graph::DType::Float32;  ///< in the checkpoint
  graph::Shape localShape;
  rules::Placement placement;
  std::vector<std::vector<ShardPiece>> piecesByRank;  ///< per rank, concatenated along the split dimension in order
  /// 0: it is stored as one tensor. Else each item of its first dimension is stored as so many equal tensors, which
  /// make it one behind the other, row-major; then pieces are regions of those, and follow each other likewise.
  int stacked = 0;

  bool isStoredFor(int rank) const;  ///< every piece of the rank lies in a file of the checkpoint
  graph::Shape storedShape() const;  ///< of a tensor that pieces are of
};

/// What a rank holds as regions of the whole parameter, along its split dimension.
std::vector<StoredRegion> wholeRegions(const ParameterShards& parameter, int ranks, int rank);
/// What its pieces are regions of: the same, but for stacked parameters.
std::vector<StoredRegion> storedRegions(const ParameterShards& parameter, int ranks, int rank);

using ShardMap = std::vector<ParameterShards>;  ///< in name order

/// Payload bytes that a rank reads from the checkpoint: exactly its pieces, in the stored dtype.
std::int64_t shardBytes(const ShardMap& parameters, int rank);

/// Where a rank cannot read in place it reads through a buffer, of at most this many bytes.
inline constexpr std::int64_t kStagingBytes = 1 << 20;

}  // namespace cleave::program
