#include "libtorch/models/decoder_config.h"

#include "base/json.h"
#include "base/quantities.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave::models {
namespace {

using nlohmann::json;

struct NumberRange {
  double min, max;
};

// Wide enough for every published model, and so narrow that no product of three of them wraps 64 bits.
constexpr IntegerRange kSizes{1, 1 << 20};
constexpr IntegerRange kVocabSizes{1, 1 << 24};
constexpr IntegerRange kLayerCounts{1, 4096};
constexpr IntegerRange kPositions{1, std::int64_t{1} << 31};
constexpr NumberRange kFactors{1, 1e6};
constexpr NumberRange kPositiveNumbers{1e-6, 1e6};
constexpr NumberRange kRopeBases{1.000001, 1e15};

struct NamedActivation {
  std::string_view key;
  Activation activation;
  std::string_view className;
};
// transformers' ACT2FN: several names mean one formula.
constexpr NamedActivation kActivations[] = {
    {"silu", Activation::Silu, "SiLU"},
    {"swish", Activation::Silu, "SiLU"},
    {"gelu", Activation::Gelu, "GELUActivation"},
    {"gelu_python", Activation::Gelu, "GELUActivation"},
    {"gelu_new", Activation::GeluTanh, "NewGELUActivation"},
    {"gelu_fast", Activation::GeluTanh, "FastGELUActivation"},
    {"gelu_pytorch_tanh", Activation::GeluTanh, "GELUTanh"},
    {"quick_gelu", Activation::QuickGelu, "QuickGELUActivation"},
    {"relu", Activation::Relu, "ReLU"},
};

struct NamedRope {
  std::string_view key;
  RopeKind kind;
};
constexpr NamedRope kRopes[] = {
    {"default", RopeKind::Default}, {"linear", RopeKind::Linear}, {"dynamic", RopeKind::Dynamic},
    {"llama3", RopeKind::Llama3},   {"yarn", RopeKind::Yarn},
};

/// "one of a, b, c": the values of a field in all rows of a table.
template <class Rows, class Field>
std::string oneOf(const Rows& rows, Field field) {
  std::string text;
  for (const auto& row : rows) text += (text.empty() ? "one of " : ", ") + std::string(row.*field);
  return text;
}

Result<double> number(const JsonObject& object, std::string_view key, NumberRange range,
                      std::optional<double> fallback = {}) {
  CLEAVE_TRY(const double value, object.number(key, fallback));
  if (value >= range.min && value <= range.max) return value;
  return object.wrong(key, fmt::format("a number from {} to {}", range.min, range.max));
}

/// Present, but null: where transformers tells null from absent.
bool isExplicitNull(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_null();
}

class Reader {
 public:
  Reader(const json& value, const JsonObject& fields) : m_value(value), m_fields(fields) {}

  Result<DecoderConfig> read() {
    CLEAVE_TRY(m_config.architecture, architecture());
    if (m_fields.has("quantization_config")) {
      return fail(ErrorCode::BadInput,
                  "{} is set, and Cleave reads plain weights only: save the model dequantized (model.dequantize() in "
                  "transformers) "
                  "and open that folder.",
                  m_fields.nameOf("quantization_config"));
    }
    const Architecture& row = *m_config.architecture;
    CLEAVE_TRY(m_config.dtype, dtype());
    CLEAVE_TRY(m_config.vocabSize, m_fields.integer("vocab_size", kVocabSizes));
    CLEAVE_TRY(m_config.hiddenSize, m_fields.integer("hidden_size", kSizes));
    CLEAVE_TRY(m_config.intermediateSize, m_fields.integer("intermediate_size", kVocabSizes));
    CLEAVE_TRY(m_config.layers, m_fields.integer("num_hidden_layers", kLayerCounts));
    CLEAVE_TRY_VOID(heads());
    CLEAVE_TRY(m_config.maxPositions, m_fields.integer("max_position_embeddings", kPositions, row.defaultMaxPositions));
    CLEAVE_TRY(m_config.normEps, number(m_fields, "rms_norm_eps", {0, 1}, row.defaultNormEps));
    CLEAVE_TRY_VOID(activation());
    CLEAVE_TRY(m_config.isTied, m_fields.flag("tie_word_embeddings", row.isTiedByDefault));
    CLEAVE_TRY(m_config.hasQkvBias, bias(row.qkvBias));
    CLEAVE_TRY(m_config.hasOutputBias, bias(row.outputBias));
    CLEAVE_TRY(m_config.hasMlpBias, bias(row.mlpBias));
    CLEAVE_TRY_VOID(windows());
    CLEAVE_TRY_VOID(rope());
    return std::move(m_config);
  }

