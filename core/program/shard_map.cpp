#include "program/shard_map.h"

#include <algorithm>

namespace cleave::program {

bool ParameterShards::isStoredFor(int rank) const {
  const auto& pieces = piecesByRank.at(static_cast<std::size_t>(rank));
  return std::none_of(pieces.begin(), pieces.end(), [](const ShardPiece& piece) { return piece.file.empty(); });
}

std::int64_t shardBytes(const ShardMap& parameters, int rank) {
  std::int64_t bytes = 0;
  for (const ParameterShards& parameter : parameters) {
    // A parameter of which a piece is missing is filled from the seed as a whole.
    if (!parameter.isStoredFor(rank)) continue;
    for (const ShardPiece& piece : parameter.piecesByRank[static_cast<std::size_t>(rank)]) {
      graph::TensorType read{parameter.storedDtype, parameter.type.shape};
      if (piece.dim >= 0) read.shape[static_cast<std::size_t>(piece.dim)] = piece.length;
      bytes += sizeInBytes(read);
    }
  }
  return bytes;
}

}  // namespace cleave::program
