#pragma once
/// Finds the first value that a split model computes differently from an unsplit run, or from another plan of the same
/// model.
///
/// Both runs report digests of every value that both have (program/watch.h). Values whose digests differ by more than
/// rounding are compared in full, in the order of the graph. The search ends at the first value that differs by more
/// than rounding allows (pipeline/compare/rounding.h). The ruler of a value is its largest change when the unsplit run
/// adds its sums in another order. If a parameter already differs, that parameter is the result.
///
///     CLEAVE_TRY(const Bisection found, bisect({.plan = plan, .input = "inputs.safetensors"}, progress));
///     if (found.first) fmt::print("{}\n", bisectionText(found, *plan));
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/compare/value_difference.h"
#include "plan/plan.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

struct BisectRequest {
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<const plan::Plan> against;        ///< plan of the same model and inputs; null: an unsplit run
  launch::Backend backend = launch::Backend::Auto;  ///< for the split run; run/unsplit_place.h chooses the other
  std::optional<std::filesystem::path> input;
  std::optional<double> tolerance;                ///< replaces rounding; relative to an element and its tensor's size
  bool skipWeights = false, initMissing = false;  ///< see cleave-rank
  std::filesystem::path rankProgram;              ///< empty: the one installed with this program
};

struct Bisection {
  std::vector<double> tolerances;  ///< by ValueId of the ATen graph: relative difference that is allowed for digests
  std::string comparedWith;        ///< "an unsplit run on GPU 0 (...)", "another plan on 4 ranks"
  std::size_t compared = 0;        ///< values whose digests were compared
  std::size_t apart = 0;           ///< compared values whose digests differ by more than rounding
  /// By ValueId of the ATen graph: relative difference of the digests; negative: not compared.
  std::vector<double> errors;
  std::optional<ValueDifference> first;
  /// The first value with NaN in both runs, if no value differs; `outside` is the number of NaN.
  std::optional<ValueDifference> firstNotANumber;
  std::vector<ValueDifference> inputs;  ///< operands of the node that computes `first`, if both runs have them
};

/// Runs both sides on this machine. BadInput if the plans have different models or inputs; otherwise the errors of the
/// runs.
Result<Bisection> bisect(const BisectRequest& request, const Progress& progress = {});

/// "First difference: `mul_3` (mul in model.layers.0.mlp) on rank 1: ..."
std::string bisectionText(const Bisection& found, const plan::Plan& plan);
/// Schema "cleave.bisect/1".
std::string toJson(const Bisection& found, const plan::Plan& plan);

}  // namespace cleave::pipeline
