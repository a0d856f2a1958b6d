#include "plan/headline.h"

#include <fmt/ranges.h>

#include <array>

namespace cleave::plan {

std::string predictedText(const Plan& plan) {
  return fmt::format("{} a {}step on {} × {} ({} of it collectives)", solve::timeText(plan.cost.femtoseconds()),
                     plan.costSettings.isTraining ? "training " : "", plan.ranks, plan.costSettings.profile.name,
                     solve::timeText(plan.cost.sum.trafficFs));
}

std::vector<WholeLayers> wholeLayers(const Plan& plan) {
  std::array<WholeLayers, std::variant_size_v<Standing>> byKind;
  for (const LayerPlan& layer : plan.layers) {
    if (plan.ranks == 1 || layer.weight.empty() || std::holds_alternative<Split>(layer.standing)) continue;
    WholeLayers& same = byKind[layer.standing.index()];
    if (same.count++ == 0) same = {kindOf(layer.standing), 1, layer.node};
  }
  std::vector<WholeLayers> whole;
  for (const WholeLayers& layers : byKind)
    if (layers.count > 0) whole.push_back(layers);
  return whole;
}

std::string toText(const WholeLayers& layers) {
  const bool isOne = layers.count == 1;
  if (layers.kind == kindOf(Cannot{})) return fmt::format("{} cannot be split", layers.count);
  if (layers.kind == kindOf(DoesNotPay{})) return fmt::format("{} {} not pay to split", layers.count, isOne ? "does" : "do");
  if (layers.kind == kindOf(NotAskedFor{})) return fmt::format("{} {} not asked to split", layers.count, isOne ? "is" : "are");
  return fmt::format("of {} it is not known", layers.count);
}

std::string wholeText(const std::vector<WholeLayers>& layers) {
  std::size_t count = 0;
  std::vector<std::string> causes;
  for (const WholeLayers& same : layers) {
    count += same.count;
    causes.push_back(toText(same));
  }
  if (count == 0) return {};
  return fmt::format("{} layer{} whole on every rank: {}", count, count == 1 ? " is" : "s are", fmt::join(causes, ", "));
}

}  // namespace cleave::plan
