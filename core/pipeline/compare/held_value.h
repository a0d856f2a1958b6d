#pragma once
/// Compares a value on the ranks of one run with the same value on the ranks of another run, element by element.
#include "base/result.h"
#include "graph/graph.h"
#include "pipeline/compare/rounding.h"
#include "pipeline/compare/value_difference.h"
#include "rules/placement.h"

#include <filesystem>
#include <string>

namespace cleave::pipeline {

/// The files with the parts of a value. Rank r's part is the tensor `tensor` in the file `files` + ".r".
struct HeldValue {
  std::filesystem::path files;  ///< path without the suffix of a rank
  std::string tensor;
  graph::Shape shape;  ///< full shape
  rules::Placement placement;
  int ranks = 1;
};

/// Compares every rank of `actual` with the full value from the ranks of `expected`. Does not set
/// ValueDifference::value. BadInput if the shape of a part does not match its placement.
Result<ValueDifference> differenceOf(const HeldValue& actual, const HeldValue& expected, const Rounding& rounding);
/// The moves of the elements between two unsplit runs. `unit`: the rounding unit of this value.
Result<Moves> movesOf(const HeldValue& reordered, const HeldValue& unsplit, double unit);
/// Counts the NaN elements (`outside`) and returns the first of them as `largest`. Errors as differenceOf.
Result<ValueDifference> nanElementsOf(const HeldValue& value);

}  // namespace cleave::pipeline
