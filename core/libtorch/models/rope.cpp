// Formulas from transformers' modeling_rope_utils.py. The order of operations is the same, so that float32 results are
// equal.
#include "libtorch/models/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cleave::models {

using families::RopeConfig;
using families::RopeKind;

namespace {

/// base ** (arange(0, dim, 2) / dim)
at::Tensor positionFrequencies(double base, std::int64_t dim) {
  const at::Tensor steps = at::arange(0, dim, 2, at::TensorOptions(at::kLong)).to(at::kFloat);
  return at::pow(at::Scalar(base), steps.div(dim));
}

at::Tensor plainFrequencies(double base, std::int64_t dim) { return positionFrequencies(base, dim).reciprocal(); }

/// "NTK-aware": the base grows with the positions beyond the trained ones.
double stretchedBase(const RopeConfig& rope, std::int64_t dim, std::int64_t maxPositions, std::int64_t sequence) {
  const double length = static_cast<double>(std::max(sequence, maxPositions));
  const double stretch = rope.factor * length / static_cast<double>(maxPositions) - (rope.factor - 1);
  return rope.theta * std::pow(stretch, static_cast<double>(dim) / static_cast<double>(dim - 2));
}

/// Long wavelengths are divided by the factor, short ones do not change, those in between are interpolated.
at::Tensor llama3Frequencies(const RopeConfig& rope, std::int64_t dim) {
  const at::Tensor plain = plainFrequencies(rope.theta, dim);
  const double trained = static_cast<double>(rope.originalMaxPositions);
  const double longWave = trained / rope.lowFrequencyFactor;
  const double shortWave = trained / rope.highFrequencyFactor;
  const at::Tensor wave = plain.reciprocal().mul(2 * std::numbers::pi);
  const at::Tensor scaled = at::where(wave.gt(longWave), plain.div(rope.factor), plain);
  const at::Tensor smooth = wave.reciprocal()
                                .mul(trained)
                                .sub(rope.lowFrequencyFactor)
                                .div(rope.highFrequencyFactor - rope.lowFrequencyFactor);
  const at::Tensor mixed = smooth.neg().add(1).mul(scaled).div(rope.factor).add(smooth.mul(scaled));
  const at::Tensor isMiddle = wave.lt(shortWave).logical_not().logical_and(wave.gt(longWave).logical_not());
  return at::where(isMiddle, mixed, scaled);
}

/// YaRN (arXiv 2309.00071): a ramp over the dimensions between interpolated and plain frequencies.
at::Tensor yarnFrequencies(const RopeConfig& rope, std::int64_t dim) {
  const auto correctionDim = [&](double rotations) {
    return static_cast<double>(dim) *
           std::log(static_cast<double>(rope.originalMaxPositions) / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = correctionDim(rope.betaFast);
  double high = correctionDim(rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;  // no division by zero
  const at::Tensor ramp = at::arange(dim / 2, at::TensorOptions(at::kFloat)).sub(low).div(high - low).clamp(0, 1);
  const at::Tensor extrapolation = ramp.neg().add(1);
  const at::Tensor positions = positionFrequencies(rope.theta, dim);
  const at::Tensor interpolated = positions.mul(rope.factor).reciprocal().mul(extrapolation.neg().add(1));
  return interpolated.add(positions.reciprocal().mul(extrapolation));
}

/// Each frequency has its own divisor, and another one beyond the trained positions.
at::Tensor longRopeFrequencies(const RopeConfig& rope, std::int64_t sequence) {
  const std::vector<double>& factors = sequence > rope.originalMaxPositions ? rope.longFactors : rope.shortFactors;
  const at::Tensor divisors = at::tensor(factors, at::TensorOptions(at::kDouble)).to(at::kFloat);
  return divisors.mul(positionFrequencies(rope.theta, rope.dim)).reciprocal();
}

}  // namespace

at::Tensor inverseFrequencies(const RopeConfig& rope, std::int64_t maxPositions, std::int64_t sequence) {
  switch (rope.kind) {
    case RopeKind::Default: return plainFrequencies(rope.theta, rope.dim);
    case RopeKind::Linear: return plainFrequencies(rope.theta, rope.dim).div(rope.factor);
    case RopeKind::Dynamic: return plainFrequencies(stretchedBase(rope, rope.dim, maxPositions, sequence), rope.dim);
    case RopeKind::Llama3: return llama3Frequencies(rope, rope.dim);
    case RopeKind::Yarn: return yarnFrequencies(rope, rope.dim);
    case RopeKind::LongRope: return longRopeFrequencies(rope, sequence);
  }
  CLEAVE_CHECK(false, "rope kind {}", static_cast<int>(rope.kind));
}

}  // namespace cleave::models
