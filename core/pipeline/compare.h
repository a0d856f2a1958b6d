#pragma once
/// Compares the outputs of a run with expected tensors: element by element in double precision.
#include "base/progress.h"
#include "pipeline/report.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// Whether `expected` has every output of the plan's program in its shape (a single number also as a list of one);
/// before anything runs. Answers the tensors that are neither such an output nor an input: nothing will be compared
/// with them. BadInput names the first output that it lacks and says what to do. `replicas`: see RunRequest; an output
/// has the rows of all.
Result<std::vector<std::string>> checkExpected(const plan::Plan& plan, const std::filesystem::path& expected,
                                               int replicas = 1);

/// The same for training: `expected` has "losses" of as many steps, or parameters by their names behind "param.", or
/// some of these. BadInput where it has none, or one in another shape.
Result<std::vector<std::string>> checkExpectedTraining(const plan::Plan& plan, std::int64_t steps,
                                                       const std::filesystem::path& expected);

/// Names of trained parameters in `expected`, by those of the plan, where they differ: a parameter may be tied to one
/// of another name, and a family's have other names in other versions of transformers.
Result<std::map<std::string, std::string>> otherNamesIn(const plan::Plan& plan, const std::filesystem::path& expected);

/// Whether a file has more than what training leads to: inputs.
Result<bool> holdsInputs(const std::filesystem::path& file);
/// The tensors of a file of inputs that are neither an input nor an output of the plan's program: a run passes them
/// over.
Result<std::vector<std::string>> unusedInputs(const plan::Plan& plan, const std::filesystem::path& inputs);

/// Which positions of a run's logits are padding: what stands there means nothing, and versions of transformers
/// disagree about it.
struct Padding {
  std::vector<bool> isPadding;  ///< [batch, kept positions]; empty: the model has no mask
};
/// What the `attention_mask` of the inputs of a run of this model masks out. BadInput where no position is left.
Result<Padding> paddingOf(const plan::ModelInfo& model, const std::filesystem::path& inputs);

/// How far the tensors of two files are from each other, by name. What only one of them has is left out. `unitOf`: the
/// unit of rounding of a tensor.
Result<std::map<std::string, Moves>> movesBetween(const std::filesystem::path& unsplit,
                                                  const std::filesystem::path& reordered,
                                                  const std::function<double(const std::string&)>& unitOf);

/// What of the outputs is compared, and how closely.
struct Comparison {
  std::optional<double> rtol, atol;  ///< both: an element may differ by atol + rtol·|expected|. Else by rounding
  std::map<std::string, Rounding> roundings = {};  ///< by tensor of `actual`; others: `rounding`
  Rounding rounding = {};
  Padding padding = {};  ///< of `logits` [batch, kept positions, ...]: left out
  /// Of training. What `expected` has not is left out; elements that are "undetermined" (libtorch/rank/training.h) may
  /// differ by `moves` more: twice what AdamW moves a parameter in all steps. Of a run that `expected` is, both have to
  /// find them so: a gradient that a split makes small is no excuse.
  bool isTraining = false;
  bool isExpectedOfRun = false;
  double moves = 0;
  std::map<std::string, std::string> otherNames = {};  ///< of tensors in `expected`, by the name they have in `actual`
};

/// One row for each tensor of `actual`, in name order. An element is within when it equals what is expected, infinities
/// too, or both are finite and |actual - expected| is no more than allowed; NaN equals nothing. BadInput for a tensor
/// that `expected` lacks or has in another shape.
Result<std::vector<OutputDifference>> compareTensors(const std::filesystem::path& actual,
                                                     const std::filesystem::path& expected,
                                                     const Comparison& comparison);

/// Whether there are labels and each is -100, so that the loss averages none.
Result<bool> leavesNoLabel(const std::filesystem::path& inputs);

/// The first weight of a model folder that holds an infinity or what is no number, as a sentence; empty: there is none.
/// Reads all weights: for outputs that hold such values and a user who asks why. BadInput where the folder cannot be
/// read.
Result<std::string> weightThatIsNotFinite(const plan::ModelInfo& model, const Progress& progress);

}  // namespace cleave::pipeline
