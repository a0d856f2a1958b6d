#include "plan/text/headline.h"

#include "base/quantities.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"
#include "solve/cost/memory_parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace cleave::plan {

ReplicatedCause causeOf(const ReplicationReason& replication) {
  if (const auto* cannot = std::get_if<Cannot>(&replication))
    return cannot->isUnlessRedistributed ? ReplicatedCause::CannotAsRead : ReplicatedCause::Cannot;
  if (const auto* costs = std::get_if<DoesNotPay>(&replication))
    return costs->isOverBudget ? ReplicatedCause::OverBudget : ReplicatedCause::DoesNotPay;
  if (const auto* setting = std::get_if<NotAskedFor>(&replication))
    return setting->changes.empty() ? ReplicatedCause::FirstFound : ReplicatedCause::NotAskedFor;
  return ReplicatedCause::NotKnown;
}

std::string predictedText(const Plan& plan) {
  return fmt::format("{} per {}step on {} × {} ({} of it collectives)", solve::timeText(plan.cost.femtoseconds()),
                     plan.spec.cost.isTraining ? "training " : "", plan.spec.ranks, plan.spec.cost.profile.name,
                     solve::timeText(plan.cost.sum.trafficFs));
}

std::string notKeptText(const Plan& plan) {
  const auto isOfPass = [&](std::string_view key) {
    return key == "parameters" || key == "inputs_and_constants" ||
           (key == "transient_peak" && !plan.spec.cost.isTraining);
  };
  std::vector<std::string> parts;
  std::int64_t notKept = 0;
  for (const solve::MemoryPart& part : solve::memoryParts(plan.cost)) {
    if (isOfPass(part.key) || part.bytes == 0) continue;
    parts.push_back(fmt::format("{} {}", bytesText(part.bytes), part.name));
    notKept += part.bytes;
  }
  if (parts.empty()) return {};
  const std::string bytes = bytesText(plan.cost.bytes()), all = fmt::format("{}", fmt::join(parts, ", "));
  if (plan.spec.cost.isTraining)
    return fmt::format("The plan's {} per rank are for a training step, which also needs: {}.", bytes, all);
  // Keys and values that are live at the peak of a pass count as cache in the plan, and as peak in the pass.
  const std::int64_t atPeak = notKept - (plan.cost.bytes() - plan.memory.total());
  return fmt::format(
      "The plan's {} per rank include memory that one forward pass does not use: {}{}.", bytes, all,
      atPeak <= 0 ? ""
                  : fmt::format(" ({} of it is live at the peak, and counts for the pass too)", bytesText(atPeak)));
}

std::string dropoutOffText(const Plan& plan) {
  const ModelInfo& model = plan.model;
  if (model.input.dropout || model.dropouts.empty()) return {};
  return fmt::format("Dropout is off: config.json has {}. --dropout on trains with it.", model.dropouts);
}

std::string idleSequenceText(const Plan& plan) {
  if (plan.spec.sequenceParallel != rules::SequenceParallel::On || plan.spec.ranks == 1) return {};
  if (std::any_of(plan.layers.begin(), plan.layers.end(),
                  [](const LayerPlan& layer) { return layer.sequenceParallel; }))
    return {};
  const std::string idle = "sequence parallelism is on, but the plan splits no sequence: ";
  if (plan.model.sequence % plan.spec.ranks != 0)
    return idle + rules::doesNotDivide(plan.model.sequence, "position", plan.spec.ranks);
  const bool isSplit = std::any_of(plan.layers.begin(), plan.layers.end(), [](const LayerPlan& layer) {
    return std::holds_alternative<Split>(layer.replication);
  });
  if (!isSplit) return idle + "no layer is split, so no result is scattered";
  return idle + (plan.spec.engine == solve::Engine::Optimal ? "the best plan by time and memory does not use it"
                                                            : "the first plan found does not use it");
}

std::vector<ReplicatedLayers> replicatedLayers(const Plan& plan) {
  std::array<ReplicatedLayers, static_cast<std::size_t>(ReplicatedCause::NotKnown) + 1> byKind;
  for (const LayerPlan& layer : plan.layers) {
    if (plan.spec.ranks == 1 || layer.weight.empty() || std::holds_alternative<Split>(layer.replication)) continue;
    const ReplicatedCause why = causeOf(layer.replication);
    ReplicatedLayers& same = byKind[static_cast<std::size_t>(why)];
    if (same.count++ == 0) same = {why, 1, layer.node};
  }
  std::vector<ReplicatedLayers> whole;
  for (const ReplicatedLayers& layers : byKind)
    if (layers.count > 0) whole.push_back(layers);
  return whole;
}

std::string toText(const ReplicatedLayers& layers) {
  const bool isOne = layers.count == 1;
  switch (layers.why) {
    case ReplicatedCause::Cannot: return fmt::format("{} cannot be split", layers.count);
    case ReplicatedCause::CannotAsRead: return fmt::format("{} cannot be split without redistribution", layers.count);
    case ReplicatedCause::OverBudget:
      return fmt::format("{} {} not fit the memory budget when split", layers.count, isOne ? "does" : "do");
    case ReplicatedCause::DoesNotPay:
      return fmt::format("{} {} not gain time or memory when split", layers.count, isOne ? "does" : "do");
    case ReplicatedCause::NotAskedFor: return fmt::format("{} could be split with other settings", layers.count);
    case ReplicatedCause::FirstFound:
      return fmt::format("{} {} replicated in the first plan found", layers.count, isOne ? "is" : "are");
    case ReplicatedCause::NotKnown: break;
  }
  return fmt::format("the reason for {} is unknown", layers.count);
}

std::string replicatedText(const std::vector<ReplicatedLayers>& layers) {
  std::size_t count = 0;
  std::vector<std::string> causes;
  for (const ReplicatedLayers& same : layers) {
    count += same.count;
    causes.push_back(toText(same));
  }
  if (count == 0) return {};
  return fmt::format("{} replicated: {}", counted(static_cast<std::int64_t>(count), "layer is", "layers are"),
                     fmt::join(causes, ", "));
}

}  // namespace cleave::plan
