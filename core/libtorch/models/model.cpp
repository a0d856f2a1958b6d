#include "libtorch/models/model.h"

#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <cmath>

namespace cleave::models {
namespace {

/// One block: how attention and MLP connect to the residual.
struct BlockCall {
  Build& build;
  const std::string& path;
  std::size_t index;
  const Tensor& input;
  const LayerInputs& shared;

  std::string inBlock(std::string_view name) const { return Build::join(path, name); }
  Tensor norm(std::string_view name, const Tensor& x) const { return build.norm(inBlock(name), x); }
  const Dropouts& dropouts() const { return build.family().dropouts; }
  /// The result of a module of the block after dropout. The dropout belongs to that module, to one inside it, or to the
  /// block.
  Tensor dropped(const Dropout& dropout, std::string_view module, std::string_view className, const Tensor& x) const {
    if (build.chance(dropout.probability) == 0) return x;
    const bool isInside = !module.empty() && (std::string(dropout.name) + '.').starts_with(std::string(module) + '.');
    const Build::Inside scope(build, isInside ? inBlock(module) : path, build.className(className));
    return build.dropped(inBlock(dropout.name), dropout.probability, x);
  }
  Tensor attend(const Tensor& x) const {
    const auto name = std::visit([](const auto& part) { return part.name; }, build.family().attention);
    return dropped(dropouts().attentionOutput, name, "Attention", attention(build, path, x, index, shared));
  }
  Tensor feed(const Tensor& x) const {
    if (build.config().layers[index].isSparse) return experts(build, path, x);
    const auto name = std::visit([](const auto& part) { return part.name; }, build.family().mlp.kind);
    return dropped(dropouts().mlpOutput, name, "MLP", mlp(build, path, x));
  }

  Tensor operator()(const PreNorm& part) const {
    const auto add = [&](const Tensor& residual, const Tensor& x) {
      const double factor = part.residualMultiplier.value;
      return residual.add(factor == 1.0 ? x : x.mul(factor));
    };
    const bool isNormed = part.isResidualNormed.value;
    const Tensor normedOnce = norm(part.attentionNorm, input);
    const Tensor attended = add(isNormed ? normedOnce : input, attend(normedOnce));
    const Tensor normedAgain = norm(part.mlpNorm, attended);
    return add(isNormed ? normedAgain : attended, feed(normedAgain));
  }
  Tensor operator()(const PostNorm& part) const {
    const Tensor attended = norm(part.attentionNorm, attend(input).add(input));
    return norm(part.mlpNorm, feed(attended).add(attended));
  }
  Tensor operator()(const OutputNorm& part) const {
    const Tensor attended = input.add(norm(part.attentionNorm, attend(input)));
    return attended.add(norm(part.mlpNorm, feed(attended)));
  }
  Tensor operator()(const Sandwich& part) const {
    const Tensor attended = input.add(norm(part.afterAttention, attend(norm(part.attentionNorm, input))));
    return attended.add(norm(part.afterMlp, feed(norm(part.mlpNorm, attended))));
  }
  Tensor operator()(const ParallelResidual& part) const {
    const Tensor normed = norm(part.attentionNorm, input);
    const Tensor attended = attend(normed);
    const Tensor fed = feed(part.mlpNorm.empty() ? normed : norm(part.mlpNorm, input));
    const Dropout& sum = dropouts().sum;
    if (build.chance(sum.probability) == 0) return input.add(attended).add(fed);
    return dropped(sum, {}, {}, fed.add(attended)).add(input);
  }
};

class Model {
 public:
  explicit Model(Build& build) : m_build(build), m_family(build.family()) {}

  ModelOutputs run() {
    const Build::Inside root(m_build, "", m_build.config().className);
    return head(m_build, backbone());
  }

