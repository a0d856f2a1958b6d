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

/// Sets what `asked` leaves to the model.
spec::InputSpec settledFor(const families::ModelConfig& config, const spec::InputSpec& asked) {
  spec::InputSpec input = asked;
  const std::int64_t most = learnedPositions(config).value_or(spec::kMostPositions);
  input.batch = asked.batch.value_or(1);
  input.sequence = asked.sequence.value_or(std::min(spec::kDefaultSequence, most));
  input.dtype = asked.dtype.value_or(config.dtype);
  return input;
}

Result<void> checkPositions(const families::ModelConfig& config, const spec::InputSpec& input,
                            const std::string& where) {
  const std::int64_t rows = learnedPositions(config).value_or(spec::kMostPositions);
  if (input.cachePositions > rows) {
    return fail(ErrorCode::BadInput,
                "{}: the model has {} learned positions, but prompt and generated tokens need {}. Generate "
                "fewer tokens.",
                where, rows, input.cachePositions);
  }
  if (*input.sequence <= rows) return {};
  return fail(ErrorCode::BadInput,
              "{}: the model has {} learned positions, too few for a sequence of {}. Use --seq {}.", where, rows,
              *input.sequence, rows);
}

void runForward(Recorder& recorder, const families::ModelConfig& config, const spec::InputSpec& input,
                const Progress& progress) {
  const TensorType tokens{DType::Int64, {*input.batch, *input.sequence}};
  const bool isClassifier = std::holds_alternative<families::ClassifierHead>(config.head);
  models::ModelInputs inputs;
  inputs.inputIds = recorder.addInput("input_ids", tokens);
  if (input.mask) inputs.attentionMask = recorder.addInput("attention_mask", tokens);
  if (input.tokenTypes) inputs.tokenTypeIds = recorder.addInput("token_type_ids", tokens);
  if (input.loss)
    inputs.labels = recorder.addInput("labels", isClassifier ? TensorType{DType::Int64, {*input.batch}} : tokens);
  if (input.cacheUse == graph::CacheUse::Reads)
    inputs.cachePosition = recorder.addInput(std::string(graph::kCachePosition), {DType::Int64, {1}});
  const models::ModelOptions asked{bridge::toScalarType(*input.dtype), input.logitsToKeep, input.cacheUse,
                                   input.cachePositions, input.dropout};
  RecordingHost host(recorder, progress);
  const Recorder::Recording recording(recorder);
  const auto outputs = models::runModel(config, inputs, asked, host);
  recorder.addOutput("logits", outputs.logits);
  if (outputs.loss) recorder.addOutput("loss", *outputs.loss);
  for (const auto& [name, tensor] : outputs.present) recorder.addOutput(name, tensor);
}

/// These frequencies depend on the sequence length. Here that is the full length, but a model that generates token by
/// token uses the current length. So the keys in the cache would have other rotations.
Result<void> checkRopes(const families::ModelConfig& config, const spec::InputSpec& input, const std::string& where) {
  for (const families::RopeConfig& rope : config.ropes) {
    const bool isDynamic = rope.kind == families::RopeKind::Dynamic, isLong = rope.kind == families::RopeKind::LongRope;
    const std::int64_t limit = isLong ? rope.originalMaxPositions : config.family.positions.value;
    const bool isPromptBeyond = isLong && input.cacheUse == graph::CacheUse::Fills && *input.sequence > limit;
    const bool isStep = input.cacheUse == graph::CacheUse::Reads;  // only the prefill is checked
    if (!(isDynamic || isLong) || input.cachePositions <= limit || isPromptBeyond || (isLong && isStep)) continue;
    return fail(ErrorCode::BadInput,
                "{}: beyond {} positions the model rotates its keys differently, but prompt and generated tokens "
                "need {}. Use at most {}.",
                where, limit, input.cachePositions, limit);
  }
  return {};
}

Result<void> checkCache(const families::ModelConfig& config, const spec::InputSpec& input, const std::string& where) {
  if (input.cacheUse == graph::CacheUse::None) return {};
  if (!std::holds_alternative<families::CausalHead>(config.head)) {
    return fail(ErrorCode::BadInput, "{}: {} does not predict the next token, so it cannot generate.", where,
                config.className);
  }
  if (!config.family.isCausal) {
    return fail(ErrorCode::BadInput, "{}: in this model tokens attend to later tokens too, so it cannot generate.",
                where);
  }
  return checkRopes(config, input, where);
}

/// Checks for inputs that this model does not support.
Result<void> checkInputFor(const families::ModelConfig& config, const spec::InputSpec& input,
                           const std::string& where) {
  if (input.loss && !config.hasLoss) {
    return fail(ErrorCode::BadInput, "{}: Cleave does not support the loss of problem_type {}. Use --loss off.", where,
                quotedText(config.lossKind));
  }
  if (input.tokenTypes && config.family.embeddings.tokenTypes.empty()) {
    return fail(ErrorCode::BadInput, "{}: {} models have no token types. Omit token_type_ids.", where,
                config.family.modelType);
  }
  if (input.dropout) CLEAVE_TRY_VOID(families::checkDropouts(config, where));
  CLEAVE_TRY_VOID(checkCache(config, input, where));
  const bool isCausal = std::holds_alternative<families::CausalHead>(config.head);
  if (input.logitsToKeep != 0 && !isCausal) {
    return fail(ErrorCode::BadInput, "{}: {} computes the logits of all positions. Omit --logits-to-keep.", where,
                config.className);
  }
  return checkPositions(config, input, where);
}

class BuiltModel final : public ForwardSource {
 public:
  BuiltModel(const families::ModelConfig& config, const spec::InputSpec& input) : m_config(config), m_input(input) {}
  void run(Recorder& recorder, const Progress& progress) override { runForward(recorder, m_config, m_input, progress); }

 private:
  const families::ModelConfig& m_config;
  const spec::InputSpec& m_input;
};

}  // namespace

Result<CapturedModel> captureModel(const formats::ModelFolder& folder, const spec::InputSpec& asked,
                                   const Progress& progress) {
  progress.report("capture");
  CLEAVE_TRY_VOID(spec::check(asked));
  const std::string where = (folder.path / "config.json").string();
  CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(folder));
  const spec::InputSpec input = settledFor(config, asked);
  CLEAVE_TRY_VOID(checkInputFor(config, input, where));
  CapturedModel model;
  model.architecture = config.className;
  model.modelType = config.family.modelType;
  model.input = input;
  model.dtype = *input.dtype;
  model.batch = *input.batch;
  model.sequence = *input.sequence;
  model.dropouts = families::dropoutText(config);
  BuiltModel source(config, input);
  return record(source, std::move(model), where, progress);
}

}  // namespace cleave::torch_capture
