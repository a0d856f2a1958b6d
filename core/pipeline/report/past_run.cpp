#include "pipeline/report/past_run.h"

#include <algorithm>

namespace cleave::pipeline {

std::optional<double> PastRun::loss() const {
  if (!report.steps.empty()) return report.steps.back().loss;
  const auto& results = report.outcome.results;
  if (results.empty() || !results.front() || !results.front()->hasLoss) return std::nullopt;
  return results.front()->loss;
}

std::optional<double> PastRun::stepMicroseconds() const {
  std::vector<double> times;
  for (const protocol::TrainingStep& step : report.steps) times.push_back(static_cast<double>(step.microseconds));
  if (!times.empty()) {
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }
  for (const auto& result : report.outcome.results) {
    if (result) times.push_back(static_cast<double>(result->stepMicroseconds));
  }
  if (times.empty()) return std::nullopt;
  return *std::max_element(times.begin(), times.end());
}

}  // namespace cleave::pipeline
