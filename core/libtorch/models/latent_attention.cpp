// Multi-head latent attention: DeepSeek's, as transformers' modeling_deepseek_v3.py computes it without a cache.
#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <cmath>

namespace cleave::models {
namespace {

/// For the inner norms; the config's value does not apply to them.
constexpr double kInnerEps = 1e-6;

/// Rotates neighbouring features as pairs. The results are stored as halves.
Tensor turnedPairs(const Tensor& x, const RotaryPair& rotary) {
  const std::int64_t size = x.size(-1);
  const Tensor cos = rotary.cos.slice(-1, 0, size / 2).unsqueeze(1),
               sin = rotary.sin.slice(-1, 0, size / 2).unsqueeze(1);
  const Tensor even = x.slice(-1, 0, size, 2), odd = x.slice(-1, 1, size, 2);
  return at::cat({even.mul(cos).sub(odd.mul(sin)), odd.mul(cos).add(even.mul(sin))}, -1);
}

}  // namespace

Tensor latentAttention(Build& build, const LatentAttention& part, const std::string& block, const Tensor& input,
                       std::size_t index, const LayerInputs& shared) {
  const LayerConfig& layer = build.config().layers[index];
  const std::string path = Build::join(block, part.name);
  const Build::Inside scope(build, path, build.className("Attention"));
  const auto inside = [&](std::string_view name) { return Build::join(path, name); };
  const std::int64_t batch = build.batch(), sequence = build.sequence(), heads = part.heads.value;
  const std::int64_t plain = part.plainDim.value, turned = part.rotatedDim.value, rank = part.keyValueRank.value;
  const auto turn = [&](const Tensor& x) {
    const RotaryPair& rotary = shared.rotary[static_cast<std::size_t>(layer.rope)];
    return part.isInterleaved.value ? turnedPairs(x, rotary) : rotated(x, rotary, Pairing::Halves);
  };

  Tensor query;
  if (part.queryRank.value == 0) {
    query = build.linear(inside("q_proj"), input, heads * (plain + turned), false);
  } else {
    const Tensor narrow = build.linear(inside("q_a_proj"), input, part.queryRank.value, part.hasBias.value);
    query = build.linear(inside("q_b_proj"), build.rmsNorm(inside("q_a_layernorm"), narrow, kInnerEps),
                         heads * (plain + turned), false);
  }
  query = query.view({batch, sequence, heads, plain + turned}).transpose(1, 2);
  const std::vector<Tensor> queries = at::split_with_sizes(query, {plain, turned}, -1);

  const Tensor compressed = build.linear(inside("kv_a_proj_with_mqa"), input, rank + turned, part.hasBias.value);
  const std::vector<Tensor> narrow = at::split_with_sizes(compressed, {rank, turned}, -1);
  const Tensor wide = build
                          .linear(inside("kv_b_proj"), build.rmsNorm(inside("kv_a_layernorm"), narrow[0], kInnerEps),
                                  heads * (plain + part.valueDim.value), false)
                          .view({batch, sequence, heads, plain + part.valueDim.value})
                          .transpose(1, 2);
  const std::vector<Tensor> keysAndValues = at::split_with_sizes(wide, {plain, part.valueDim.value}, -1);
  const Tensor turnedKey = turn(narrow[1].view({batch, 1, sequence, turned})).expand({batch, heads, sequence, turned});

  const Tensor queryStates = at::cat({queries[0], turn(queries[1])}, -1);
  const KeysAndValues all = remembered(build, index, at::cat({keysAndValues[0], turnedKey}, -1), keysAndValues[1]);
  const double factor = build.config().ropes.front().scoreFactor;
  const double scale = factor == 1.0 ? 0.0 : factor / std::sqrt(static_cast<double>(plain + turned));
  const Tensor merged = attended(build, queryStates, all.keys, all.values, shared.masks.at(layer.window), scale);
  return build.linear(inside("o_proj"), merged, build.hidden(), part.hasBias.value);
}

}  // namespace cleave::models
