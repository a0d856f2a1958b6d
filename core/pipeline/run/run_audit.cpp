#include "pipeline/run/run_audit.h"

#include "base/quantities.h"
#include "pipeline/memory/replica_collectives.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

std::string textOf(std::string_view kind, std::int64_t bytes) {
  return fmt::format("{} of {}", kind, counted(bytes, "byte"));
}

std::int64_t largestPart(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (const program::ParameterShards& parameter : plan.parameters)
    bytes = std::max(bytes, graph::sizeInBytes({parameter.type.dtype, parameter.localShape}));
  return bytes;
}

/// The collectives of a forward pass or a training step. A training step has those of each micro-batch, forward and
/// backward; then the sums of the parameters' gradients over a replica's ranks and over the replicas; then the sum for
/// their norm.
std::vector<plan::CollectivePlan> collectivesOfStep(const plan::Plan& plan, const program::Training& training,
                                                    int replicas) {
  if (!training.isAsked() || !plan.backward) return plan.collectives;
  std::vector<plan::CollectivePlan> micro = plan.collectives, sums, step;
  for (const program::BackwardCollective& backward : plan.backward->collectives) {
    const bool isAtEnd = !backward.node.isValid();
    const std::string after =
        isAtEnd ? "the gradients of parameters"
                : "the gradient of " + plan.program->value(plan.program->node(backward.node).results[0]).name;
    (isAtEnd ? sums : micro).push_back({after, backward.collective.kind, backward.collective.bytes, backward.node});
  }
  std::ranges::copy(replicaCollectives(plan, replicas), std::back_inserter(sums));
  if (training.clipNorm && plan.spec.ranks > 1)
    sums.push_back({"the norm of the gradients", rules::CollectiveKind::AllReduce, 8, {}});
  for (std::int64_t i = 0; i < training.accumulate; ++i) step.insert(step.end(), micro.begin(), micro.end());
  step.insert(step.end(), sums.begin(), sums.end());
  return step;
}

}  // namespace

RunAudit::RunAudit(const plan::Plan& plan, bool readsWeights, const program::Training& training, int replicas)
    : m_plan(plan),
      m_readsWeights(readsWeights),
      m_mesh({.dp = replicas, .tp = plan.spec.ranks}),
      m_parts{{collectivesOfStep(plan, training, replicas), std::max<std::int64_t>(1, training.steps)}},
      m_ranks(static_cast<std::size_t>(m_mesh.ranks())) {}

std::size_t RunAudit::planned() const {
  std::size_t count = 0;
  for (const Part& part : m_parts) count += part.count();
  return count;
}

const plan::CollectivePlan* RunAudit::plannedAt(std::size_t index) const {
  for (const Part& part : m_parts) {
    if (index < part.count()) return &part.collectives[index % part.collectives.size()];
    index -= part.count();
  }
  return nullptr;
}

void RunAudit::observe(const launch::RankEvent& event) {
  // All ranks have the same tokens, so they end at the same step. Collectives after that step are violations.
  if (const auto* done = event.message ? std::get_if<protocol::Generated>(&*event.message) : nullptr;
      done && event.rank == 0 && m_parts.size() > 1)
    m_parts.back().times = std::clamp<std::int64_t>(done->steps, 0, m_parts.back().times);
  const auto* done = event.message ? std::get_if<protocol::CollectiveDone>(&*event.message) : nullptr;
  if (!done || event.rank < 0 || static_cast<std::size_t>(event.rank) >= m_ranks.size()) return;
  Rank& rank = m_ranks[static_cast<std::size_t>(event.rank)];
  const std::size_t index = rank.collectives++;
  const plan::CollectivePlan* const expected = plannedAt(index);
  if (!rank.firstDeviation.empty() || !expected) return;
  const plan::CollectivePlan& planned = *expected;
  if (done->kind == rules::toText(planned.kind) && done->bytes == planned.bytes &&
      done->index == static_cast<std::int32_t>(index))
    return;
  rank.firstDeviation = fmt::format("Rank {} executed {} as collective {}, but the plan has {} (after {}).", event.rank,
                                    textOf(done->kind, done->bytes), index + 1,
                                    textOf(rules::toText(planned.kind), planned.bytes), planned.after);
}

void RunAudit::addCollectives(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const {
  const Rank& seen = m_ranks[static_cast<std::size_t>(rank)];
  if (!seen.firstDeviation.empty()) found.push_back(seen.firstDeviation);
  if (seen.collectives != planned()) {
    found.push_back(fmt::format("Rank {} reported {}, but the plan has {}.", rank,
                                counted(static_cast<std::int64_t>(seen.collectives), "collective"), planned()));
  }
  std::map<rules::CollectiveKind, std::int64_t> byKind;
  for (const Part& part : m_parts) {
    for (const auto& [kind, traffic] : plan::trafficByKind(part.collectives))
      byKind[kind] += traffic.count * part.times;
  }
  for (const auto& [kind, executed] : {std::pair{rules::CollectiveKind::AllReduce, result.allReduce},
                                       {rules::CollectiveKind::AllGather, result.allGather},
                                       {rules::CollectiveKind::ReduceScatter, result.reduceScatter}}) {
    const std::int64_t count = byKind[kind];
    if (executed != count)
      found.push_back(
          fmt::format("Rank {} counted {} × {}, but the plan has {}.", rank, executed, rules::toText(kind), count));
  }
}

void RunAudit::addBytes(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const {
  const std::int64_t shard = m_readsWeights ? program::shardBytes(m_plan.parameters, m_mesh.placeOf(rank)) : 0;
  if (result.bytesRead != shard) {
    found.push_back(fmt::format("Rank {} read {} of weights, but its part of the shard map has {}.", rank,
                                counted(result.bytesRead, "byte"), shard));
  }
  const std::int64_t allowed = largestPart(m_plan) + program::kStagingBytes;
  if (result.largestParameterAllocation > allowed) {
    found.push_back(fmt::format(
        "Rank {} allocated {} bytes at once during loading. Its largest parameter part plus the staging is {}.", rank,
        result.largestParameterAllocation, allowed));
  }
}

std::vector<std::string> RunAudit::violations(const launch::RunOutcome& outcome) const {
  std::vector<std::string> found;
  for (int rank = 0; rank < m_mesh.ranks(); ++rank) {
    const auto& result = outcome.results[static_cast<std::size_t>(rank)];
    if (!result) continue;
    addCollectives(*result, rank, found);
    addBytes(*result, rank, found);
  }
  return found;
}

}  // namespace cleave::pipeline
