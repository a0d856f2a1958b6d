// Positions of tokens: learned positions, rotary embeddings, linear biases, and attention masks.
#include "libtorch/models/build.h"
#include "libtorch/models/rope.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace cleave::models {
namespace {

double lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble: return std::numeric_limits<double>::lowest();
    case at::kHalf: return -65504.0;
    case at::kBFloat16: return -3.3895313892515355e38;
    default: return std::numeric_limits<float>::lowest();
  }
}

/// The key positions.
Tensor indices(Build& build) { return at::arange(build.keyPositions(), build.inputs().inputIds.options()); }
/// The positions of the sequence's tokens.
Tensor places(Build& build) { return build.readsCache() ? *build.inputs().cachePosition : indices(build); }

/// [batch or 1, sequence], in the numbering of learned tables.
Tensor positionIds(Build& build, const LearnedPositions& positions) {
  const std::optional<Tensor>& mask = build.inputs().attentionMask;
  switch (positions.from) {
    case PositionFrom::Index: break;
    case PositionFrom::Mask:
      if (mask) return mask->cumsum(1).mul(*mask).sub(1).add(positions.extraRows);
      break;
    case PositionFrom::PaddingId: {
      const std::int64_t padding = build.config().padTokenId;
      const Tensor isToken = build.inputs().inputIds.ne(padding).to(at::kInt);
      const Tensor counted = isToken.cumsum(1).to(at::kInt).mul(isToken);
      return counted.to(at::kLong).add(padding);
    }
  }
  const Tensor ids = places(build).unsqueeze(0);
  return positions.extraRows == 0 ? ids : ids.add(positions.extraRows);
}

/// transformers' `build_alibi_tensor`: [heads]. Also supports head counts that are not powers of two.
Tensor alibiSlopes(std::int64_t heads) {
  const double whole = std::pow(2.0, std::floor(std::log2(static_cast<double>(heads))));
  const auto powers = [](double count, std::int64_t first, std::int64_t last, std::int64_t step) {
    const auto base = static_cast<float>(std::pow(2.0, -std::pow(2.0, -(std::log2(count) - 3))));
    const at::TensorOptions options(at::kInt);
    return at::pow(at::full({}, base, at::TensorOptions(at::kFloat)), at::arange(first, last, step, options));
  };
  const auto count = static_cast<std::int64_t>(whole);
  const Tensor slopes = powers(whole, 1, 1 + count, 1);
  if (count == heads) return slopes;
  const std::int64_t left = std::min(count, heads - count);
  return at::cat({slopes, powers(2 * whole, 1, 1 + 2 * left, 2)});
}

/// [batch or 1, heads, 1, sequence]
Tensor alibi(Build& build, const Alibi& part) {
  const auto& attention = std::get<SelfAttention>(build.family().attention);
  const std::int64_t heads = attention.heads.value;
  Tensor slopes = build.host().constant(build.inModel("alibi_slopes"), [&] { return alibiSlopes(heads); });
  const std::optional<Tensor>& mask = build.inputs().attentionMask;
  const Tensor numbers = mask ? mask->cumsum(-1).sub(1).mul(*mask) : indices(build).unsqueeze(0);
  slopes = slopes.view({1, heads, 1, 1});
  if (part.isRounded) slopes = slopes.to(at::kBFloat16);
  const Tensor biases = slopes.mul(numbers.unsqueeze(1).unsqueeze(1)).to(build.options().dtype);
  return part.isRounded ? biases.div(std::sqrt(static_cast<double>(attention.headDim.value))) : biases;
}

RotaryPair rotaryPair(Build& build, const RopeConfig& rope, std::string_view name, Pairing pairing) {
  const auto compute = [&] { return inverseFrequencies(rope, build.family().positions.value, build.keyPositions()); };
  const std::string path = Build::join(build.inModel(build.family().rotary), name);
  const Tensor frequencies = build.host().constant(path, compute).unsqueeze(0).unsqueeze(-1);
  const Tensor positions = places(build).unsqueeze(0).unsqueeze(1).to(at::kFloat);
  const Tensor angles = at::matmul(frequencies, positions).transpose(1, 2);
  const Tensor both =
      pairing == Pairing::Halves ? at::cat({angles, angles}, -1) : at::stack({angles, angles}, -1).flatten(-2);
  Tensor cos = both.cos();
  Tensor sin = both.sin();
  if (rope.attentionFactor != 1.0) {
    cos = cos.mul(rope.attentionFactor);
    sin = sin.mul(rope.attentionFactor);
  }
  return {cos.to(build.options().dtype), sin.to(build.options().dtype)};
}

