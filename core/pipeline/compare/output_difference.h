#pragma once
/// The difference between one output of a run and the expected output.
///
/// This room decides if two programs computed the same. rounding.h has the rule; the other units apply it to tensors,
/// values of a plan and tokens. Nothing here runs ranks.
#include "pipeline/compare/rounding.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// One output of one rank, compared with the expected output. `rank` is 0, or a rank whose output is not bit-identical
/// to rank 0's.
struct OutputDifference {
  std::string name;
  int rank = 0;
  double maxAbs = 0,
         maxRel = 0;       ///< infinite if an element is NaN, or infinite on one side only; null in JSON
  double ofTolerance = 0;  ///< largest difference of an element, relative to its allowed one; decides the verdict
  std::vector<std::int64_t> place;  ///< index of the element with that difference
  double actual = 0, expected = 0;  ///< values of that element
  double allowed = 0;               ///< allowed difference of that element
  Rounding rounding;                ///< tolerance of this tensor; unused if rtol and atol are given
  std::int64_t outside = 0;         ///< elements that differ by more than the tolerance, or are finite on one side only
  std::int64_t notANumber = 0;      ///< elements that are NaN on either side: equal to nothing
  std::int64_t positions = 0;       ///< token positions, if a mask marks padding; otherwise 0
  std::int64_t padding = 0;         ///< padding positions; skipped, because their logits have no meaning
  std::int64_t undetermined = 0;    ///< elements of a trained parameter whose gradient is only rounding: they may
                                    ///< differ by the largest distance that AdamW moves a parameter
  std::int64_t jumped = 0;          ///< elements beyond the tolerance, not more and not farther than the elements
                                    ///< that jump when the unsplit run reorders its sums (rounding.h)
  bool within() const { return outside == 0 && notANumber == 0; }
};

}  // namespace cleave::pipeline
