#include "plan/text/shares_text.h"

#include "base/quantities.h"
#include "graph/operators.h"
#include "plan/text/reason_text.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/wording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace cleave::plan {
namespace {

constexpr std::size_t kMostOpsNamed = 3;

bool hasHeads(const ReplicatedWork& work) {
  return std::any_of(work.ops.begin(), work.ops.end(), [](const std::string& op) {
    return graph::operatorOf("aten::" + op).cost == graph::CostClass::Attention;
  });
}

}  // namespace

double shownPercent(double share) {
  if (share <= 0) return 0;
  if (share >= 1) return 100;
  return std::clamp(std::floor(share * 1000) / 10, 0.1, 99.9);
}

std::string percentText(double share) {
  if (share <= 0 || share >= 1) return fmt::format("{:.0f} %", shownPercent(share));
  return fmt::format("{:.1f} %", shownPercent(share));
}

std::string toText(const Shares& shares) {
  if (shares.ranks == 1) return "One rank: nothing to split.";
  const solve::LayerCount& count = shares.layers;
  std::string text = fmt::format("Per rank: {} of the weights and {} of the FLOPs (even share: {}). ",
                                 percentText(shares.heldWeights()), percentText(shares.computedFlops()),
                                 percentText(1.0 / shares.ranks));
  if (count.layers == 0) return text + "The model has no layer that Cleave splits.";
  text += fmt::format("{} of {} {} split", count.split,
                      counted(static_cast<std::int64_t>(count.layers), "layer with weights", "layers with weights"),
                      count.split == 1 || count.layers == 1 ? "is" : "are");
  if (count.gathered > 0)
    text += fmt::format(", {} {} gathered after the product", count.gathered, count.gathered == 1 ? "is" : "are");
  return text + ".";
}

std::string largestWholeText(const Shares& shares) {
  constexpr double kLeastNamed = 0.01;
  if (!shares.largestWhole) return {};
  const WholeWeights& whole = *shares.largestWhole;
  const double share = shares.partOfWeights(whole.bytes);
  if (share < kLeastNamed) return {};
  return fmt::format("Largest replicated part: {}, {} ({} of the weights). It {}.", solve::ticked(whole.pattern),
                     bytesText(whole.bytes), percentText(share), toText(whole.why));
}

std::string modulesText(const ReplicatedWork& work) {
  if (work.pattern.empty()) return "operators outside of modules";
  return solve::ticked(work.pattern) + (work.modules < work.modulesLike && work.modules > 0
                                            ? fmt::format(" ({} of {})", work.modules, work.modulesLike)
                                            : "");
}

std::string toText(const ReplicatedWork& work) {
  std::vector<std::string> ops(
      work.ops.begin(), work.ops.begin() + static_cast<std::ptrdiff_t>(std::min(work.ops.size(), kMostOpsNamed)));
  const std::string more = work.ops.size() > ops.size() ? ", …" : "";
  return fmt::format("{} ({}: {}{}) takes {} of each rank's step and {}", modulesText(work),
                     counted(static_cast<std::int64_t>(work.count), "operator"), fmt::join(ops, ", "), more,
                     solve::timeText(work.femtoseconds), toText(work.why));
}

std::vector<const ReplicatedWork*> indivisibleHeads(const Shares& shares) {
  std::vector<const ReplicatedWork*> found;
  for (const ReplicatedWork& work : shares.replicated) {
    const auto* setting = std::get_if<NotAskedFor>(&work.why);
    const bool isForced = std::holds_alternative<Cannot>(work.why) || (setting && !setting->changes.empty());
    if (isForced && hasHeads(work)) found.push_back(&work);
  }
  return found;
}

}  // namespace cleave::plan
