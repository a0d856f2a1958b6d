#pragma once
/// Fills a rank's slice of a parameter piece by piece, from a file or from a seed. This header uses LibTorch.
///
/// A slice [start, start + length) of one dimension consists of `outer` runs of contiguous elements, both in the full
/// tensor and in the local one:
///
///     full [4, 6], columns 2..3, local [4, 2]:  outer 4, inner 1, runs of 2 elements, the first at element 2 of 24
#include "base/result.h"
#include "graph/types.h"
#include "program/shard_map.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace cleave::torch_rank {

/// Elements of one piece, in the full tensor and in the local one.
struct Region {
  std::int64_t outer = 1, inner = 1;           ///< products of the sizes before and after the split dimension
  std::int64_t wholeSize = 1, start = 0;       ///< size of that dimension and start of the piece, in the full tensor
  std::int64_t localSize = 1, localStart = 0;  ///< the same in the local tensor
  std::int64_t length = 1;
  std::int64_t run() const { return length * inner; }
  std::int64_t wholeIndex(std::int64_t row) const { return (row * wholeSize + start) * inner; }
};

/// The region of a piece; dim < 0 is the full tensor. Returns BadInput if the numbers do not fit the shapes.
Result<Region> regionOf(const graph::Shape& whole, const graph::Shape& local, int dim, std::int64_t start,
                        std::int64_t length, std::int64_t localStart);

/// The region in the local tensor, as a view [outer, run].
at::Tensor rowsOf(const at::Tensor& local, const Region& region);

/// Writes `count` elements from column `column` of row `row` to `out`.
using Producer = std::function<Result<void>(std::int64_t row, std::int64_t column, std::int64_t count, std::byte* out)>;

/// Fills `rows` from a producer of elements of `type`, through a buffer of at most program::kStagingBytes. Converts the
/// elements and copies them to the tensor's device.
Result<void> fillThroughStaging(const at::Tensor& rows, at::ScalarType type, const Producer& produce);

/// One number in [-1, 1), from a counter (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
double counterUniform(std::uint64_t key, std::uint64_t index);
/// The key of a named stream.
std::uint64_t streamKey(std::uint64_t seed, std::string_view name);

/// Initialises a parameter that is missing in the checkpoint. The values are equal for every world size: they depend
/// only on the seed, the name and the index in the full tensor. Norm weights (one-dimensional "*.weight") are 1, biases
/// are 0, and all others are uniform with standard deviation 0.02.
Result<void> initialise(const at::Tensor& local, const Region& region, const std::string& name, int dimensions,
                        std::uint64_t seed);

}  // namespace cleave::torch_rank