 private:
  Result<const Architecture*> architecture() const {
    CLEAVE_TRY(const std::string modelType, m_fields.text("model_type", ""));
    std::vector<std::string> names;
    if (m_fields.has("architectures")) {
      CLEAVE_TRY(names, m_fields.texts("architectures"));
    }
    if (modelType.empty() && names.empty()) {
      return fail(ErrorCode::BadInput,
                  "{} has neither model_type nor architectures: it is not the config of a transformers model.",
                  m_fields.where());
    }
    const auto known =
        std::ranges::find_if(names, [](const std::string& name) { return findByClassName(name) != nullptr; });
    const std::string name = names.empty() ? "" : known == names.end() ? names.front() : *known;
    const Architecture* row = modelType.empty() ? findByClassName(name) : findByModelType(modelType);
    if (row && (name.empty() || row->className == name)) return row;
    return unknownArchitecture(name, modelType);
  }

  tl::unexpected<Error> unknownArchitecture(const std::string& name, const std::string& modelType) const {
    const Architecture* byName = findByClassName(name);
    const Architecture* byType = findByModelType(modelType);
    if (byName && byType) {
      return fail(ErrorCode::BadInput,
                  "{}: architectures says {}, but model_type says {}, which belongs to {}: one of the two is wrong.",
                  m_fields.where(), quotedText(name), quotedText(modelType), byType->className);
    }
    std::string what = quotedText(name.empty() ? modelType : name);
    if (!name.empty() && !modelType.empty()) what += " (model_type " + quotedText(modelType) + ")";
    std::string known;
    for (const Architecture& row : architectures())
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", row.className, row.modelType);
    return fail(ErrorCode::BadInput,
                "{}: unknown architecture {}; Cleave opens {}. A model that computes what one of these does opens "
                "under its name: write that to "
                "architectures, and the word in brackets to model_type.",
                m_fields.where(), what, known);
  }

  Result<graph::DType> dtype() const {
    const std::string_view key = m_fields.has("dtype") ? "dtype" : "torch_dtype";
    CLEAVE_TRY(const std::string text, m_fields.text(key, "float32"));
    using graph::DType;
    const auto dtype = graph::parseDType(text);
    if (dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16 || dtype == DType::BFloat16)
      return *dtype;
    return m_fields.wrong(key, "float32, float16, bfloat16 or float64");
  }

  Result<bool> bias(BiasRule rule) const {
    switch (rule) {
      case BiasRule::Never: return false;
      case BiasRule::Always: return true;
      case BiasRule::AttentionBiasKey: return m_fields.flag("attention_bias", false);
      case BiasRule::MlpBiasKey: return m_fields.flag("mlp_bias", false);
    }
    return false;
  }

  Result<void> activation() {
    CLEAVE_TRY(const std::string key,
               m_fields.text("hidden_act", std::string(m_config.architecture->defaultActivation)));
    const auto* row = std::ranges::find(kActivations, key, &NamedActivation::key);
    if (row == std::end(kActivations)) return m_fields.wrong("hidden_act", oneOf(kActivations, &NamedActivation::key));
    m_config.activation = row->activation;
    m_config.activationClass = row->className;
    return {};
  }

