#include "families/model_config.h"
#include "families/family_table.h"

#include "base/quantities.h"
#include "families/near_names.h"
#include "families/rope_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace cleave::families {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(const JsonObject& fields) : m_fields(fields), m_keys(fields) {}

  Result<ModelConfig> read() {
    CLEAVE_TRY_VOID(chooseFamily());
    CLEAVE_TRY(m_config.quantization, readQuantization(m_fields));
    CLEAVE_TRY_VOID(refuseKeys());
    Family& family = m_config.family;
    if (family.choose) {
      CLEAVE_TRY_VOID(family.choose(family, m_keys));
    }
    CLEAVE_TRY(m_config.dtype, dtype());
    CLEAVE_TRY_VOID(m_keys.read(family.vocab, kVocabSizes));
    CLEAVE_TRY_VOID(m_keys.read(family.hidden, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(family.layerCount, kLayerCounts));
    CLEAVE_TRY_VOID(m_keys.read(family.positions, kPositions));
    CLEAVE_TRY_VOID(m_keys.read(family.isTied));
    CLEAVE_TRY_VOID(m_keys.read(family.isBidirectional));
    family.isCausal = family.isCausal && !family.isBidirectional.value;
    CLEAVE_TRY_VOID(padding());
    CLEAVE_TRY_VOID(std::visit([&](auto& part) { return readPart(part); }, family.norm));
    CLEAVE_TRY_VOID(readPart(family.embeddings));
    CLEAVE_TRY_VOID(std::visit([&](auto& part) { return readPart(part); }, family.attention));
    CLEAVE_TRY_VOID(readPart(family.mlp));
    CLEAVE_TRY_VOID(std::visit([&](auto& part) { return readPart(part); }, family.block));
    CLEAVE_TRY_VOID(readPart(family.dropouts));
    CLEAVE_TRY_VOID(std::visit([&](auto& part) { return readPart(part); }, m_config.head));
    CLEAVE_TRY_VOID(layers());
    return std::move(m_config);
  }

 private:
  std::int64_t hidden() const { return m_config.family.hidden.value; }

  Result<void> chooseFamily() {
    CLEAVE_TRY(const std::string modelType, m_fields.text("model_type", ""));
    std::vector<std::string> names;
    if (m_fields.has("architectures")) {
      CLEAVE_TRY(names, m_fields.texts("architectures"));
    }
    if (modelType.empty() && names.empty()) {
      return fail(ErrorCode::BadInput,
                  "{} has no model_type and no architectures, so it is not the config of a transformers model.",
                  m_fields.where());
    }
    const auto known = std::ranges::find_if(names, [](const std::string& name) { return findClass(name).family; });
    const std::string name = names.empty() ? "" : known == names.end() ? names.front() : *known;
    const KnownClass named = findClass(name);
    const Family* family = modelType.empty() ? named.family : findFamily(modelType);
    if (!family || (!name.empty() && named.family != family)) return unknownArchitecture(name, modelType);
    const HeadClass& head = named.head ? *named.head : family->heads.front();
    m_config.family = *family;
    m_config.className = head.className;
    m_config.head = head.head;
    return {};
  }

  tl::unexpected<Error> unknownArchitecture(const std::string& name, const std::string& modelType) const {
    const Family* byName = findClass(name).family;
    const Family* byType = findFamily(modelType);
    if (byName && byType) {
      return fail(ErrorCode::BadInput,
                  "{}: architectures is {}, but model_type is {}, which belongs to {}. Correct one of the two.",
                  m_fields.where(), quotedText(name), quotedText(modelType), byType->heads.front().className);
    }
    std::string what = quotedText(name.empty() ? modelType : name);
    if (!name.empty() && !modelType.empty()) what += " (model_type " + quotedText(modelType) + ")";
    std::string near;
    for (const Family* family : nearFamilies(modelType, name))
      near += fmt::format("{}{} ({})", near.empty() ? "; similar: " : ", ", family->heads.front().className,
                          family->modelType);
    return fail(
        ErrorCode::BadInput,
        "{}: unknown architecture {}{}. Set architectures and model_type to an equivalent one (see cleave-cli "
        "info --families), or open an exported program: "
        "torch.export.save(torch.export.export(model, args), \"model.pt2\"). Add use_cache=False to its arguments "
        "if the model has a cache.",
        m_fields.where(), what, near);
  }

  Result<void> refuseKeys() const {
    for (const RefusedKey& key : m_config.family.refused) {
      CLEAVE_TRY(const bool value, m_fields.flag(key.name, key.only));
      if (value != key.only) {
        return m_fields.wrong(key.name, fmt::format("{}, the only value that Cleave supports for {} models",
                                                    key.only ? "true" : "false", m_config.family.modelType));
      }
    }
    return {};
  }

  Result<graph::DType> dtype() const {
    const std::string_view key = m_fields.has("dtype") ? "dtype" : "torch_dtype";
    if (m_config.quantization && !m_fields.has(key)) return m_config.quantization->dtype;
    CLEAVE_TRY(const std::string text, m_fields.text(key, "float32"));
    using graph::DType;
    const auto dtype = graph::parseDType(text);
    if (dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16 || dtype == DType::BFloat16)
      return *dtype;
    return m_fields.wrong(key, "float32, float16, bfloat16 or float64");
  }

  /// Ids outside the vocabulary have no row. Old configs use -1 for "no padding token".
  Result<void> padding() {
    const bool isNone = m_keys.isExplicitNull("pad_token_id");
    CLEAVE_TRY(const std::int64_t id, m_fields.integer("pad_token_id", {}, isNone ? -1 : m_config.family.padTokenId));
    if (id >= 0 && id < m_config.family.vocab.value) m_config.padTokenId = id;
    const auto* learned = std::get_if<LearnedPositions>(&m_config.family.position);
    if (!learned || learned->from != PositionFrom::PaddingId || m_config.padTokenId >= 0) return {};
    return m_fields.wrong("pad_token_id", fmt::format("an id below vocab_size ({}), because positions start after it",
                                                      m_config.family.vocab.value));
  }

  Result<void> readPart(RmsNorm& norm) { return m_keys.read(norm.eps, {0, 1}); }
  Result<void> readPart(CenteredNorm& norm) { return m_keys.read(norm.eps, {0, 1}); }
  Result<void> readPart(LayerNorm& norm) {
    CLEAVE_TRY_VOID(m_keys.read(norm.eps, {0, 1}));
    return m_keys.read(norm.isAffine);
  }

  Result<void> readPart(Embeddings& embeddings) {
    CLEAVE_TRY_VOID(m_keys.read(embeddings.multiplier, kAnyNumbers));
    CLEAVE_TRY_VOID(m_keys.readOrNone(embeddings.width, kSizes));
    if (embeddings.width.value == 0) embeddings.width.value = hidden();
    return m_keys.read(embeddings.typeCount, kSizes);
  }

  Result<void> readPart(SelfAttention& attention) {
    CLEAVE_TRY_VOID(m_keys.read(attention.qkvBias));
    CLEAVE_TRY_VOID(m_keys.read(attention.outputBias));
    CLEAVE_TRY_VOID(m_keys.read(attention.heads, kSizes));
    CLEAVE_TRY_VOID(readKeyValueHeads(attention));
    CLEAVE_TRY_VOID(readHeadDim(attention));
    CLEAVE_TRY_VOID(m_keys.readOrNone(attention.softCap, kPositiveNumbers));
    CLEAVE_TRY_VOID(std::visit([&](auto& part) { return readPart(part); }, attention.scale));
    if (auto* norm = std::get_if<HeadNorm>(&attention.queryKeyNorm)) {
      CLEAVE_TRY_VOID(m_keys.read(norm->isUsed));
      if (!norm->isUsed.value) attention.queryKeyNorm = NoHeadNorm{};
    }
    return {};
  }

  /// Absent: the family's default. Null: one per query head.
  Result<void> readKeyValueHeads(SelfAttention& attention) {
    IntegerKey& heads = attention.keyValueHeads;
    CLEAVE_TRY_VOID(m_keys.read(heads, kSizes));
    if (heads.value == 0) heads.value = attention.heads.value;
    if (attention.heads.value % heads.value == 0) return {};
    return m_fields.wrong(
        attention.heads.name,
        fmt::format("a multiple of {} ({})", heads.name.empty() ? "key/value heads" : heads.name, heads.value));
  }

  Result<void> readHeadDim(SelfAttention& attention) {
    CLEAVE_TRY_VOID(m_keys.read(attention.headDim, kSizes));
    if (attention.headDim.value != 0) return {};
    const std::int64_t heads = attention.heads.value;
    if (hidden() % heads != 0) {
      const std::string where = attention.headDim.name.empty() ? "" : " if head_dim is absent";
      return m_fields.wrong(m_config.family.hidden.name,
                            fmt::format("a multiple of {} ({}){}", attention.heads.name, heads, where));
    }
    attention.headDim.value = hidden() / heads;
    return {};
  }

  Result<void> readPart(HeadSizeScale& scale) {
    CLEAVE_TRY_VOID(m_keys.read(scale.isUsed));
    return m_keys.read(scale.isByLayer);
  }
  Result<void> readPart(InverseRootScale& scale) { return m_keys.read(scale.number, kPositiveNumbers); }
  Result<void> readPart(MultiplierScale& scale) { return m_keys.read(scale.number, kAnyNumbers); }
  Result<void> readPart(QueryScale& /*scale*/) { return {}; }

  Result<void> readPart(LatentAttention& attention) {
    CLEAVE_TRY_VOID(m_keys.read(attention.heads, kSizes));
    CLEAVE_TRY_VOID(m_keys.readOrNone(attention.queryRank, kSizes));
    for (IntegerKey* size : {&attention.keyValueRank, &attention.plainDim, &attention.rotatedDim, &attention.valueDim})
      CLEAVE_TRY_VOID(m_keys.read(*size, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(attention.hasBias));
    return m_keys.read(attention.isInterleaved);
  }

  Result<void> readPart(Mlp& mlp) {
    CLEAVE_TRY_VOID(m_keys.read(mlp.size, kVocabSizes));
    if (mlp.size.value == 0) mlp.size.value = 4 * hidden();
    CLEAVE_TRY_VOID(m_keys.read(mlp.hasBias));
    return m_keys.read(mlp.activation);
  }

  Result<void> readPart(PreNorm& block) {
    CLEAVE_TRY_VOID(m_keys.read(block.residualMultiplier, kAnyNumbers));
    return m_keys.read(block.isResidualNormed);
  }
  template <class Plain>
  Result<void> readPart(Plain& /*block*/) {
    return {};
  }

  Result<void> readPart(Dropouts& dropouts) {
    for (NumberKey* key : {&dropouts.embeddings.probability, &dropouts.attention, &dropouts.attentionOutput.probability,
                           &dropouts.mlpOutput.probability, &dropouts.sum.probability, &dropouts.layer})
      CLEAVE_TRY_VOID(readProbability(*key));
    return {};
  }

  Result<void> readProbability(NumberKey& key) {
    using Limits = std::numeric_limits<double>;
    CLEAVE_TRY_VOID(m_keys.read(key, {Limits::lowest(), Limits::max()}));
    if (key.value >= 0 && key.value < 1) return {};
    return m_fields.wrong(key.name, "a probability of at least 0 and less than 1");
  }

  Result<void> readPart(CausalHead& head) {
    CLEAVE_TRY_VOID(m_keys.read(head.hasBias));
    CLEAVE_TRY_VOID(m_keys.read(head.multiplier, kAnyNumbers));
    CLEAVE_TRY_VOID(m_keys.read(head.divisor, kPositiveNumbers));
    return m_keys.readOrNone(head.softCap, kPositiveNumbers);
  }
  /// transformers stores the names of the labels, not their number.
  Result<void> readPart(ClassifierHead& head) {
    if (!m_fields.has(head.dropoutProbability.name))
      head.dropoutProbability = m_config.family.dropouts.embeddings.probability;
    CLEAVE_TRY_VOID(readProbability(head.dropoutProbability));
    CLEAVE_TRY_VOID(m_keys.read(head.labels, kSizes));
    if (m_fields.has("id2label")) {
      CLEAVE_TRY(const JsonObject labels, m_fields.object("id2label"));
      head.labels.value = static_cast<std::int64_t>(labels.json().size());
      if (head.labels.value == 0) return m_fields.wrong("id2label", "an object with a name for each label");
    }
    constexpr std::string_view kSingleLabel = "single_label_classification";
    const std::string_view byDefault = head.labels.value == 1 ? "regression" : kSingleLabel;
    CLEAVE_TRY(m_config.lossKind, m_fields.text("problem_type", std::string(byDefault)));
    m_config.hasLoss = m_config.lossKind == kSingleLabel;
    return {};
  }

  Result<void> layers() {
    m_config.layers.resize(static_cast<std::size_t>(m_config.family.layerCount.value));
    CLEAVE_TRY_VOID(rotations());
    if (auto* attention = std::get_if<SelfAttention>(&m_config.family.attention)) {
      CLEAVE_TRY_VOID(windows(attention->windows));
    }
    for (std::size_t i = 0; m_config.ropes.size() > 1 && i < m_isSliding.size(); ++i)
      m_config.layers[i].rope = m_isSliding[i] ? 1 : 0;
    return experts();
  }

  Result<void> rotations() {
    Position& position = m_config.family.position;
    auto* rope = std::get_if<Rope>(&position);
    if (!rope) return {};
    const auto* latent = std::get_if<LatentAttention>(&m_config.family.attention);
    const std::int64_t headDim =
        latent ? latent->rotatedDim.value : std::get<SelfAttention>(m_config.family.attention).headDim.value;
    if (rope->fraction.value == 1.0 && headDim % 2 != 0) return oddHeads(headDim);
    CLEAVE_TRY(m_config.ropes,
               readRopes(m_keys, *rope, {headDim, m_config.family.positions.value, rope->fraction.name}));
    for (LayerConfig& layer : m_config.layers) layer.rope = 0;
    return plainLayers(*rope);
  }

  tl::unexpected<Error> oddHeads(std::int64_t /*headDim*/) const {
    constexpr std::string_view kWhy = "because rotary embeddings rotate pairs of features";
    const auto* attention = std::get_if<SelfAttention>(&m_config.family.attention);
    if (!attention) return m_fields.wrong("qk_rope_head_dim", fmt::format("even, {}", kWhy));
    if (m_fields.has("head_dim")) return m_fields.wrong("head_dim", fmt::format("even, {}", kWhy));
    return m_fields.wrong(m_config.family.hidden.name,
                          fmt::format("an even multiple of {} ({}) if head_dim is absent, {}", attention->heads.name,
                                      attention->heads.value, kWhy));
  }

  /// SmolLM3's `no_rope_layers` has a 1 for each layer that rotates.
  Result<void> plainLayers(Rope& rope) {
    if (rope.plainEvery.name.empty()) return {};
    CLEAVE_TRY_VOID(m_keys.read(rope.plainEvery, kLayerCounts));
    std::vector<std::int64_t> rotates;
    if (m_fields.has("no_rope_layers")) {
      CLEAVE_TRY(rotates, m_fields.integers("no_rope_layers", {0, 1}));
      CLEAVE_TRY_VOID(requireOnePerLayer("no_rope_layers", rotates.size()));
    }
    for (std::size_t i = 0; i < m_config.layers.size(); ++i) {
      const bool isPlain =
          rotates.empty() ? (static_cast<std::int64_t>(i) + 1) % rope.plainEvery.value == 0 : rotates[i] == 0;
      if (isPlain) m_config.layers[i].rope = -1;
    }
    return {};
  }

  Result<void> requireOnePerLayer(std::string_view key, std::size_t count) const {
    if (count == m_config.layers.size()) return {};
    return fail(ErrorCode::BadInput, "{} has {}: expected {}, one per layer ({}).", m_fields.nameOf(key),
                counted(static_cast<std::int64_t>(count), "entry", "entries"), m_config.layers.size(),
                m_config.family.layerCount.name);
  }

  /// By layer, true if `layer_types` gives it a window. Empty if the key is absent.
  Result<std::vector<bool>> slidingLayers() const {
    std::vector<bool> isSliding;
    if (!m_fields.has("layer_types")) return isSliding;
    CLEAVE_TRY(const std::vector<std::string> types, m_fields.texts("layer_types"));
    for (const std::string& type : types) {
      if (type != "sliding_attention" && type != "full_attention") {
        return fail(ErrorCode::BadInput, "{} contains {}: expected full_attention or sliding_attention for each layer.",
                    m_fields.nameOf("layer_types"), quotedText(type));
      }
      isSliding.push_back(type == "sliding_attention");
    }
    CLEAVE_TRY_VOID(requireOnePerLayer("layer_types", types.size()));
    return isSliding;
  }

  Result<void> windows(Windows& windows) {
    if (windows.rule == WindowRule::Never) return {};
    CLEAVE_TRY_VOID(m_keys.read(windows.isUsed));
    if (!windows.isUsed.value) return {};
    CLEAVE_TRY_VOID(m_keys.read(windows.size, kPositions));
    CLEAVE_TRY_VOID(m_keys.read(windows.pattern, kLayerCounts));
    CLEAVE_TRY_VOID(m_keys.readOrNone(windows.maxWindowLayers, {1, 1 << 20}));
    if (m_config.family.isBidirectional.value) windows.size.value = windows.size.value / 2 + 1;
    CLEAVE_TRY(m_isSliding, slidingLayers());
    for (std::size_t i = 0; m_isSliding.size() < m_config.layers.size(); ++i) m_isSliding.push_back(slides(windows, i));
    for (std::size_t i = 0; i < m_config.layers.size(); ++i) {
      if (m_isSliding[i]) m_config.layers[i].window = windows.size.value;
    }
    return {};
  }

  bool slides(const Windows& windows, std::size_t index) const {
    const auto layer = static_cast<std::int64_t>(index);
    switch (windows.rule) {
      case WindowRule::Never: return false;
      case WindowRule::EveryLayer: return true;
      case WindowRule::AboveMaxWindowLayers: return layer >= windows.maxWindowLayers.value;
      case WindowRule::EvenBelowMaxWindowLayers: return layer % 2 == 0 && layer < windows.maxWindowLayers.value;
      case WindowRule::AllButEveryNth: return (layer + 1) % windows.pattern.value != 0;
      case WindowRule::WithoutRotation: return m_config.layers[index].rope < 0;
    }
    return false;
  }

  Result<void> experts() {
    Experts& experts = m_config.family.experts;
    if (experts.rule == SparseRule::Never) return {};
    CLEAVE_TRY_VOID(m_keys.read(experts.count, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(experts.perToken, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(experts.size, kVocabSizes));
    CLEAVE_TRY_VOID(m_keys.read(experts.areSharesNormalised));
    CLEAVE_TRY_VOID(m_keys.read(experts.sharesFactor, kAnyNumbers));
    CLEAVE_TRY_VOID(m_keys.read(experts.groups, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(experts.groupsKept, kSizes));
    CLEAVE_TRY_VOID(m_keys.read(experts.alpha, kAnyNumbers));
    CLEAVE_TRY_VOID(m_keys.read(experts.limit, kPositiveNumbers));
    CLEAVE_TRY_VOID(m_keys.readOrNone(experts.sharedSize, kVocabSizes));
    CLEAVE_TRY_VOID(m_keys.readOrNone(experts.sharedCount, kSizes));
    experts.sharedSize.value += experts.sharedCount.value * experts.size.value;
    CLEAVE_TRY_VOID(checkRouting(experts));
    return sparseLayers(experts);
  }

  Result<void> checkRouting(const Experts& experts) const {
    const std::int64_t count = experts.count.value, groups = experts.groups.value, kept = experts.groupsKept.value;
    if (experts.perToken.value > count)
      return m_fields.wrong(experts.perToken.name, fmt::format("at most {} ({})", experts.count.name, count));
    if (count % groups != 0)
      return m_fields.wrong(experts.count.name, fmt::format("a multiple of {} ({})", experts.groups.name, groups));
    if (groups > 1 && count / groups < 2)
      return m_fields.wrong(experts.groups.name, fmt::format("at most half of {} ({})", experts.count.name, count));
    if (kept > groups)
      return m_fields.wrong(experts.groupsKept.name, fmt::format("at most {} ({})", experts.groups.name, groups));
    if (experts.perToken.value > kept * (count / groups)) {
      return m_fields.wrong(experts.perToken.name,
                            fmt::format("at most the {} experts of {} groups", kept * (count / groups), kept));
    }
    return {};
  }

  Result<void> sparseLayers(Experts& experts) {
    std::vector<std::int64_t> dense;
    if (experts.rule == SparseRule::EveryStep && m_fields.has("mlp_only_layers")) {
      CLEAVE_TRY(dense, m_fields.integers("mlp_only_layers", kNotNegative));
    }
    CLEAVE_TRY_VOID(m_keys.readOrNone(experts.step, {1, 1 << 20}));
    if (experts.rule == SparseRule::EveryStep && experts.step.value == 0)
      return m_fields.wrong(experts.step.name, "a positive integer");
    for (std::size_t i = 0; i < m_config.layers.size(); ++i) {
      const auto layer = static_cast<std::int64_t>(i);
      const bool isStep = experts.rule == SparseRule::EveryStep && (layer + 1) % experts.step.value == 0 &&
                          std::ranges::find(dense, layer) == dense.end();
      m_config.layers[i].isSparse = experts.rule == SparseRule::EveryLayer || isStep ||
                                    (experts.rule == SparseRule::FromLayer && layer >= experts.step.value);
    }
    return {};
  }

  const JsonObject& m_fields;
  ConfigReader m_keys;
  ModelConfig m_config;
  std::vector<bool> m_isSliding;  ///< by layer; empty if the family has no windows
};

}  // namespace

Result<ModelConfig> readModelConfig(const json& value, const std::string& where) {
  CLEAVE_TRY(const JsonObject fields, JsonObject::of(value, where));
  return Reader(fields).read();
}

Result<ModelConfig> readModelConfig(const formats::ModelFolder& folder) {
  return readModelConfig(*folder.config, (folder.path / "config.json").string());
}

}  // namespace cleave::families
