#include "pipeline/run/follower.h"

#include "pipeline/report/memory_account.h"
#include "pipeline/report/replica_sum.h"

namespace cleave::pipeline {
namespace {

std::map<int, MemoryComparison> memoryByRank(const std::map<int, protocol::MemoryAccount>& accounts,
                                             const launch::RunOutcome& outcome, const RunRequest& request) {
  std::map<int, MemoryComparison> byRank;
  for (const auto& [rank, account] : accounts) {
    const auto& result = outcome.results[static_cast<std::size_t>(rank)];
    if (!result) continue;
    byRank[rank] = compareMemory(account, *request.plan, request.training.isAsked(),
                                 result->peak.process - result->peak.program, request.replicas);
  }
  return byRank;
}

}  // namespace

Follower::Follower(const RunRequest& request, bool loads)
    : m_request(request),
      m_audit(*request.plan, loads && !request.skipWeights, request.training, request.replicas),
      m_times(request.mesh().ranks()) {
  if (request.step) m_audit.expectSteps(*request.step, request.generation.tokens - 1);
}

void Follower::observe(const launch::RankEvent& event) {
  m_audit.observe(event);
  m_times.observe(event);
  if (!event.message) return;
  if (const auto* account = std::get_if<protocol::MemoryAccount>(&*event.message)) m_accounts[event.rank] = *account;
  if (const auto* done = std::get_if<protocol::Generated>(&*event.message)) m_generated[event.rank] = *done;
  if (const auto* hello = std::get_if<protocol::Hello>(&*event.message); hello && event.rank == 0)
    m_precision = hello->precision;
  const auto* step = std::get_if<protocol::TrainingStep>(&*event.message);
  if (step && event.rank == 0 && std::ssize(m_steps) < m_request.training.steps) m_steps.push_back(*step);
}

void Follower::addTo(RunReport& report) const {
  report.precision = m_precision;
  report.violations = m_audit.violations(report.outcome);
  report.memory = memoryByRank(m_accounts, report.outcome, m_request);
  if (m_request.step) return;  // decode steps are not recorded
  if (auto timeline = m_times.timeline(*m_request.plan->program)) {
    report.timeline = *std::move(timeline);
  } else {
    report.notes.push_back(timeline.error().message);
  }
  if (m_request.training.isAsked()) report.replicaSum = replicaSum(*m_request.plan, report.mesh, report.timeline);
}

}  // namespace cleave::pipeline
