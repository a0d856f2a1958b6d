#pragma once
/// The first stage: reads a model folder or an exported program, and records its code as two graphs.
///
/// This stage and the next ones (pipeline/solve/solve.h, pipeline/run/run.h) lead from a model source to a plan, and
/// from a plan to a run. The window, the command line and the tests call them. These headers include neither LibTorch
/// nor Qt. Each stage is one function over immutable values; results are shared as `shared_ptr<const T>`. Blocking: run
/// it off the GUI thread; stop it with the progress's token. A failure leaves no files.
///
///     CLEAVE_TRY(auto model, openModel("models/llama", {}, progress));
///     CLEAVE_TRY(auto solved, solveModel(model, {.ranks = 2}, progress));
///     CLEAVE_TRY(auto plan, planModel(model, solved));
#include "base/progress.h"
#include "libtorch/capture/capture.h"
#include "pipeline/model/model.h"
#include "plan/plan.h"

#include <memory>
#include <string>

namespace cleave::pipeline {

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const spec::InputSpec& input,
                                               const Progress& progress = {});
/// The same model with other inputs, without reading it again. BadInput for a graph without its model, from a plan or
/// a recording.
Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const spec::InputSpec& input,
                                                  const Progress& progress = {});

}  // namespace cleave::pipeline
