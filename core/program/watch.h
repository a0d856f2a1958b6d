#pragma once
/// Values that a run is looked at for: which, and how each lies on the ranks. The file that tells the ranks.
///
/// Layout: {"schema": "cleave.watch/1", "values": [{"name", "shape", "placement", "keep"}]}, names being those of the
/// rank program. A rank answers with a safetensors file: "digests" f64[values, kDigestNumbers], in the file's order,
/// and each value that is kept as "value.<its number in the list>", its own part.
///
/// The digest of a value is linear but for its last numbers, so that those of the parts that make up a value add up to
/// that of the whole: projections on kProjections directions, each the product of one sequence of random signs per
/// dimension (Rademacher; a difference e of two tensors shows as about |e| in them: Johnson-Lindenstrauss for
/// tensorised projections, Rakhshan and Rabusseau, "Tensorized Random Projections", arXiv:2003.05101), the sum of
/// squares, and how many elements are no finite numbers; the largest magnitude is the largest of the parts'. Elements
/// that are not finite count as 0 in all but their number. A part that several ranks hold is counted by the first of
/// them.
#include "rules/placement.h"

#include "base/files.h"
#include "base/result.h"
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::program {

struct WatchedValue {
  std::string name;            ///< of the rank program's value
  graph::Shape shape;          ///< of the whole
  rules::Placement placement;  ///< how the ranks hold it
  bool isKept = false;         ///< each rank writes its part
  bool operator==(const WatchedValue&) const = default;
};

inline constexpr int kProjections = 4;
inline constexpr int kSquares = kProjections, kNotFinite = kProjections + 1, kLargest = kProjections + 2;
inline constexpr int kDigestNumbers = kProjections + 3;

std::string toJson(const std::vector<WatchedValue>& values);
/// BadInput names the file and the field.
Result<std::vector<WatchedValue>> readWatch(const fs::path& file, int ranks);

/// A random sign for the element `index` of dimension `dim`, in projection `projection`: +1 or -1, the same on every
/// machine.
float signOf(int projection, int dim, std::int64_t index);

}  // namespace cleave::program
