#pragma once
/// What ranks did against what their plan says they do: collectives, bytes read, allocations.
#include "launch/launcher.h"
#include "plan/plan.h"
#include "program/mesh.h"

namespace cleave::pipeline {

/// Listens to the events of a run and compares; one run each.
///
///     Conduct conduct(plan, /*readsWeights=*/true);
///     launch(request, [&](const launch::RankEvent& event) { conduct.observe(event); });
///     report.violations = conduct.violations(outcome);
class Conduct {
 public:
  /// `replicas`: see RunRequest.
  Conduct(const plan::Plan& plan, bool readsWeights, const program::Training& training = {}, int replicas = 1);
  /// Of a run that generates: `step` behind `plan`, as often as the ranks say that it ran, and so many times at most.
  void expectSteps(const plan::Plan& step, std::int64_t most) { m_parts.push_back({step.collectives, most}); }
  void observe(const launch::RankEvent& event);
  /// One sentence for each rank and each kind of deviation: collectives by kind, bytes and order; payload bytes that
  /// were read against the shard map's; the largest allocation while loading against the largest part of a parameter
  /// and the staging. Empty: as planned. For a run that succeeded.
  std::vector<std::string> violations(const launch::RunOutcome& outcome) const;

 private:
  struct Rank {
    std::size_t collectives = 0;  ///< done so far
    std::string firstDeviation;
  };
  /// What is done some times in a row.
  struct Part {
    std::vector<plan::CollectivePlan> collectives;  ///< in order
    std::int64_t times = 1;
    std::size_t count() const { return collectives.size() * static_cast<std::size_t>(times); }
  };
  std::size_t planned() const;
  /// Null: there is none of this index.
  const plan::CollectivePlan* plannedAt(std::size_t index) const;
  void addCollectives(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  void addBytes(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  const plan::Plan& m_plan;
  bool m_readsWeights;
  program::Mesh m_mesh;
  std::vector<Part> m_parts;  ///< a forward pass or training steps; then steps of generation
  std::vector<Rank> m_ranks;
};

}  // namespace cleave::pipeline
