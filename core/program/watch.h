#pragma once
/// The values that a run compares, and their placements, in the file that the ranks read.
///
/// Layout: {"schema": "cleave.watch/1", "values": [{"name", "shape", "placement", "keep"}]}, with names of the rank
/// program. A rank answers with a safetensors file: "digests" f64[values, kDigestNumbers] in the file's order, and its
/// own part of each kept value as "value.<its number in the list>".
///
/// All but the last numbers of a digest are linear, so that the digests of a value's parts add up to that of the whole.
/// They are projections on kProjections directions, each the product of one sequence of random signs per dimension
/// (Rademacher; a difference e of two tensors changes them by about |e|: Johnson-Lindenstrauss for tensorised
/// projections, Rakhshan and Rabusseau, "Tensorized Random Projections", arXiv:2003.05101), the sum of squares, and the
/// number of non-finite elements. The largest magnitude is the maximum over the parts. Non-finite elements count as 0
/// in all other numbers. The first of several ranks with the same part counts it.
#include "rules/placement.h"

#include "base/files.h"
#include "base/result.h"
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::program {

struct WatchedValue {
  std::string name;            ///< name of the value in the rank program
  graph::Shape shape;          ///< shape of the whole value
  rules::Placement placement;  ///< placement on the ranks
  bool isKept = false;         ///< each rank writes its part
  bool operator==(const WatchedValue&) const = default;
};

inline constexpr int kProjections = 4;
inline constexpr int kSquares = kProjections, kNotFinite = kProjections + 1, kLargest = kProjections + 2;
inline constexpr int kDigestNumbers = kProjections + 3;

std::string toJson(const std::vector<WatchedValue>& values);
/// BadInput names the file and the field.
Result<std::vector<WatchedValue>> readWatch(const fs::path& file, int ranks);

/// A random sign for element `index` of dimension `dim` in projection `projection`: +1 or -1, the same on every
/// machine.
float signOf(int projection, int dim, std::int64_t index);

}  // namespace cleave::program
