#pragma once
/// A value on the ranks of a run against the same value on the ranks of another, element by element.
#include "base/result.h"
#include "pipeline/bisect.h"
#include "rules/placement.h"

#include <filesystem>
#include <string>

namespace cleave::pipeline {

/// Where the parts of a value are: rank r's in the file `folder / (name + "." + r)`, as the tensor `tensor`.
struct HeldValue {
  std::filesystem::path files;  ///< rank r's is this with ".r" behind it
  std::string tensor;
  graph::Shape shape;  ///< of the whole
  rules::Placement placement;
  int ranks = 1;
};

/// The index of an element by its place in row-major order.
std::vector<std::int64_t> indexOf(std::int64_t flat, const graph::Shape& shape);

/// Every rank of `actual` against the whole that the ranks of `expected` make up. Leaves ValueDifference::value as it
/// is. BadInput for a part that has not the shape that its placement makes.
Result<ValueDifference> differenceOf(const HeldValue& actual, const HeldValue& expected, const Rounding& rounding);
/// How far the elements of the whole are from each other; `unit`: of rounding, of this value.
Result<Moves> movesOf(const HeldValue& reordered, const HeldValue& unsplit, double unit);
/// How many elements are not a number (`outside`), and the first of them. Otherwise the same.
Result<ValueDifference> notNumbersIn(const HeldValue& value);

}  // namespace cleave::pipeline
