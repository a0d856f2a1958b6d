#include "libtorch/capture/capture.h"

#include "base/json.h"
#include "families/dropouts.h"
#include "libtorch/bridge/types.h"
#include "libtorch/capture/forward_source.h"
#include "libtorch/models/model.h"

#include <unordered_map>

namespace cleave::torch_capture {
namespace {

using graph::DType;
using graph::TensorType;

constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostPositions = 1 << 24;

/// Returns tensors to the model that the recorder tracks.
class RecordingHost final : public models::ModelHost {
 public:
  RecordingHost(Recorder& recorder, const Progress& progress) : m_recorder(recorder), m_progress(progress) {}

  at::Tensor parameter(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) override {
    const auto [entry, isNew] = m_parameters.try_emplace(name);
    if (isNew) entry->second = m_recorder.addParameter(name, {*bridge::toDType(dtype), shape.vec()});
    return entry->second;
  }
  at::Tensor buffer(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) override {
    at::Tensor held = parameter(name, shape, dtype);
    m_recorder.freeze(name);
    return held;
  }
  at::Tensor constant(const std::string& name, const std::function<at::Tensor()>& compute) override {
    const Recorder::Suspension unrecorded;
    return m_recorder.addConstant(name, compute());
  }
  at::Tensor past(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) override {
    return m_recorder.addInput(name, {*bridge::toDType(dtype), shape.vec()});
  }
  void tied(const std::string& name, const std::string& otherName) override { m_recorder.addTiedName(name, otherName); }
  void stacked(const std::string& name, const graph::StackedName& stored) override {
    m_recorder.setStackedName(name, stored);
  }
  void enterModule(const std::string& path, std::string_view className) override {
    if (m_progress.cancelled()) throw ForwardSource::Stopped();
    m_recorder.enterModule(path, className);
  }
  void leaveModule() override { m_recorder.leaveModule(); }

 private:
  Recorder& m_recorder;
  const Progress& m_progress;
  std::unordered_map<std::string, at::Tensor> m_parameters;
};

/// The longest sequence that fits a learned table; nullopt if positions are computed.
std::optional<std::int64_t> learnedPositions(const families::ModelConfig& config) {
  const auto* learned = std::get_if<families::LearnedPositions>(&config.family.position);
  if (!learned) return std::nullopt;
  const bool isCountedFromPadding = learned->from == families::PositionFrom::PaddingId;
  return config.family.positions.value - (isCountedFromPadding ? config.padTokenId + 1 : 0);
}

Result<void> checkPositions(const families::ModelConfig& config, const CaptureOptions& options,
                            const std::string& where) {
  const std::int64_t rows = learnedPositions(config).value_or(kMostPositions);
  if (options.cachePositions > rows) {
    return fail(ErrorCode::BadInput,
                "{}: the model has {} learned positions, but prompt and generated tokens need {}. Generate "
                "fewer tokens.",
                where, rows, options.cachePositions);
  }
  if (options.sequence <= rows) return {};
  return fail(ErrorCode::BadInput,
              "{}: the model has {} learned positions, too few for a sequence of {}. Use --seq {}.", where, rows,
              options.sequence, rows);
}

void runForward(Recorder& recorder, const families::ModelConfig& config, const CaptureOptions& options, DType dtype,
                const Progress& progress) {
  const TensorType tokens{DType::Int64, {options.batch, options.sequence}};
  const bool isClassifier = std::holds_alternative<families::ClassifierHead>(config.head);
  models::ModelInputs inputs;
  inputs.inputIds = recorder.addInput("input_ids", tokens);
  if (options.mask) inputs.attentionMask = recorder.addInput("attention_mask", tokens);
  if (options.tokenTypes) inputs.tokenTypeIds = recorder.addInput("token_type_ids", tokens);
  if (options.loss)
    inputs.labels = recorder.addInput("labels", isClassifier ? TensorType{DType::Int64, {options.batch}} : tokens);
  if (options.cacheUse == graph::CacheUse::Reads)
    inputs.cachePosition = recorder.addInput(std::string(graph::kCachePosition), {DType::Int64, {1}});
  const models::ModelOptions asked{bridge::toScalarType(dtype), options.logitsToKeep, options.cacheUse,
                                   options.cachePositions, options.dropout};
  RecordingHost host(recorder, progress);
  const Recorder::Recording recording(recorder);
  const auto outputs = models::runModel(config, inputs, asked, host);
  recorder.addOutput("logits", outputs.logits);
  if (outputs.loss) recorder.addOutput("loss", *outputs.loss);
  for (const auto& [name, tensor] : outputs.present) recorder.addOutput(name, tensor);
}

/// These frequencies depend on the sequence length. Here that is the full length, but a model that generates token by
/// token uses the current length. So the keys in the cache would have other rotations.
Result<void> checkRopes(const families::ModelConfig& config, const CaptureOptions& options, const std::string& where) {
  for (const families::RopeConfig& rope : config.ropes) {
    const bool isDynamic = rope.kind == families::RopeKind::Dynamic, isLong = rope.kind == families::RopeKind::LongRope;
    const std::int64_t limit = isLong ? rope.originalMaxPositions : config.family.positions.value;
    const bool isPromptBeyond = isLong && options.cacheUse == graph::CacheUse::Fills && options.sequence > limit;
    const bool isStep = options.cacheUse == graph::CacheUse::Reads;  // only the prefill is checked
    if (!(isDynamic || isLong) || options.cachePositions <= limit || isPromptBeyond || (isLong && isStep)) continue;
    return fail(ErrorCode::BadInput,
                "{}: beyond {} positions the model rotates its keys differently, but prompt and generated tokens "
                "need {}. Use at most {}.",
                where, limit, options.cachePositions, limit);
  }
  return {};
}

Result<void> checkCache(const families::ModelConfig& config, const CaptureOptions& options, const std::string& where) {
  if (options.cacheUse == graph::CacheUse::None) return {};
  if (!std::holds_alternative<families::CausalHead>(config.head)) {
    return fail(ErrorCode::BadInput, "{}: {} does not predict the next token, so it cannot generate.", where,
                config.className);
  }
  if (!config.family.isCausal) {
    return fail(ErrorCode::BadInput, "{}: in this model tokens attend to later tokens too, so it cannot generate.",
                where);
  }
  return checkRopes(config, options, where);
}

/// Checks options that this model does not support.
Result<void> checkOptionsFor(const families::ModelConfig& config, const CaptureOptions& options,
                             const std::string& where) {
  if (options.loss && !config.hasLoss) {
    return fail(ErrorCode::BadInput, "{}: Cleave does not support the loss of problem_type {}. Use --loss off.", where,
                quotedText(config.lossKind));
  }
  if (options.tokenTypes && config.family.embeddings.tokenTypes.empty()) {
    return fail(ErrorCode::BadInput, "{}: {} models have no token types. Omit token_type_ids.", where,
                config.family.modelType);
  }
  if (options.dropout) CLEAVE_TRY_VOID(families::checkDropouts(config, where));
  CLEAVE_TRY_VOID(checkCache(config, options, where));
  const bool isCausal = std::holds_alternative<families::CausalHead>(config.head);
  if (options.logitsToKeep != 0 && !isCausal) {
    return fail(ErrorCode::BadInput, "{}: {} computes the logits of all positions. Omit --logits-to-keep.", where,
                config.className);
  }
  return checkPositions(config, options, where);
}

class BuiltModel final : public ForwardSource {
 public:
  BuiltModel(const families::ModelConfig& config, const CaptureOptions& options, DType dtype)
      : m_config(config), m_options(options), m_dtype(dtype) {}
  void run(Recorder& recorder, const Progress& progress) override {
    runForward(recorder, m_config, m_options, m_dtype, progress);
  }

