#include "pipeline/open.h"

#include "base/json.h"
#include "base/stopwatch.h"
#include "formats/safetensors.h"
#include "pipeline/source.h"

namespace cleave::pipeline {
namespace {

/// The model of a folder that was read, without a graph yet.
Result<std::shared_ptr<const Model>> capturedWith(Model model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY(auto captured, torch_capture::captureModel(model.folder, options, progress));
  model.captured = std::move(captured.captured);
  model.aten = std::move(captured.aten);
  model.timings.captureMs = captured.captureMs;
  model.timings.decomposeMs = captured.decomposeMs;
  plan::ModelInfo& info = model.info;
  info.architecture = captured.architecture;
  info.modelType = captured.modelType;
  info.dtype = captured.dtype;
  info.batch = options.batch;
  info.sequence = options.sequence;
  info.hasMask = options.mask;
  info.hasLoss = options.loss;
  info.logitsToKeep = options.logitsToKeep;
  info.hasWeights = model.folder.hasWeights();
  return std::make_shared<const Model>(std::move(model));
}

}  // namespace

Result<std::shared_ptr<const Model>> openModel(const std::string& source, const torch_capture::CaptureOptions& options,
                                               const Progress& progress) {
  const Stopwatch watch;
  progress.report("open");
  CLEAVE_TRY(const Source recognised, recognise(source));
  CLEAVE_TRY_VOID(refuseOtherThan(SourceKind::Model, recognised, source));
  Model model;
  CLEAVE_TRY(model.folder, formats::openModelFolder(recognised.path, progress));
  model.info.source = fs::absolute(model.folder.path).lexically_normal().string();
  if (!isUtf8(model.info.source)) {
    return fail(ErrorCode::BadInput,
                "The path of the model {} is not UTF-8, so that no plan could name it: rename the folder.",
                quotedText(model.info.source));
  }
  model.timings.loadMs = watch.milliseconds();
  if (progress.cancelled()) return progress.cancelledError("opening " + source);
  return capturedWith(std::move(model), options, progress);
}

Result<std::shared_ptr<const Model>> captureAgain(const Model& model, const torch_capture::CaptureOptions& options,
                                                  const Progress& progress) {
  if (!model.folder.config) {
    return fail(
        ErrorCode::BadInput,
        "The graph came without its model, so that it cannot be captured for other inputs: open the model's folder.");
  }
  return capturedWith(model, options, progress);
}

torch_capture::CaptureOptions captureOptionsOf(const plan::ModelInfo& info) {
  torch_capture::CaptureOptions options;
  options.batch = info.batch;
  options.sequence = info.sequence;
  options.dtype = info.dtype;
  options.mask = info.hasMask;
  options.loss = info.hasLoss;
  options.logitsToKeep = info.logitsToKeep;
  return options;
}

Result<InputShape> readInputShape(const fs::path& file, bool wantsLoss) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  const auto ids = header.tensors.find("input_ids");
  if (ids == header.tensors.end()) return fail(ErrorCode::BadInput, "{} has no tensor input_ids.", file.string());
  const graph::Shape& shape = ids->second.type.shape;
  if (shape.size() != 2)
    return fail(ErrorCode::BadInput, "{}: input_ids has shape {}, but must be [batch, sequence].", file.string(),
                graph::toText(shape));
  InputShape inputs{shape[0], shape[1], header.tensors.contains("attention_mask"), header.tensors.contains("labels")};
  torch_capture::CaptureOptions asked{.batch = inputs.batch, .sequence = inputs.sequence};
  asked.loss = inputs.hasLabels && wantsLoss;
  const auto checked = torch_capture::checkOptions(asked);
  if (!checked)
    return fail(ErrorCode::BadInput, "{}, whose input_ids have shape {}: {}.", file.string(), graph::toText(shape),
                checked.error().message);
  return inputs;
}

}  // namespace cleave::pipeline
