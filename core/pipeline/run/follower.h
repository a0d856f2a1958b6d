#pragma once
/// Collects the reports of the ranks of one plan.
#include "launch/launcher.h"
#include "pipeline/report/run_report.h"
#include "pipeline/report/timeline.h"
#include "pipeline/run/run_audit.h"
#include "pipeline/run/run_request.h"
#include "protocol/events.h"

#include <map>
#include <string>
#include <vector>

namespace cleave::pipeline {

class Follower {
 public:
  /// The request must outlive this object. `loads`: the ranks load weights, and do not have them already.
  explicit Follower(const RunRequest& request, bool loads = true);
  void observe(const launch::RankEvent& event);
  /// Requires a run that succeeded, with its outcome in `report`.
  void addTo(RunReport& report) const;
  const std::vector<protocol::TrainingStep>& steps() const { return m_steps; }
  /// By rank; empty if the run does not generate.
  const std::map<int, protocol::Generated>& generated() const { return m_generated; }

 private:
  const RunRequest& m_request;
  RunAudit m_audit;
  TimelineCollector m_times;
  std::map<int, protocol::MemoryAccount> m_accounts;
  std::vector<protocol::TrainingStep> m_steps;  ///< training steps of rank 0
  std::map<int, protocol::Generated> m_generated;
  std::string m_precision;  ///< see RunReport::precision; from rank 0
};

}  // namespace cleave::pipeline
