// Self attention: the projections of queries, keys and values, and the attention over them.
#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <cmath>

namespace cleave::models {
namespace {

/// [batch, heads, sequence, head size]; keys and values have their own number of heads.
struct Projections {
  Tensor query, key, value;
};

class Attention {
 public:
  Attention(Build& build, const SelfAttention& part, const std::string& block, std::size_t index,
            const LayerInputs& shared)
      : m_build(build),
        m_part(part),
        m_block(block),
        m_index(index),
        m_layer(build.config().layers[index]),
        m_shared(shared),
        m_heads(part.heads.value),
        m_keyValueHeads(part.keyValueHeads.value),
        m_headDim(part.headDim.value) {}

  Tensor run(const Tensor& input) {
    Tensor merged;
    {
      const Build::Inside scope(m_build, inBlock(m_part.name), className());
      merged = attend(std::visit([&](const auto& qkv) { return projected(qkv, input); }, m_part.qkv));
    }
    const bool isInside = m_part.output.starts_with(std::string(m_part.name) + '.');
    const Build::Inside scope(m_build, isInside ? inBlock(m_part.name) : m_block, className());
    return m_build.linear(inBlock(m_part.output), merged, m_build.hidden(), m_part.outputBias.value, m_part.layout);
  }

 private:
  std::string inBlock(std::string_view name) const { return Build::join(m_block, name); }
  /// BERT has a separate module inside the one that adds the residual.
  std::string className() const {
    for (const ModuleClass& known : m_build.family().classes) {
      if (known.path == m_part.name) return m_build.className(known.suffix);
    }
    return m_build.className("Attention");
  }

  Projections projected(const SeparateQkv& names, const Tensor& input) {
    const std::int64_t narrow = m_keyValueHeads * m_headDim;
    const auto project = [&](std::string_view name, std::int64_t size) {
      return m_build.linear(inBlock(name), input, size, m_part.qkvBias.value, m_part.layout);
    };
    Tensor query = project(names.query, m_heads * m_headDim);
    Tensor key, value;
    if (std::holds_alternative<QueryScale>(m_part.scale)) query = query.mul(headSizeScale());
    if (const auto* norm = std::get_if<ProjectionNorm>(&m_part.queryKeyNorm)) {
      query = m_build.norm(inBlock(norm->query), query);
      key = m_build.norm(inBlock(norm->key), project(names.key, narrow));
    } else {
      key = project(names.key, narrow);
    }
    value = project(names.value, narrow);
    return cut(query, key, value);
  }

  Projections projected(const FusedBlocks& fused, const Tensor& input) {
    const std::int64_t wide = m_heads * m_headDim, narrow = m_keyValueHeads * m_headDim;
    const Tensor all =
        m_build.linear(inBlock(fused.name), input, wide + 2 * narrow, m_part.qkvBias.value, m_part.layout);
    const std::vector<Tensor> parts = at::split_with_sizes(all, {wide, narrow, narrow}, -1);
    return cut(parts[0], parts[1], parts[2]);
  }

  Projections projected(const FusedPerHead& fused, const Tensor& input) {
    const std::int64_t group = m_heads / m_keyValueHeads;
    const std::int64_t width = m_keyValueHeads * (group + 2) * m_headDim;
    const Tensor all = m_build.linear(inBlock(fused.name), input, width, m_part.qkvBias.value, m_part.layout)
                           .view({batch(), sequence(), m_keyValueHeads, group + 2, m_headDim});
    const Tensor query =
        group == 1 ? all.select(3, 0) : all.slice(3, 0, group).reshape({batch(), sequence(), m_heads, m_headDim});
    const Tensor key = all.select(3, group);
    const Tensor value = all.select(3, group + 1);
    return normed(query, key, value);
  }

  /// Inputs are [batch, sequence, heads · head size].
  Projections cut(const Tensor& query, const Tensor& key, const Tensor& value) {
    const auto heads = [&](const Tensor& flat, std::int64_t count) {
      return flat.view({batch(), sequence(), count, m_headDim});
    };
    // Separate statements, because the compiler may evaluate arguments in any order.
    const Tensor ofQuery = heads(query, m_heads);
    const Tensor ofKey = heads(key, m_keyValueHeads);
    const Tensor ofValue = heads(value, m_keyValueHeads);
    return normed(ofQuery, ofKey, ofValue);
  }

  /// Inputs are [batch, sequence, heads, head size].
  Projections normed(Tensor query, Tensor key, const Tensor& value) {
    if (const auto* norm = std::get_if<HeadNorm>(&m_part.queryKeyNorm)) {
      const auto shape = [&](std::int64_t heads) {
        return norm->perHead ? std::vector<std::int64_t>{heads, m_headDim} : std::vector<std::int64_t>{m_headDim};
      };
      query = m_build.norm(inBlock(norm->query), query, shape(m_heads));
      key = m_build.norm(inBlock(norm->key), key, shape(m_keyValueHeads));
    }
    return {query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)};
  }

