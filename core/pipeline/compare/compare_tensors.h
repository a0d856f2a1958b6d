#pragma once
/// Compares the tensors of two files element by element in double precision.
#include "base/result.h"
#include "pipeline/compare/output_difference.h"
#include "pipeline/compare/rounding.h"
#include "plan/plan.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// The positions of a run's logits that are padding. Their logits have no meaning, and versions of transformers compute
/// different ones.
struct Padding {
  std::vector<bool> isPadding;  ///< [batch, kept positions]; empty: the model has no mask
};
/// The padding according to the `attention_mask` in a file of inputs. BadInput if all positions are padding.
Result<Padding> paddingOf(const plan::ModelInfo& model, const std::filesystem::path& inputs);

/// The moves between the tensors of two files, by name. Tensors that are in one file only are skipped. `unitOf`: the
/// rounding unit of a tensor.
Result<std::map<std::string, Moves>> movesBetween(const std::filesystem::path& unsplit,
                                                  const std::filesystem::path& reordered,
                                                  const std::function<double(const std::string&)>& unitOf);

/// The scope and the tolerance of a comparison.
struct Comparison {
  std::optional<double> rtol, atol;  ///< an element may differ by atol + rtol·|expected|; nullopt both: by rounding
  std::map<std::string, Rounding> roundings = {};  ///< by tensor of `actual`; `rounding` applies to the others
  Rounding rounding = {};
  Padding padding = {};  ///< positions of `logits` [batch, kept positions, ...] that are skipped
  /// For training. Tensors that `expected` lacks are skipped. "Undetermined" elements
  /// (libtorch/rank/training/training.h) may differ by `moves` more: twice the distance that AdamW moves a parameter in
  /// all steps. If `expected` is from a run, an element must be undetermined in both runs: otherwise a split that
  /// wrongly makes a gradient small would pass.
  bool isTraining = false;
  bool isExpectedOfRun = false;
  double moves = 0;
  std::map<std::string, std::string> otherNames = {};  ///< names of tensors in `expected`, by their names in `actual`
};

/// One row for each tensor of `actual`, in name order. An element is within if it equals the expected one (infinities
/// included), or if both are finite and |actual - expected| is at most the allowed difference. NaN equals nothing.
/// BadInput for a tensor that `expected` lacks or has in another shape.
Result<std::vector<OutputDifference>> compareTensors(const std::filesystem::path& actual,
                                                     const std::filesystem::path& expected,
                                                     const Comparison& comparison);

}  // namespace cleave::pipeline