  Result<void> heads() {
    CLEAVE_TRY(m_config.heads, m_fields.integer("num_attention_heads", kSizes));
    // transformers: absent takes the architecture's default, an explicit null means one per query head.
    const std::int64_t byDefault = m_config.architecture->defaultKeyValueHeads;
    const bool isPerHead = byDefault == 0 || isExplicitNull(m_value, "num_key_value_heads");
    CLEAVE_TRY(m_config.keyValueHeads,
               m_fields.integer("num_key_value_heads", kSizes, isPerHead ? m_config.heads : byDefault));
    if (m_config.heads % m_config.keyValueHeads != 0) {
      return m_fields.wrong("num_attention_heads",
                            fmt::format("a multiple of num_key_value_heads ({})", m_config.keyValueHeads));
    }
    if (!m_fields.has("head_dim") && m_config.hiddenSize % m_config.heads != 0) {
      return m_fields.wrong(
          "hidden_size",
          fmt::format("a multiple of num_attention_heads ({}) where head_dim is not given", m_config.heads));
    }
    CLEAVE_TRY(m_config.headDim, m_fields.integer("head_dim", kSizes, m_config.hiddenSize / m_config.heads));
    if (m_config.headDim % 2 != 0) {
      constexpr std::string_view kWhy = "as rotary embeddings turn pairs of features";
      if (m_fields.has("head_dim")) return m_fields.wrong("head_dim", fmt::format("even, {}", kWhy));
      return m_fields.wrong("hidden_size",
                            fmt::format("an even multiple of num_attention_heads ({}) where head_dim is not given, {}",
                                        m_config.heads, kWhy));
    }
    return {};
  }

  /// For each layer whether `layer_types` gives it a window; empty when the key is absent.
  Result<std::vector<bool>> slidingLayers() const {
    std::vector<bool> isSliding;
    if (!m_fields.has("layer_types")) return isSliding;
    CLEAVE_TRY(const std::vector<std::string> types, m_fields.texts("layer_types"));
    for (const std::string& type : types) {
      if (type != "sliding_attention" && type != "full_attention") {
        return fail(ErrorCode::BadInput, "{} holds {}: expected full_attention or sliding_attention for each layer.",
                    m_fields.nameOf("layer_types"), quotedText(type));
      }
      isSliding.push_back(type == "sliding_attention");
    }
    if (static_cast<std::int64_t>(types.size()) != m_config.layers) {
      return fail(ErrorCode::BadInput, "{} has {}: expected {}, one per layer (num_hidden_layers).",
                  m_fields.nameOf("layer_types"), counted(std::ssize(types), "entry", "entries"), m_config.layers);
    }
    return isSliding;
  }

  Result<void> windows() {
    m_config.windows.assign(static_cast<std::size_t>(m_config.layers), 0);
    const Architecture& row = *m_config.architecture;
    if (row.window == WindowRule::Never) return {};
    std::int64_t firstSliding = 0;
    if (row.window == WindowRule::AboveMaxWindowLayers) {
      CLEAVE_TRY(const bool isUsed, m_fields.flag("use_sliding_window", false));
      if (!isUsed) return {};
      CLEAVE_TRY(firstSliding, m_fields.integer("max_window_layers", {0, 1 << 20}, row.defaultMaxWindowLayers));
    }
    // transformers: absent takes the architecture's default, an explicit null means no window.
    const std::int64_t byDefault = isExplicitNull(m_value, "sliding_window") ? 0 : row.defaultWindow;
    CLEAVE_TRY(const std::int64_t window, m_fields.integer("sliding_window", kPositions, byDefault));
    CLEAVE_TRY(const std::vector<bool> isSliding, slidingLayers());
    for (std::size_t layer = 0; layer < m_config.windows.size(); ++layer) {
      const bool slides = isSliding.empty() ? static_cast<std::int64_t>(layer) >= firstSliding : isSliding[layer];
      if (slides) m_config.windows[layer] = window;
    }
    return {};
  }

  /// Reads the object that describes scaling, under its name in this dialect; transformers 5's also carries the base.
  Result<void> rope() {
    CLEAVE_TRY(m_config.rope.theta,
               number(m_fields, "rope_theta", kRopeBases, m_config.architecture->defaultRopeTheta));
    CLEAVE_TRY_VOID(requireWholeRotation(m_fields));
    for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
      if (!m_fields.has(key)) continue;
      CLEAVE_TRY(const JsonObject scaling, m_fields.object(key));
      return ropeScaling(scaling);
    }
    return {};
  }

  Result<void> requireWholeRotation(const JsonObject& place) const {
    CLEAVE_TRY(const double part, place.number("partial_rotary_factor", 1.0));
    if (part == 1.0) return {};
    return place.wrong("partial_rotary_factor",
                       fmt::format("1, as {} models rotate whole heads", m_config.architecture->modelType));
  }

