#include "program/shard_map.h"

#include <algorithm>

namespace cleave::program {

bool ParameterShards::isStoredFor(int rank) const {
  const auto& pieces = piecesByRank.at(static_cast<std::size_t>(rank));
  return std::none_of(pieces.begin(), pieces.end(), [](const ShardPiece& piece) { return piece.file.empty(); });
}

graph::Shape ParameterShards::storedShape() const {
  if (stacked == 0) return type.shape;
  graph::Shape shape(type.shape.begin() + 1, type.shape.end());
  shape[0] /= stacked;
  return shape;
}

std::vector<StoredRegion> wholeRegions(const ParameterShards& parameter, int ranks, int rank) {
  if (parameter.placement.isReplicatedOn(ranks) || ranks == 1) return {StoredRegion()};
  std::vector<StoredRegion> regions;
  for (const rules::Range& range : parameter.placement.ranges(parameter.type.shape, ranks, rank)) {
    if (range.length == 0) continue;  // a rank that has only padding
    regions.push_back({0, 0, parameter.placement.firstDim(), range.start, range.length});
  }
  return regions;
}

namespace {

/// For one item: the regions of its stored tensors. `region` is a region of the whole parameter.
void addPartsOf(const ParameterShards& parameter, std::int64_t item, const StoredRegion& region,
                std::vector<StoredRegion>& found) {
  const std::int64_t rows = parameter.storedShape()[0];
  for (std::int64_t part = 0; part < parameter.stacked; ++part) {
    if (region.dim != 1) {  // whole items, or columns of all items
      const int dim = region.dim <= 0 ? -1 : region.dim - 1;
      found.push_back({item, part, dim, dim < 0 ? 0 : region.start, dim < 0 ? 0 : region.length});
      continue;
    }
    const std::int64_t first = std::max(region.start, part * rows);
    const std::int64_t last = std::min(region.start + region.length, (part + 1) * rows);
    if (first >= last) continue;
    const bool isWhole = last - first == rows;
    found.push_back({item, part, isWhole ? -1 : 0, isWhole ? 0 : first - part * rows, isWhole ? 0 : last - first});
  }
}

}  // namespace

std::vector<StoredRegion> storedRegions(const ParameterShards& parameter, int ranks, int rank) {
  std::vector<StoredRegion> whole = wholeRegions(parameter, ranks, rank);
  if (parameter.stacked == 0) return whole;
  std::vector<StoredRegion> found;
  const bool isByItem = !whole.empty() && whole.front().dim == 0;
  for (std::int64_t item = 0; item < parameter.type.shape[0]; ++item) {
    for (const StoredRegion& region : whole) {
      if (isByItem && (item < region.start || item >= region.start + region.length)) continue;
      addPartsOf(parameter, item, region, found);
    }
  }
  return found;
}

std::int64_t shardBytes(const ShardMap& parameters, int rank) {
  std::int64_t bytes = 0;
  for (const ParameterShards& parameter : parameters) {
    // If any piece of a parameter is missing, the whole parameter is filled from the seed.
    if (!parameter.isStoredFor(rank)) continue;
    for (const ShardPiece& piece : parameter.piecesByRank[static_cast<std::size_t>(rank)]) {
      graph::TensorType read{parameter.storedDtype, parameter.storedShape()};
      if (piece.dim >= 0) read.shape[static_cast<std::size_t>(piece.dim)] = piece.length;
      bytes += sizeInBytes(read);
    }
  }
  return bytes;
}

}  // namespace cleave::program
