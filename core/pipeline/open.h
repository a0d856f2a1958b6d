#pragma once
/// The first stage: a model folder or an exported program is read, and its code recorded as two graphs.
///
/// This and the stages behind it (solve.h, run.h; report.h says what a run gives) are the whole way from a model source
/// to a plan, and from a plan to a run: what the window, the command line and the tests call. Free of LibTorch and Qt
/// in these headers. Each stage is one function over immutable values; results are shared as `shared_ptr<const T>`.
/// Blocking: run it off the GUI thread; stop it with the progress's token. A failure leaves nothing behind.
///
///     CLEAVE_TRY(auto model, openModel("models/llama", {}, progress));
///     CLEAVE_TRY(auto solved, solveModel(model, {.ranks = 2}, progress));
///     CLEAVE_TRY(auto plan, planModel(model, solved));
#include "formats/model_folder.h"
#include "formats/weight_files.h"
#include "libtorch/capture/capture.h"
#include "plan/plan.h"

#include <filesystem>
#include <memory>
#include <string>

namespace cleave::pipeline {

struct Model {
  plan::ModelInfo info;
  formats::ModelFolder folder;  ///< of an exported program its archive's path, without a config
  std::shared_ptr<const formats::ExportedProgram> exported;  ///< null: a model folder
  std::shared_ptr<const graph::Graph> captured;
  std::shared_ptr<const graph::Graph> aten;
  plan::Timings timings;
};

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const torch_capture::CaptureOptions& options,
                                               const Progress& progress = {});
/// The same model with other options, from what was read when it was opened. BadInput for a graph that came alone, with
/// a plan or a recording.
Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress = {});

/// Where the weights of a plan's model lie.
struct Checkpoint {
  formats::WeightPlaces places;
  formats::WeightSources tensors;
};
Result<Checkpoint> readCheckpoint(const plan::ModelInfo& info, const Progress& progress = {});

/// What a safetensors file of inputs asks of the capture.
struct InputShape {
  std::int64_t batch = 1, sequence = 1;
  bool hasMask = false, hasTokenTypes = false, hasLabels = false;
};
/// BadInput names the file, also where it asks for what cannot be captured. `wantsLoss`: with a loss where there are
/// labels.
Result<InputShape> readInputShape(const std::filesystem::path& file, bool wantsLoss);
/// The same for an exported program: the sizes that its inputs have in the file. BadInput for shapes that it does not
/// take.
Result<formats::SymbolSizes> readInputSizes(const formats::ExportedProgram& program, const std::filesystem::path& file);

/// The options that capture the same graph again.
torch_capture::CaptureOptions captureOptionsOf(const plan::ModelInfo& info);

}  // namespace cleave::pipeline
