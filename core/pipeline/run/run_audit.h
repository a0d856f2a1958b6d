#pragma once
/// Compares the ranks' collectives, reads and allocations with their plan.
#include "launch/launcher.h"
#include "plan/plan.h"
#include "program/mesh.h"

namespace cleave::pipeline {

/// Observes the events of one run.
///
///     RunAudit audit(plan, /*readsWeights=*/true);
///     launch(request, [&](const launch::RankEvent& event) { audit.observe(event); });
///     report.violations = audit.violations(outcome);
class RunAudit {
 public:
  /// `replicas`: see RunRequest.
  RunAudit(const plan::Plan& plan, bool readsWeights, const program::Training& training = {}, int replicas = 1);
  /// For a run that generates: expects `step` after `plan`. The ranks report how often it ran: at most `most` times.
  void expectSteps(const plan::Plan& step, std::int64_t most) { m_parts.push_back({step.collectives, most}); }
  void observe(const launch::RankEvent& event);
  /// One sentence for each rank and each kind of deviation; empty if the run was as planned. Compares collectives by
  /// kind, bytes and order, payload bytes with the shard map, and the largest allocation during loading with the
  /// largest parameter part plus the staging. Requires a run that succeeded.
  std::vector<std::string> violations(const launch::RunOutcome& outcome) const;

 private:
  struct Rank {
    std::size_t collectives = 0;  ///< number of collectives so far
    std::string firstDeviation;
  };
  /// Collectives that repeat `times` times.
  struct Part {
    std::vector<plan::CollectivePlan> collectives;  ///< in order
    std::int64_t times = 1;
    std::size_t count() const { return collectives.size() * static_cast<std::size_t>(times); }
  };
  std::size_t planned() const;
  /// Null if the plan has fewer collectives.
  const plan::CollectivePlan* plannedAt(std::size_t index) const;
  void addCollectives(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  void addBytes(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  const plan::Plan& m_plan;
  bool m_readsWeights;
  program::Mesh m_mesh;
  std::vector<Part> m_parts;  ///< a forward pass or training steps; then decode steps
  std::vector<Rank> m_ranks;
};

}  // namespace cleave::pipeline
