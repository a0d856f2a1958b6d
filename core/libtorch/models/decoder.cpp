#include "libtorch/models/decoder.h"

#include "libtorch/models/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <map>

namespace cleave::models {
namespace {

using at::Tensor;

struct RotaryPair {
  Tensor cos, sin;  ///< [1, sequence, headDim]
};

/// 0/1 masks are cheap to share: layers with the same window use one.
using MasksByWindow = std::map<std::int64_t, std::optional<Tensor>>;

double lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble: return std::numeric_limits<double>::lowest();
    case at::kHalf: return -65504.0;
    case at::kBFloat16: return -3.3895313892515355e38;
    default: return std::numeric_limits<float>::lowest();
  }
}

class Decoder {
 public:
  Decoder(const DecoderConfig& config, const DecoderInputs& inputs, const DecoderOptions& options, ModelHost& host)
      : m_config(config),
        m_names(*config.architecture->names),
        m_inputs(inputs),
        m_options(options),
        m_host(host),
        m_batch(inputs.inputIds.size(0)),
        m_sequence(inputs.inputIds.size(1)) {}

  DecoderOutputs run() {
    const ModuleScope root(m_host, "", m_config.architecture->className);
    DecoderOutputs outputs;
    outputs.logits = head(backbone());
    if (m_inputs.labels) outputs.loss = loss(outputs.logits, *m_inputs.labels);
    return outputs;
  }

 private:
  std::string className(std::string_view suffix) const {
    return std::string(m_config.architecture->classPrefix) + std::string(suffix);
  }
  static std::string join(const std::string& path, std::string_view last) { return path + '.' + std::string(last); }
  Tensor parameter(const std::string& name, at::IntArrayRef shape) {
    return m_host.parameter(name, shape, m_options.dtype);
  }
  std::string modelPath() const { return std::string(m_names.model); }
  std::string embeddingWeight() const { return join(join(modelPath(), m_names.embedding), "weight"); }

  Tensor linear(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias) {
    const ModuleScope scope(m_host, path, "Linear");
    const Tensor weight = parameter(join(path, "weight"), {out, input.size(-1)});
    std::optional<Tensor> bias;
    if (hasBias) bias = parameter(join(path, "bias"), {out});
    return at::linear(input, weight, bias);
  }

  Tensor backbone() {
    const std::string path = modelPath();
    const ModuleScope scope(m_host, path, className("Model"));
    Tensor hidden = embedding(join(path, m_names.embedding));
    const RotaryPair rotary = rotaryPair(join(path, m_names.rotary));
    MasksByWindow masks;
    for (const std::int64_t window : m_config.windows) {
      const std::int64_t effective = window < m_sequence ? window : 0;
      if (!masks.contains(effective)) masks[effective] = attentionMask(effective);
    }
    const std::string layersPath = join(path, m_names.layers);
    const ModuleScope layersScope(m_host, layersPath, "ModuleList");
    for (std::int64_t i = 0; i < m_config.layers; ++i) {
      const std::int64_t window = m_config.windows[static_cast<std::size_t>(i)];
      hidden = layer(join(layersPath, std::to_string(i)), hidden, rotary, masks.at(window < m_sequence ? window : 0));
    }
    return norm(join(path, m_names.finalNorm), hidden);
  }

  Tensor embedding(const std::string& path) {
    const ModuleScope scope(m_host, path, "Embedding");
    return at::embedding(parameter(embeddingWeight(), {m_config.vocabSize, m_config.hiddenSize}), m_inputs.inputIds);
  }

  /// Positions are 0, 1, ... whatever the mask says, as in transformers' forward pass.
  RotaryPair rotaryPair(const std::string& path) {
    const ModuleScope scope(m_host, path, className("RotaryEmbedding"));
    const auto compute = [&] {
      return inverseFrequencies(m_config.rope, m_config.headDim, m_config.maxPositions, m_sequence);
    };
    const Tensor frequencies = m_host.constant(join(path, "inv_freq"), compute).unsqueeze(0).unsqueeze(-1);
    const Tensor positions =
        at::arange(m_sequence, m_inputs.inputIds.options()).unsqueeze(0).unsqueeze(1).to(at::kFloat);
    const Tensor angles = at::matmul(frequencies, positions).transpose(1, 2);
    const Tensor both = at::cat({angles, angles}, -1);
    Tensor cos = both.cos();
    Tensor sin = both.sin();
    if (m_config.rope.attentionFactor != 1.0) {
      cos = cos.mul(m_config.rope.attentionFactor);
      sin = sin.mul(m_config.rope.attentionFactor);
    }
    return {cos.to(m_options.dtype), sin.to(m_options.dtype)};
  }

