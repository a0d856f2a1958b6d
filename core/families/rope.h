#pragma once
#include <cstdint>
#include <vector>

namespace cleave::families {

enum class RopeKind : std::uint8_t { Default, Linear, Dynamic, Llama3, Yarn, LongRope };

/// Rotary position embedding with its scaling; formulas in rope.cpp. Fields that a kind does not use keep their
/// defaults.
struct RopeConfig {
  RopeKind kind = RopeKind::Default;
  double theta = 10000.0;
  std::int64_t dim = 0;  ///< rotated features of a head, even
  double factor = 1.0;
  std::int64_t originalMaxPositions = 0;          ///< Llama3, Yarn, LongRope: positions of the original training
  double lowFrequencyFactor = 1.0;                ///< Llama3
  double highFrequencyFactor = 4.0;               ///< Llama3
  double betaFast = 32.0;                         ///< Yarn
  double betaSlow = 1.0;                          ///< Yarn
  double attentionFactor = 1.0;                   ///< Yarn, LongRope: factor of cos and sin
  double scoreFactor = 1.0;                       ///< Yarn: factor of the scores in latent attention
  bool truncate = true;                           ///< Yarn: rounds the correction dimensions to integers
  std::vector<double> shortFactors, longFactors;  ///< LongRope: dim / 2 each
};

}  // namespace cleave::families
