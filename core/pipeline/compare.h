#pragma once
/// Compares the outputs of a run with expected tensors: element by element in double precision.
#include "base/progress.h"
#include "pipeline/report.h"

namespace cleave::pipeline {

/// Whether `expected` has every output of the plan's program in its shape (a single number also as a list of one);
/// before anything runs. Answers the tensors that are neither such an output nor an input: nothing will be compared
/// with them. BadInput names the first output that it lacks and says what to do.
Result<std::vector<std::string>> checkExpected(const plan::Plan& plan, const std::filesystem::path& expected);

/// Which positions of a run's logits are padding: what stands there means nothing, and versions of transformers
/// disagree about it.
struct Padding {
  std::vector<bool> isPadding;  ///< [batch, kept positions]; empty: the model has no mask
};
/// What the `attention_mask` of a run's inputs masks out. BadInput where no position is left.
Result<Padding> paddingOf(const plan::Plan& plan, const std::filesystem::path& inputs);

/// One row for each tensor of `actual`, in name order. An element is within when it equals what is expected, infinities
/// too, or both are finite and |actual - expected| ≤ atol + rtol·|expected|; NaN equals nothing. Padding of
/// `logits` [batch, kept positions, ...] is left out. BadInput for a tensor that `expected` lacks or has in another
/// shape.
Result<std::vector<OutputDifference>> compareTensors(const std::filesystem::path& actual,
                                                     const std::filesystem::path& expected, double rtol, double atol,
                                                     const Padding& padding = {});

/// Whether there are labels and each is -100, so that the loss averages none.
Result<bool> leavesNoLabel(const std::filesystem::path& inputs);

/// The first weight of a model folder that holds an infinity or what is no number, as a sentence; empty: there is none.
/// Reads all weights: for outputs that hold such values and a user who asks why. BadInput where the folder cannot be
/// read.
Result<std::string> weightThatIsNotFinite(const plan::ModelInfo& model, const Progress& progress);

}  // namespace cleave::pipeline
