#include "program/training.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cleave::program {
namespace {

constexpr std::array<std::string_view, 4> kOptimizerNames = {"none", "sgd", "momentum", "adamw"};

Result<void> checkNumber(std::string_view flag, double value, bool mayBeZero) {
  if (std::isfinite(value) && (value > 0 || (mayBeZero && value == 0))) return {};
  return fail(ErrorCode::BadUsage, "{} is {}; it must be a finite number {} 0.", flag, value,
              mayBeZero ? "from" : "above");
}

}  // namespace

std::string_view toText(Optimizer optimizer) { return kOptimizerNames[static_cast<std::size_t>(optimizer)]; }

std::optional<Optimizer> parseOptimizer(std::string_view text) {
  const auto at = std::find(kOptimizerNames.begin(), kOptimizerNames.end(), text);
  if (at == kOptimizerNames.end()) return std::nullopt;
  return static_cast<Optimizer>(at - kOptimizerNames.begin());
}

Result<void> check(const Training& training) {
  if (training.steps < 0 || training.steps > kMostSteps)
    return fail(ErrorCode::BadUsage, "The number of training steps is {}; it must be in 1..{}.", training.steps,
                kMostSteps);
  if (training.accumulate < 1 || training.accumulate > kMostSteps)
    return fail(ErrorCode::BadUsage, "--accumulate is {}; it must be in 1..{}.", training.accumulate, kMostSteps);
  if (training.isAsked() && training.optimizer == Optimizer::None)
    return fail(ErrorCode::BadUsage, "Training needs an --optimizer that changes parameters, not none.");
  CLEAVE_TRY_VOID(checkNumber("--lr", training.learningRate, false));
  CLEAVE_TRY_VOID(checkNumber("--weight-decay", training.weightDecay, true));
  return training.clipNorm ? checkNumber("--clip-norm", *training.clipNorm, false) : Result<void>();
}

}  // namespace cleave::program
