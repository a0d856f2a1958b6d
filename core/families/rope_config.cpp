#include "families/rope_config.h"

#include "base/quantities.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave::families {
namespace {

struct NamedRope {
  std::string_view key;
  RopeKind kind;
};
constexpr NamedRope kRopes[] = {
    {"default", RopeKind::Default}, {"linear", RopeKind::Linear}, {"dynamic", RopeKind::Dynamic},
    {"llama3", RopeKind::Llama3},   {"yarn", RopeKind::Yarn},     {"longrope", RopeKind::LongRope},
    {"su", RopeKind::LongRope},
};
constexpr std::string_view kFullLayers = "full_attention", kLocalLayers = "sliding_attention";
constexpr double kGptOssFactor = 32.0;
constexpr std::int64_t kGptOssTrained = 4096;

/// transformers' `get_mscale`.
double yarnScale(double factor, double scale) { return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0; }

/// Reads one object that describes a rotary embedding, with the names of its dialect.
class ScalingReader {
 public:
  ScalingReader(const ConfigReader& config, const JsonObject& scaling, const RopeContext& context, RopeConfig& rope)
      : m_config(config), m_scaling(scaling), m_context(context), m_rope(rope) {}

  Result<void> read() {
    const std::string_view kindKey = m_scaling.has("rope_type") || !m_scaling.has("type") ? "rope_type" : "type";
    CLEAVE_TRY(const std::string kind, m_scaling.text(kindKey, "default"));
    const auto* row = std::ranges::find(kRopes, kind, &NamedRope::key);
    if (row == std::end(kRopes)) return m_scaling.wrong(kindKey, oneOf(kRopes, &NamedRope::key));
    // Early configs of Phi-3 have LongRoPE's factors but the type yarn.
    const bool isLong = row->kind == RopeKind::Yarn && m_scaling.has("short_factor");
    m_rope.kind = isLong ? RopeKind::LongRope : row->kind;
    const bool needsPairs = m_rope.kind == RopeKind::Yarn || m_rope.kind == RopeKind::LongRope;
    if (needsPairs && m_rope.dim % 2 != 0) {
      return m_scaling.wrong(
          kindKey, fmt::format("another type, because the number of rotated features is odd ({})", m_rope.dim));
    }
    switch (m_rope.kind) {
      case RopeKind::Default: return {};
      case RopeKind::Llama3: return llama3();
      case RopeKind::Yarn: return yarn();
      case RopeKind::LongRope: return longRope();
      case RopeKind::Linear:
      case RopeKind::Dynamic: break;
    }
    CLEAVE_TRY(m_rope.factor, number(m_scaling, "factor", kFactors));
    if (m_rope.kind == RopeKind::Dynamic && m_rope.dim <= 2)
      return m_scaling.wrong(kindKey, "another type, because this one does not support heads of size 2");
    return {};
  }

 private:
  Result<void> llama3() {
    CLEAVE_TRY(m_rope.factor, number(m_scaling, "factor", kFactors));
    CLEAVE_TRY(m_rope.lowFrequencyFactor, number(m_scaling, "low_freq_factor", kPositiveNumbers));
    CLEAVE_TRY(m_rope.highFrequencyFactor, number(m_scaling, "high_freq_factor", kPositiveNumbers));
    if (m_rope.highFrequencyFactor <= m_rope.lowFrequencyFactor) {
      return m_scaling.wrong("high_freq_factor",
                             fmt::format("more than low_freq_factor ({})", m_rope.lowFrequencyFactor));
    }
    CLEAVE_TRY(m_rope.originalMaxPositions, m_scaling.integer("original_max_position_embeddings", kPositions));
    return {};
  }

  /// In the object, next to it (Phi-3), or else the model's current number of positions.
  Result<void> originalPositions() {
    constexpr std::string_view kKey = "original_max_position_embeddings";
    const JsonObject& place = m_scaling.has(kKey) ? m_scaling : m_config.fields();
    CLEAVE_TRY(m_rope.originalMaxPositions, place.integer(kKey, kPositions, m_context.maxPositions));
    return {};
  }
  double stretch() const {
    return static_cast<double>(m_context.maxPositions) / static_cast<double>(m_rope.originalMaxPositions);
  }

