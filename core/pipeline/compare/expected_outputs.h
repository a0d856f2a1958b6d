#pragma once
/// Checks, before a run, a file of expected tensors or inputs against the inputs and outputs of a plan.
#include "base/result.h"
#include "plan/plan.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// Checks that `expected` has every output of the plan's program in its shape (a single number may be a list of one).
/// Returns the tensors that are neither an output nor an input: the run does not compare them. BadInput names the first
/// missing output and says what to do. `replicas`: see RunRequest; an output has the rows of all replicas.
Result<std::vector<std::string>> checkExpected(const plan::Plan& plan, const std::filesystem::path& expected,
                                               int replicas = 1);

/// The same for training: `expected` has "losses" with one loss per step, parameters named "param.NAME", or some of
/// these. BadInput if it has nothing of this, or a tensor in another shape.
Result<std::vector<std::string>> checkExpectedTraining(const plan::Plan& plan, std::int64_t steps,
                                                       const std::filesystem::path& expected);

/// Names of trained parameters in `expected`, by their names in the plan, where the two differ. They differ for tied
/// parameters, and for files from other versions of transformers.
Result<std::map<std::string, std::string>> otherNamesIn(const plan::Plan& plan, const std::filesystem::path& expected);

/// Returns true if a file has inputs, and not only results of training.
Result<bool> holdsInputs(const std::filesystem::path& file);
/// The tensors in a file of inputs that are neither an input nor an output of the plan's program: a run ignores them.
Result<std::vector<std::string>> unusedInputs(const plan::Plan& plan, const std::filesystem::path& inputs);

}  // namespace cleave::pipeline
