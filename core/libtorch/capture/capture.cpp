#include "libtorch/capture/capture.h"

#include "base/stopwatch.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"
#include "libtorch/capture/recorder.h"
#include "libtorch/models/decoder.h"

#include <unordered_map>

namespace cleave::torch_capture {
namespace {

using graph::DType;
using graph::TensorType;

constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostPositions = 1 << 24;

/// Answers the model with tensors that the recorder knows.
class RecordingHost final : public models::ModelHost {
 public:
  RecordingHost(Recorder& recorder, const Progress& progress) : m_recorder(recorder), m_progress(progress) {}

  at::Tensor parameter(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) override {
    const auto [entry, isNew] = m_parameters.try_emplace(name);
    if (isNew) entry->second = m_recorder.addParameter(name, {*bridge::toDType(dtype), shape.vec()});
    return entry->second;
  }
  at::Tensor constant(const std::string& name, const std::function<at::Tensor()>& compute) override {
    const Recorder::Suspension unrecorded;
    return m_recorder.addConstant(name, compute());
  }
  void tied(const std::string& name, const std::string& otherName) override { m_recorder.addTiedName(name, otherName); }
  void enterModule(const std::string& path, std::string_view className) override {
    if (m_progress.cancelled()) throw Stopped();
    m_recorder.enterModule(path, className);
  }
  void leaveModule() override { m_recorder.leaveModule(); }

  /// Unwinds a cancelled forward pass.
  struct Stopped {};

 private:
  Recorder& m_recorder;
  const Progress& m_progress;
  std::unordered_map<std::string, at::Tensor> m_parameters;
};

void runForward(Recorder& recorder, const models::DecoderConfig& config, const CaptureOptions& options, DType dtype,
                const Progress& progress) {
  const TensorType tokens{DType::Int64, {options.batch, options.sequence}};
  models::DecoderInputs inputs;
  inputs.inputIds = recorder.addInput("input_ids", tokens);
  if (options.mask) inputs.attentionMask = recorder.addInput("attention_mask", tokens);
  if (options.loss) inputs.labels = recorder.addInput("labels", tokens);
  RecordingHost host(recorder, progress);
  const Recorder::Recording recording(recorder);
  const auto outputs = models::runDecoder(config, inputs, {bridge::toScalarType(dtype), options.logitsToKeep}, host);
  recorder.addOutput("logits", outputs.logits);
  if (outputs.loss) recorder.addOutput("loss", *outputs.loss);
}

}  // namespace

Result<void> checkOptions(const CaptureOptions& options) {
  if (options.batch < 1 || options.batch > kMostBatch) {
    return fail(ErrorCode::BadUsage, "batch is {}: expected a number from 1 to {}", options.batch, kMostBatch);
  }
  if (options.sequence < 1 || options.sequence > kMostPositions) {
    return fail(ErrorCode::BadUsage, "sequence length is {}: expected a number from 1 to {}", options.sequence,
                kMostPositions);
  }
  if (options.logitsToKeep < 0)
    return fail(ErrorCode::BadUsage, "logits-to-keep is {}: expected 0 (all positions) or more", options.logitsToKeep);
  if (options.loss && options.logitsToKeep != 0) {
    return fail(ErrorCode::BadUsage,
                "logits-to-keep is {}: the loss needs the logits of all positions; switch the loss off",
                options.logitsToKeep);
  }
  if (options.loss && options.sequence < 2) {
    return fail(
        ErrorCode::BadUsage,
        "sequence length is 1: the loss compares each position with the next; use 2 or more, or switch the loss off");
  }
  if (options.dtype && !graph::isFloatingPoint(*options.dtype)) {
    return fail(ErrorCode::BadUsage, "dtype is {}: expected a floating point type", graph::toText(*options.dtype));
  }
  return {};
}

Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const CaptureOptions& options,
                                   const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY_VOID(checkOptions(options));
  const std::string where = (folder.path / "config.json").string();
  CLEAVE_TRY(const models::DecoderConfig config, models::readDecoderConfig(*folder.config, where));
  CapturedModel model;
  model.architecture = config.architecture->className;
  model.modelType = config.architecture->modelType;
  model.dtype = options.dtype.value_or(config.dtype);

  const Stopwatch watch;
  Recorder recorder(model.modelType);
  try {
    runForward(recorder, config, options, model.dtype, progress);
  } catch (const RecordingHost::Stopped&) {
    return progress.cancelledError("capturing the model");
  } catch (const std::exception&) {
    const Error error = bridge::currentError(ErrorCode::BadInput, bridge::Wording::Phrase);
    const std::string place = recorder.currentPlace();
    return fail(error.code, "{}: the model cannot be captured{}{}: {}", where, place.empty() ? "" : " at ", place,
                error.message);
  }
  CLEAVE_TRY(RecordedGraphs graphs, withContext(std::move(recorder).finish(), where));
  model.decomposeMs = std::chrono::duration<double, std::milli>(recorder.timeBelow()).count();
  model.captureMs = watch.milliseconds() - model.decomposeMs;
  model.captured = std::make_shared<const graph::Graph>(std::move(graphs.captured));
  model.aten = std::make_shared<const graph::Graph>(std::move(graphs.aten));
  return model;
}

}  // namespace cleave::torch_capture
