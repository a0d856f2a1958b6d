#pragma once
/// What ranks did against what their plan says they do: collectives, bytes read, allocations.
#include "launch/launcher.h"
#include "plan/plan.h"

namespace cleave::pipeline {

/// Listens to the events of a run and compares; one run each.
///
///     Conduct conduct(plan, {.readsWeights = true});
///     launch(request, [&](const launch::RankEvent& event) { conduct.observe(event); });
///     report.violations = conduct.violations(outcome);
class Conduct {
 public:
  Conduct(const plan::Plan& plan, launch::Backend backend, bool readsWeights, const program::Training& training = {});
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
  std::size_t planned() const { return m_ofStep.size() * static_cast<std::size_t>(m_steps); }
  void addCollectives(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  void addBytes(const protocol::RankResult& result, int rank, std::vector<std::string>& found) const;
  const plan::Plan& m_plan;
  launch::Backend m_backend;
  bool m_readsWeights;
  std::vector<plan::CollectivePlan> m_ofStep;  ///< of a forward pass, or of a training step, in order
  std::int64_t m_steps = 1;
  std::vector<Rank> m_ranks;
};

}  // namespace cleave::pipeline
