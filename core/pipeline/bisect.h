#pragma once
/// Where the split model first computes something else: value by value against an unsplit run, or against another plan
/// of the same model.
///
/// Both runs answer digests of every value that both hold (program/watch.h): what differs there by more than rounding
/// explains is looked at in full, first in the order of the graph, until one is found that differs by more than
/// rounding allows (rounding.h). The ruler of each value is how far the unsplit run moves it with its sums in another
/// order. A difference that began in a parameter is found in that parameter.
///
///     CLEAVE_TRY(const Bisection found, bisect({.plan = plan, .input = "inputs.safetensors"}, progress));
///     if (found.first) fmt::print("{}\n", bisectionText(found, *plan));
#include "base/progress.h"
#include "pipeline/run.h"
#include "plan/plan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct BisectRequest {
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<const plan::Plan> against;        ///< of the same model with the same inputs; null: an unsplit run
  launch::Backend backend = launch::Backend::Auto;  ///< of the split run; the other one: unsplit_place.h
  std::optional<std::filesystem::path> input;
  std::optional<double> tolerance;                ///< in place of rounding: of an element and of its tensor's size
  bool skipWeights = false, initMissing = false;  ///< see cleave-rank
  std::filesystem::path rankProgram;              ///< empty: the one installed with this program
};

/// An element that differs.
struct ElementDifference {
  std::vector<std::int64_t> index;  ///< in the whole tensor
  int rank = 0;                     ///< that holds it; of several the first
  double actual = 0, expected = 0;
  double allowed = 0;  ///< they may differ by so much
};

/// A value, element by element. An element differs by more than rounding.h allows of it, or where one of the two alone
/// is no finite number.
struct ValueDifference {
  graph::ValueId value;                      ///< of the ATen graph
  std::int64_t elements = 0;                 ///< of the whole
  std::int64_t outside = 0;                  ///< that differ, on the rank where most do
  std::optional<ElementDifference> largest;  ///< the farthest of those that differ
};

struct Bisection {
  std::vector<double> tolerances;  ///< by ValueId of the ATen graph: of its size, as far as digests say
  std::string comparedWith;        ///< "an unsplit run on GPU 0 (...)", "another plan on 4 ranks"
  std::size_t compared = 0;        ///< values whose digests were compared
  std::size_t apart = 0;           ///< of these, whose digests differ by more than rounding
  /// By ValueId of the ATen graph: by how much of its size a value differs, as its digests say; negative: not compared.
  std::vector<double> errors;
  std::optional<ValueDifference> first;
  /// Where nothing differs: the first value with elements that are not a number, alike in both; `outside`: how many.
  std::optional<ValueDifference> firstNotANumber;
  std::vector<ValueDifference> inputs;  ///< of the node that computes the first, as far as both runs hold them
};

/// Runs both on this machine. BadInput where the plans are of different models or inputs; errors of runs as
/// they say them.
Result<Bisection> bisect(const BisectRequest& request, const Progress& progress = {});

/// "First difference: `mul_3` (mul in model.layers.0.mlp) on rank 1: ..."
std::string bisectionText(const Bisection& found, const plan::Plan& plan);
/// Schema "cleave.bisect/1".
std::string toJson(const Bisection& found, const plan::Plan& plan);

}  // namespace cleave::pipeline