  Tensor attend(Projections heads) {
    if (m_layer.rope >= 0) {
      const RotaryPair& rotary = m_shared.rotary[static_cast<std::size_t>(m_layer.rope)];
      const Pairing pairing = std::get<Rope>(m_build.family().position).pairing;
      heads.query = rotated(heads.query, rotary, pairing);
      heads.key = rotated(heads.key, rotary, pairing);
    }
    const KeysAndValues all = remembered(m_build, m_index, heads.key, heads.value);
    heads.key = repeated(all.keys);
    heads.value = repeated(all.values);
    const std::optional<Tensor>& mask = m_shared.masks.at(m_layer.window);
    if (m_part.softCap.value == 0 && m_part.sinks.empty())
      return attended(m_build, heads.query, heads.key, heads.value, mask, scale());
    return writtenOut(heads, mask);
  }

  double headSizeScale() const { return 1 / std::sqrt(static_cast<double>(m_headDim)); }

  /// The factor of the scores; 0 means 1 / sqrt(head size).
  double scale() const {
    struct Scales {
      const Attention& of;
      double operator()(const HeadSizeScale& part) const {
        const double byLayer = part.isByLayer.value ? static_cast<double>(of.m_index + 1) : 1.0;
        if (part.isUsed.value) return part.isByLayer.value ? of.headSizeScale() / byLayer : 0.0;
        return 1.0 / byLayer;
      }
      double operator()(const InverseRootScale& part) const { return 1 / std::sqrt(part.number.value); }
      double operator()(const MultiplierScale& part) const { return part.number.value; }
      double operator()(const QueryScale& /*part*/) const { return 1.0; }
    };
    return std::visit(Scales{*this}, m_part.scale);
  }

  /// Attention with caps and sinks, which the fused kernels do not support.
  Tensor writtenOut(const Projections& heads, const std::optional<Tensor>& mask) {
    const double factor = scale() == 0 ? headSizeScale() : scale();
    Tensor scores = at::matmul(heads.query, heads.key.transpose(2, 3)).mul(factor);
    if (const double cap = m_part.softCap.value; cap != 0) scores = scores.div(cap).tanh().mul(cap);
    if (mask) scores = scores.add(*mask);
    if (!m_part.sinks.empty()) {
      const Tensor sinks = m_build.parameter(inBlock(m_part.sinks), {m_heads}).reshape({1, -1, 1, 1});
      scores = at::cat({scores, sinks.expand({batch(), m_heads, sequence(), 1})}, -1);
    }
    Tensor shares = at::softmax(scores, -1, at::kFloat).to(m_build.options().dtype);
    if (!m_part.sinks.empty()) shares = shares.slice(-1, 0, m_build.keyPositions());
    shares = m_build.dropped(inBlock(m_part.name), m_build.family().dropouts.attention, shares);
    return at::matmul(shares, heads.value)
        .transpose(1, 2)
        .contiguous()
        .view({batch(), sequence(), m_heads * m_headDim});
  }

  /// Repeats each key/value head for the query heads of its group (transformers' repeat_kv).
  Tensor repeated(const Tensor& x) const {
    const std::int64_t group = m_heads / m_keyValueHeads;
    if (group == 1) return x;
    return x.unsqueeze(2)
        .expand({batch(), m_keyValueHeads, group, m_build.keyPositions(), m_headDim})
        .reshape({batch(), m_heads, m_build.keyPositions(), m_headDim});
  }

  std::int64_t batch() const { return m_build.batch(); }
  std::int64_t sequence() const { return m_build.sequence(); }

  Build& m_build;
  const SelfAttention& m_part;
  const std::string& m_block;
  std::size_t m_index;
  const LayerConfig& m_layer;
  const LayerInputs& m_shared;
  std::int64_t m_heads, m_keyValueHeads, m_headDim;
};

}  // namespace

Tensor attended(Build& build, const Tensor& query, const Tensor& key, const Tensor& value,
                const std::optional<Tensor>& mask, double scale) {
  const bool isCausal = !mask && build.family().isCausal && build.sequence() > 1;
  const std::optional<double> given = scale == 0 ? std::nullopt : std::optional(scale);
  const double chance = build.chance(build.family().dropouts.attention);
  const Tensor result = at::scaled_dot_product_attention(query, key, value, mask, chance, isCausal, given);
  return result.transpose(1, 2).contiguous().view({build.batch(), build.sequence(), -1});
}

Tensor attention(Build& build, const std::string& block, const Tensor& input, std::size_t index,
                 const LayerInputs& shared) {
  if (const auto* latent = std::get_if<LatentAttention>(&build.family().attention))
    return latentAttention(build, *latent, block, input, index, shared);
  return Attention(build, std::get<SelfAttention>(build.family().attention), block, index, shared).run(input);
}

}  // namespace cleave::models