 private:
  Tensor backbone() {
    const Build::Inside scope(m_build, std::string(m_family.model), m_build.className("Model"));
    Tensor hidden = embedded();
    LayerInputs shared{rotaryPairs(m_build), masks()};
    {
      const std::string layers = m_build.inModel(m_family.layers);
      const Build::Inside list(m_build, layers, "ModuleList");
      for (std::size_t i = 0; i < m_build.config().layers.size(); ++i) {
        const std::string path = Build::join(layers, std::to_string(i));
        const Build::Inside layer(m_build, path, m_build.className(m_family.layerClass));
        hidden = std::visit(BlockCall{m_build, path, i, hidden, shared}, m_family.block);
      }
    }
    if (!m_family.finalNorm.empty()) hidden = m_build.norm(m_build.inModel(m_family.finalNorm), hidden);
    if (isProjected()) {
      hidden = m_build.linear(m_build.inModel(m_family.embeddings.projectOut), hidden, m_family.embeddings.width.value,
                              /*hasBias=*/false);
    }
    return hidden;
  }

  bool isProjected() const { return m_family.embeddings.width.value != m_build.hidden(); }

  Tensor embedded() {
    const Embeddings& part = m_family.embeddings;
    const std::int64_t padding = part.hasPadding ? m_build.config().padTokenId : -1;
    Tensor hidden = m_build.embedding(m_build.inModel(part.tokens), m_family.vocab.value, part.width.value,
                                      m_build.inputs().inputIds, padding);
    if (part.isScaledByRoot) hidden = scaled(hidden);
    if (part.multiplier.value != 1.0) hidden = hidden.mul(part.multiplier.value);
    if (!part.tokenTypes.empty()) hidden = hidden.add(tokenTypes());
    if (isProjected()) hidden = m_build.linear(m_build.inModel(part.projectIn), hidden, m_build.hidden(), false);
    if (const auto* learned = std::get_if<LearnedPositions>(&m_family.position))
      hidden = hidden.add(learnedPositions(m_build, *learned));
    if (!part.norm.empty()) hidden = m_build.norm(m_build.inModel(part.norm), hidden);
    const Dropout& dropout = m_family.dropouts.embeddings;
    return m_build.dropped(m_build.inModel(dropout.name), dropout.probability, hidden);
  }

  /// Rounds the factor to the dtype of the parameters first, as transformers does.
  Tensor scaled(const Tensor& hidden) {
    const double root = std::sqrt(static_cast<double>(m_build.hidden()));
    const at::ScalarType dtype = m_build.options().dtype;
    const Tensor factor = m_build.host().constant(
        m_build.inModel("embed_scale"), [&] { return at::full({}, root, at::TensorOptions(at::kFloat)).to(dtype); });
    return hidden.mul(factor);
  }

  /// Without token types all tokens have type 0.
  Tensor tokenTypes() {
    const Embeddings& part = m_family.embeddings;
    const std::optional<Tensor>& given = m_build.inputs().tokenTypeIds;
    const Tensor ids = given ? *given : at::zeros({1, m_build.sequence()}, m_build.inputs().inputIds.options());
    return m_build.embedding(m_build.inModel(part.tokenTypes), part.typeCount.value, m_build.hidden(), ids);
  }

  std::map<std::int64_t, std::optional<Tensor>> masks() {
    const auto* attention = std::get_if<SelfAttention>(&m_family.attention);
    const bool isNeeded = attention && (attention->softCap.value != 0 || !attention->sinks.empty());
    std::map<std::int64_t, std::optional<Tensor>> byWindow;
    for (const LayerConfig& layer : m_build.config().layers) {
      // A window that covers all positions hides nothing.
      const std::int64_t effective = layer.window < m_build.keyPositions() ? layer.window : 0;
      if (!byWindow.contains(effective)) byWindow[effective] = attentionMask(m_build, effective, isNeeded);
      byWindow[layer.window] = byWindow[effective];
    }
    return byWindow;
  }

  Build& m_build;
  const Family& m_family;
};

}  // namespace

ModelOutputs runModel(const ModelConfig& config, const ModelInputs& inputs, const ModelOptions& options,
                      ModelHost& host) {
  Build build(config, inputs, options, host);
  ModelOutputs outputs = Model(build).run();
  outputs.present = std::move(build.present());
  return outputs;
}

}  // namespace cleave::models
