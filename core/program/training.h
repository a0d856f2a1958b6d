#pragma once
/// Settings of training, from the user and for the ranks.
#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::program {

enum class Optimizer : std::uint8_t { None, Sgd, Momentum, AdamW };
std::string_view toText(Optimizer optimizer);  ///< "none", "sgd", "momentum", "adamw"
std::optional<Optimizer> parseOptimizer(std::string_view text);

inline constexpr double kMomentum = 0.9;  ///< of Optimizer::Momentum; AdamW's constants are PyTorch's defaults
inline constexpr std::int64_t kMostSteps = 100'000;

struct Training {
  std::int64_t steps = 0;  ///< 0: one forward pass without training
  Optimizer optimizer = Optimizer::AdamW;
  double learningRate = 1e-3;
  double weightDecay = 0;
  /// Clips the norm of all gradients over all ranks to this value.
  std::optional<double> clipNorm;
  std::int64_t accumulate = 1;  ///< micro-batches per step, whose gradients are averaged
  bool isAsked() const { return steps > 0; }
  bool operator==(const Training&) const = default;
};

/// BadUsage names the flag, its value and its range.
Result<void> check(const Training& training);

}  // namespace cleave::program