  Result<void> yarn() {
    CLEAVE_TRY_VOID(originalPositions());
    CLEAVE_TRY(m_rope.factor, number(m_scaling, "factor", kFactors, stretch()));
    CLEAVE_TRY(m_rope.betaFast, number(m_scaling, "beta_fast", kPositiveNumbers, 32.0));
    CLEAVE_TRY(m_rope.betaSlow, number(m_scaling, "beta_slow", kPositiveNumbers, 1.0));
    if (m_rope.betaFast < m_rope.betaSlow)
      return m_scaling.wrong("beta_fast", fmt::format("at least beta_slow ({})", m_rope.betaSlow));
    CLEAVE_TRY(const double scale, number(m_scaling, "mscale", {0, 1e6}, 0.0));
    CLEAVE_TRY(const double allDimScale, number(m_scaling, "mscale_all_dim", {0, 1e6}, 0.0));
    const bool hasScales = scale != 0 && allDimScale != 0;
    const double byDefault = hasScales ? yarnScale(m_rope.factor, scale) / yarnScale(m_rope.factor, allDimScale)
                                       : yarnScale(m_rope.factor, 1);
    CLEAVE_TRY(m_rope.attentionFactor, number(m_scaling, "attention_factor", kPositiveNumbers, byDefault));
    if (allDimScale != 0) m_rope.scoreFactor = std::pow(yarnScale(m_rope.factor, allDimScale), 2);
    CLEAVE_TRY(m_rope.truncate, m_scaling.flag("truncate", true));
    return {};
  }

  /// transformers' `_compute_longrope_parameters`.
  Result<void> longRope() {
    CLEAVE_TRY_VOID(originalPositions());
    CLEAVE_TRY(m_rope.factor, number(m_scaling, "factor", kPositiveNumbers, stretch()));
    const double trained = static_cast<double>(m_rope.originalMaxPositions);
    const double byDefault = m_rope.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(m_rope.factor) / std::log(trained));
    CLEAVE_TRY(m_rope.attentionFactor, number(m_scaling, "attention_factor", kPositiveNumbers, byDefault));
    CLEAVE_TRY(m_rope.shortFactors, factors("short_factor"));
    CLEAVE_TRY(m_rope.longFactors, factors("long_factor"));
    return {};
  }

  Result<std::vector<double>> factors(std::string_view key) const {
    CLEAVE_TRY(const JsonArray list, m_scaling.array(key));
    if (static_cast<std::int64_t>(list.size()) != m_rope.dim / 2) {
      return fail(ErrorCode::BadInput, "{} has {}: expected {}, one for each pair of rotated features.",
                  m_scaling.nameOf(key), counted(static_cast<std::int64_t>(list.size()), "number"), m_rope.dim / 2);
    }
    std::vector<double> values;
    for (std::size_t i = 0; i < list.size(); ++i) {
      CLEAVE_TRY(const double value, list.real(i));
      if (!(value >= kPositiveNumbers.min && value <= kPositiveNumbers.max))
        return m_scaling.wrong(key, fmt::format("numbers from {} to {}", kPositiveNumbers.min, kPositiveNumbers.max));
      values.push_back(value);
    }
    return values;
  }

  const ConfigReader& m_config;
  const JsonObject& m_scaling;
  const RopeContext& m_context;
  RopeConfig& m_rope;
};

/// Number of rotated features of a head; 0 if the fraction does not give a valid number.
std::int64_t rotatedPart(const Rope& rope, double fraction, std::int64_t headDim) {
  if (!(fraction > 0 && fraction <= 1)) return 0;
  const auto dim = static_cast<std::int64_t>(static_cast<double>(headDim) * fraction);
  if (dim % 2 == 0) return dim;
  return rope.roundsUpToEven && dim < headDim ? dim : 0;
}