 private:
  const families::ModelConfig& m_config;
  const CaptureOptions& m_options;
  DType m_dtype;
};

Result<void> checkCacheOptions(const CaptureOptions& options) {
  const bool isStep = options.cacheUse == graph::CacheUse::Reads;
  if (options.loss || options.mask || options.tokenTypes)
    return fail(ErrorCode::BadUsage, "generation does not support a loss, a mask or token types; switch them off");
  if (isStep && options.sequence != 1)
    return fail(ErrorCode::BadUsage, "sequence length is {}: a decode step has one token", options.sequence);
  if (options.cachePositions >= options.sequence && options.cachePositions <= kMostPositions) return {};
  return fail(ErrorCode::BadUsage, "the cache has {} positions: expected a number from {} (the sequence) to {}",
              options.cachePositions, options.sequence, kMostPositions);
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
  if (options.cacheUse != graph::CacheUse::None) CLEAVE_TRY_VOID(checkCacheOptions(options));
  if (options.dtype && !graph::isFloatingPoint(*options.dtype)) {
    return fail(ErrorCode::BadUsage, "dtype is {}: expected a floating point type", graph::toText(*options.dtype));
  }
  return {};
}

Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const CaptureOptions& asked,
                                   const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY_VOID(checkOptions(asked));
  const std::string where = (folder.path / "config.json").string();
  CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(folder));
  CaptureOptions options = asked;
  if (options.cutsSequence)
    options.sequence = std::min(options.sequence, learnedPositions(config).value_or(kMostPositions));
  CLEAVE_TRY_VOID(checkOptionsFor(config, options, where));
  CapturedModel model;
  model.architecture = config.className;
  model.modelType = config.family.modelType;
  model.dtype = options.dtype.value_or(config.dtype);
  model.batch = options.batch;
  model.sequence = options.sequence;
  model.dropouts = families::dropoutText(config);
  BuiltModel source(config, options, model.dtype);
  return record(source, std::move(model), where, progress);
}

}  // namespace cleave::torch_capture