  /// Additive mask [batch or 1, 1, sequence, sequence]: 0 where a token may look, the lowest number elsewhere. Nullopt
  /// where plain causal attention says it all. A row that may look nowhere (left padding) becomes uniform, as in
  /// transformers.
  std::optional<Tensor> attentionMask(std::int64_t window) {
    if (window == 0 && !m_inputs.attentionMask) return std::nullopt;
    const Tensor columns = at::arange(m_sequence, m_inputs.inputIds.options());
    const Tensor rows = columns.unsqueeze(-1);
    Tensor isVisible = columns.le(rows);
    if (window != 0) isVisible = isVisible.logical_and(columns.gt(rows.sub(window)));
    isVisible = isVisible.unsqueeze(0).unsqueeze(0);
    if (m_inputs.attentionMask) {
      isVisible = isVisible.logical_and(m_inputs.attentionMask->ne(0).unsqueeze(1).unsqueeze(1));
    }
    const auto options = m_inputs.inputIds.options().dtype(m_options.dtype);
    const Tensor visible = at::full({}, 0.0, options);
    const Tensor hidden = at::full({}, lowest(m_options.dtype), options);
    return at::where(isVisible, visible, hidden);
  }

  Tensor layer(const std::string& path, const Tensor& input, const RotaryPair& rotary,
               const std::optional<Tensor>& mask) {
    const ModuleScope scope(m_host, path, className("DecoderLayer"));
    if (m_config.architecture->normPlace == NormPlace::Behind) {
      const Tensor attended = input.add(
          norm(join(path, m_names.postAttentionNorm), attention(join(path, m_names.attention), input, rotary, mask)));
      return attended.add(norm(join(path, m_names.postMlpNorm), mlp(join(path, m_names.mlp), attended)));
    }
    const Tensor normed = norm(join(path, m_names.inputNorm), input);
    const Tensor attended = input.add(attention(join(path, m_names.attention), normed, rotary, mask));
    const Tensor normedAgain = norm(join(path, m_names.postAttentionNorm), attended);
    return attended.add(mlp(join(path, m_names.mlp), normedAgain));
  }

  Tensor norm(const std::string& path, const Tensor& input) {
    switch (m_config.architecture->norm) {
      case NormKind::Rms: return rmsNorm(path, input);
    }
    return input;
  }

  Tensor rmsNorm(const std::string& path, const Tensor& input) {
    const ModuleScope scope(m_host, path, className("RMSNorm"));
    const Tensor wide = input.to(at::kFloat);
    const Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
    const Tensor normed = wide.mul(variance.add(m_config.normEps).rsqrt());
    return parameter(join(path, "weight"), {input.size(-1)}).mul(normed.to(m_options.dtype));
  }

  Tensor attention(const std::string& path, const Tensor& input, const RotaryPair& rotary,
                   const std::optional<Tensor>& mask) {
    const ModuleScope scope(m_host, path, className("Attention"));
    const std::int64_t keyValueSize = m_config.keyValueHeads * m_config.headDim;
    Tensor query = heads(projection(path, m_names.query, m_names.queryNorm, input, m_config.heads * m_config.headDim),
                         m_config.heads);
    Tensor key = heads(projection(path, m_names.key, m_names.keyNorm, input, keyValueSize), m_config.keyValueHeads);
    Tensor value =
        heads(linear(join(path, m_names.value), input, keyValueSize, m_config.hasQkvBias), m_config.keyValueHeads);
    const Tensor cos = rotary.cos.unsqueeze(1);
    const Tensor sin = rotary.sin.unsqueeze(1);
    query = rotated(query, cos, sin);
    key = rotated(key, cos, sin);
    const bool isCausal = !mask && m_sequence > 1;
    key = repeated(key);
    value = repeated(value);
    const Tensor attended = at::scaled_dot_product_attention(query, key, value, mask, /*dropout_p=*/0.0, isCausal);
    const Tensor merged =
        attended.transpose(1, 2).contiguous().view({m_batch, m_sequence, m_config.heads * m_config.headDim});
    return linear(join(path, m_names.output), merged, m_config.hiddenSize, m_config.hasOutputBias);
  }