  Result<void> ropeScaling(const JsonObject& scaling) {
    RopeConfig& rope = m_config.rope;
    CLEAVE_TRY(rope.theta, number(scaling, "rope_theta", kRopeBases, rope.theta));
    CLEAVE_TRY_VOID(requireWholeRotation(scaling));
    const std::string_view kindKey = scaling.has("rope_type") || !scaling.has("type") ? "rope_type" : "type";
    CLEAVE_TRY(const std::string kind, scaling.text(kindKey, "default"));
    const auto* row = std::ranges::find(kRopes, kind, &NamedRope::key);
    if (row == std::end(kRopes)) return scaling.wrong(kindKey, oneOf(kRopes, &NamedRope::key));
    rope.kind = row->kind;
    switch (rope.kind) {
      case RopeKind::Default: return {};
      case RopeKind::Llama3: return llama3(scaling);
      case RopeKind::Yarn: return yarn(scaling);
      case RopeKind::Linear:
      case RopeKind::Dynamic: break;
    }
    CLEAVE_TRY(rope.factor, number(scaling, "factor", kFactors));
    if (rope.kind == RopeKind::Dynamic && m_config.headDim <= 2) {
      return scaling.wrong(kindKey, "another kind for heads of size 2, whose base cannot be stretched");
    }
    return {};
  }

  Result<void> llama3(const JsonObject& scaling) {
    RopeConfig& rope = m_config.rope;
    CLEAVE_TRY(rope.factor, number(scaling, "factor", kFactors));
    CLEAVE_TRY(rope.lowFrequencyFactor, number(scaling, "low_freq_factor", kPositiveNumbers));
    CLEAVE_TRY(rope.highFrequencyFactor, number(scaling, "high_freq_factor", kPositiveNumbers));
    if (rope.highFrequencyFactor <= rope.lowFrequencyFactor) {
      return scaling.wrong("high_freq_factor", fmt::format("more than low_freq_factor ({})", rope.lowFrequencyFactor));
    }
    CLEAVE_TRY(rope.originalMaxPositions, scaling.integer("original_max_position_embeddings", kPositions));
    return {};
  }

  /// transformers' `get_mscale`.
  static double yarnScale(double factor, double scale) {
    return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
  }

  Result<void> yarn(const JsonObject& scaling) {
    RopeConfig& rope = m_config.rope;
    CLEAVE_TRY(rope.originalMaxPositions,
               scaling.integer("original_max_position_embeddings", kPositions, m_config.maxPositions));
    const double ratio = static_cast<double>(m_config.maxPositions) / static_cast<double>(rope.originalMaxPositions);
    CLEAVE_TRY(rope.factor, number(scaling, "factor", kFactors, ratio));
    CLEAVE_TRY(rope.betaFast, number(scaling, "beta_fast", kPositiveNumbers, 32.0));
    CLEAVE_TRY(rope.betaSlow, number(scaling, "beta_slow", kPositiveNumbers, 1.0));
    if (rope.betaFast < rope.betaSlow)
      return scaling.wrong("beta_fast", fmt::format("at least beta_slow ({})", rope.betaSlow));
    CLEAVE_TRY(const double scale, number(scaling, "mscale", {0, 1e6}, 0.0));
    CLEAVE_TRY(const double allDimScale, number(scaling, "mscale_all_dim", {0, 1e6}, 0.0));
    const bool hasScales = scale != 0 && allDimScale != 0;
    const double byDefault =
        hasScales ? yarnScale(rope.factor, scale) / yarnScale(rope.factor, allDimScale) : yarnScale(rope.factor, 1);
    CLEAVE_TRY(rope.attentionFactor, number(scaling, "attention_factor", kPositiveNumbers, byDefault));
    CLEAVE_TRY(rope.truncate, scaling.flag("truncate", true));
    return {};
  }

  const json& m_value;
  const JsonObject& m_fields;
  DecoderConfig m_config;
};

}  // namespace

Result<DecoderConfig> readDecoderConfig(const json& value, const std::string& where) {
  CLEAVE_TRY(const JsonObject fields, JsonObject::of(value, where));
  return Reader(value, fields).read();
}

}  // namespace cleave::models