tl::unexpected<Error> wrongPart(const Rope& rope, const JsonObject& place, std::string_view key, std::int64_t headDim) {
  if (rope.roundsUpToEven) {
    return place.wrong(
        key, fmt::format("a fraction that gives 1 to {} of the {} features of a head", headDim - headDim % 2, headDim));
  }
  return place.wrong(key, fmt::format("a fraction that gives an even number of the {} features of a head ({})", headDim,
                                      "transformers does not support an odd number in this family"));
}

/// Without a valid rotated part, because the object of the scaling may still provide one.
RopeConfig plainRope(const Rope& rope, const RopeContext& context) {
  RopeConfig made;
  made.theta = rope.theta.value;
  made.dim = rotatedPart(rope, rope.fraction.value, context.headDim);
  return made;
}

Result<void> checkPart(const ConfigReader& config, const Rope& rope, const RopeConfig& made,
                       const RopeContext& context) {
  if (made.dim > 0) return {};
  const bool hasAlias = !rope.fraction.alias.empty() && config.fields().has(rope.fraction.alias);
  return wrongPart(rope, config.fields(), hasAlias ? rope.fraction.alias : rope.fraction.name, context.headDim);
}

/// transformers 5's object also contains the base and the rotated fraction.
Result<RopeConfig> scaledRope(const ConfigReader& config, const Rope& asked, const JsonObject& scaling, RopeConfig rope,
                              const RopeContext& context) {
  CLEAVE_TRY(rope.theta, number(scaling, "rope_theta", kRopeBases, rope.theta));
  const std::string_view fraction = context.fractionKey;
  if (!fraction.empty() && scaling.has(fraction)) {
    CLEAVE_TRY(const double part, scaling.number(fraction));
    rope.dim = rotatedPart(asked, part, context.headDim);
    if (rope.dim == 0) return wrongPart(asked, scaling, fraction, context.headDim);
  }
  CLEAVE_TRY_VOID(checkPart(config, asked, rope, context));
  CLEAVE_TRY_VOID(ScalingReader(config, scaling, context, rope).read());
  return rope;
}

/// The defaults of GPT-OSS's configuration class.
void assumeYarn(RopeConfig& rope) {
  rope.kind = RopeKind::Yarn;
  rope.factor = kGptOssFactor;
  rope.originalMaxPositions = kGptOssTrained;
  rope.attentionFactor = yarnScale(kGptOssFactor, 1);
  rope.truncate = false;
}

}  // namespace

Result<std::vector<RopeConfig>> readRopes(const ConfigReader& config, Rope rope, const RopeContext& context) {
  const JsonObject& fields = config.fields();
  CLEAVE_TRY_VOID(config.read(rope.theta, kRopeBases));
  CLEAVE_TRY_VOID(config.read(rope.fraction, {0, 1}));
  const bool hasLocal = rope.localTheta.value != 0;
  CLEAVE_TRY_VOID(config.read(rope.localTheta, kRopeBases));
  RopeConfig whole = plainRope(rope, context);
  RopeConfig local = whole;
  local.theta = rope.localTheta.value;
  std::string_view key;
  for (const std::string_view name : {"rope_parameters", "rope_scaling"}) {
    if (key.empty() && fields.has(name)) key = name;
  }
  if (key.empty()) {
    if (rope.isYarnByDefault) assumeYarn(whole);
  } else {
    CLEAVE_TRY(const JsonObject scaling, fields.object(key));
    const bool isByLayerKind = hasLocal && (scaling.has(kFullLayers) || scaling.has(kLocalLayers));
    if (!isByLayerKind) {
      CLEAVE_TRY(whole, scaledRope(config, rope, scaling, whole, context));
    }
    for (const auto& [kind, made] : {std::pair(kFullLayers, &whole), std::pair(kLocalLayers, &local)}) {
      if (!isByLayerKind || !scaling.has(kind)) continue;
      CLEAVE_TRY(const JsonObject ofKind, scaling.object(kind));
      CLEAVE_TRY(*made, scaledRope(config, rope, ofKind, *made, context));
    }
  }
  CLEAVE_TRY_VOID(checkPart(config, rope, whole, context));
  std::vector<RopeConfig> ropes{std::move(whole)};
  if (hasLocal) ropes.push_back(std::move(local));
  return ropes;
}

}  // namespace cleave::families