  /// Query or key before it is cut into heads.
  Tensor projection(const std::string& path, std::string_view name, std::string_view normName, const Tensor& input,
                    std::int64_t size) {
    const Tensor projected = linear(join(path, name), input, size, m_config.hasQkvBias);
    const bool hasNorm = m_config.architecture->queryKeyNorm == QueryKeyNorm::WholeProjection;
    return hasNorm ? norm(join(path, normName), projected) : projected;
  }

  /// [batch, sequence, heads · headDim] → [batch, heads, sequence, headDim]
  Tensor heads(const Tensor& flat, std::int64_t count) const {
    return flat.view({m_batch, m_sequence, count, m_config.headDim}).transpose(1, 2);
  }

  static Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin) {
    const std::int64_t half = x.size(-1) / 2;
    const Tensor straight = x.mul(cos);
    const Tensor first = x.slice(-1, 0, half);
    const Tensor second = x.slice(-1, half, x.size(-1)).neg();
    return straight.add(at::cat({second, first}, -1).mul(sin));
  }

  /// Each key/value head once per query head of its group (transformers' repeat_kv).
  Tensor repeated(const Tensor& x) const {
    const std::int64_t group = m_config.heads / m_config.keyValueHeads;
    if (group == 1) return x;
    return x.unsqueeze(2)
        .expand({m_batch, m_config.keyValueHeads, group, m_sequence, m_config.headDim})
        .reshape({m_batch, m_config.heads, m_sequence, m_config.headDim});
  }

  Tensor mlp(const std::string& path, const Tensor& input) {
    const ModuleScope scope(m_host, path, className("MLP"));
    const Tensor gate = linear(join(path, m_names.gate), input, m_config.intermediateSize, m_config.hasMlpBias);
    const Tensor activated = activation(join(path, m_names.activation), gate);
    const Tensor up = linear(join(path, m_names.up), input, m_config.intermediateSize, m_config.hasMlpBias);
    return linear(join(path, m_names.down), activated.mul(up), m_config.hiddenSize, m_config.hasMlpBias);
  }

  Tensor activation(const std::string& path, const Tensor& x) {
    const ModuleScope scope(m_host, path, m_config.activationClass);
    switch (m_config.activation) {
      case Activation::Silu: return at::silu(x);
      case Activation::Gelu: return at::gelu(x);
      case Activation::GeluTanh: return at::gelu(x, "tanh");
      case Activation::QuickGelu: return x.mul(x.mul(1.702).sigmoid());
      case Activation::Relu: return at::relu(x);
    }
    return x;
  }

  Tensor head(Tensor hidden) {
    const std::string path(m_names.head);
    if (m_options.logitsToKeep != 0) {
      hidden = hidden.slice(1, -m_options.logitsToKeep, std::numeric_limits<std::int64_t>::max());
    }
    Tensor logits;
    if (m_config.isTied) {
      const ModuleScope scope(m_host, path, "Linear");
      m_host.tied(embeddingWeight(), join(path, "weight"));
      logits = at::linear(hidden, parameter(embeddingWeight(), {m_config.vocabSize, m_config.hiddenSize}));
    } else {
      logits = linear(path, hidden, m_config.vocabSize, /*hasBias=*/false);
    }
    return m_options.dtype == at::kDouble ? logits : logits.to(at::kFloat);
  }

  /// Mean over the counted labels; position i predicts label i + 1.
  Tensor loss(const Tensor& logits, const Tensor& labels) {
    const ModuleScope scope(m_host, "loss", "CrossEntropyLoss");
    const Tensor shiftedLogits = logits.slice(1, 0, m_sequence - 1).contiguous().view({-1, m_config.vocabSize});
    const Tensor shiftedLabels = labels.slice(1, 1, m_sequence).contiguous().view({-1});
    return at::cross_entropy_loss(shiftedLogits, shiftedLabels);
  }

  const DecoderConfig& m_config;
  const ModuleNames& m_names;
  const DecoderInputs& m_inputs;
  const DecoderOptions& m_options;
  ModelHost& m_host;
  std::int64_t m_batch, m_sequence;
};

}  // namespace

DecoderOutputs runDecoder(const DecoderConfig& config, const DecoderInputs& inputs, const DecoderOptions& options,
                          ModelHost& host) {
  return Decoder(config, inputs, options, host).run();
}

}  // namespace cleave::models