Tensor turned(const Tensor& x, Pairing pairing) {
  const std::int64_t size = x.size(-1);
  if (pairing == Pairing::Halves) {
    const Tensor first = x.slice(-1, 0, size / 2);
    const Tensor second = x.slice(-1, size / 2, size).neg();
    return at::cat({second, first}, -1);
  }
  const Tensor even = x.slice(-1, 0, size, 2);
  const Tensor odd = x.slice(-1, 1, size, 2);
  return at::stack({odd.neg(), even}, -1).flatten(-2);
}

}  // namespace

Tensor learnedPositions(Build& build, const LearnedPositions& positions) {
  const std::int64_t rows = build.family().positions.value + positions.extraRows;
  const std::int64_t padding = positions.from == PositionFrom::PaddingId ? build.config().padTokenId : -1;
  return build.embedding(build.inModel(positions.name), rows, build.hidden(), positionIds(build, positions), padding);
}

std::vector<RotaryPair> rotaryPairs(Build& build) {
  std::vector<RotaryPair> pairs;
  if (build.config().ropes.empty()) return pairs;
  const Pairing pairing = std::get<Rope>(build.family().position).pairing;
  const Build::Inside scope(build, build.inModel(build.family().rotary), build.className("RotaryEmbedding"));
  for (const RopeConfig& rope : build.config().ropes)
    pairs.push_back(rotaryPair(build, rope, pairs.empty() ? "inv_freq" : "local_inv_freq", pairing));
  return pairs;
}

std::optional<Tensor> attentionMask(Build& build, std::int64_t window, bool isNeeded) {
  const auto* linear = std::get_if<Alibi>(&build.family().position);
  const std::optional<Tensor>& padding = build.inputs().attentionMask;
  const bool isCausal = build.family().isCausal;
  const bool isPlain = window == 0 && !padding && !linear && !(isNeeded && isCausal);
  if (isPlain && !build.readsCache()) return std::nullopt;
  std::optional<Tensor> isVisible;
  const auto require = [&](const Tensor& condition) {
    isVisible = isVisible ? isVisible->logical_and(condition) : condition;
  };
  if (isCausal || window != 0) {
    const Tensor columns = indices(build);
    const Tensor rows = (build.readsCache() ? places(build) : columns).unsqueeze(-1);
    const auto condition = [&](const Tensor& seen) { require(seen.unsqueeze(0).unsqueeze(0)); };
    if (isCausal) condition(columns.le(rows));
    if (window != 0) condition(columns.gt(rows.sub(window)));
    if (window != 0 && !isCausal) condition(columns.lt(rows.add(window)));
  }
  if (padding) require(padding->ne(0).unsqueeze(1).unsqueeze(1));
  const auto options = build.inputs().inputIds.options().dtype(build.options().dtype);
  const Tensor visible = linear ? alibi(build, *linear) : at::full({}, 0.0, options);
  const Tensor hidden = at::full({}, lowest(build.options().dtype), options);
  return at::where(*isVisible, visible, hidden);
}

Tensor rotated(const Tensor& x, const RotaryPair& rotary, Pairing pairing) {
  const std::int64_t size = rotary.cos.size(-1), whole = x.size(-1);
  const Tensor cos = rotary.cos.unsqueeze(1), sin = rotary.sin.unsqueeze(1);
  const auto turn = [&](const Tensor& part) {
    const Tensor straight = part.mul(cos);
    return straight.add(turned(part, pairing).mul(sin));
  };
  if (size == whole) return turn(x);
  return at::cat({turn(x.slice(-1, 0, size)), x.slice(-1, size, whole)}, -1);
}

}  // namespace cleave::models
