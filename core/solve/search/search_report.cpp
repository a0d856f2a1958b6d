#include "solve/search/search_report.h"

#include <algorithm>

namespace cleave::solve {
namespace {

constexpr std::size_t kMostCauses = 16;

}  // namespace

void ConflictCounter::add(ConflictId id) {
  if (id.index() >= m_counts.size()) m_counts.resize(id.index() + 1, 0);
  ++m_counts[id.index()];
}

std::vector<ConflictRecord> ConflictCounter::records(const Assignment& assignment) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < m_counts.size(); ++i) {
    if (m_counts[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return m_counts[a] > m_counts[b]; });
  std::vector<ConflictRecord> records;
  for (std::size_t i : order) records.push_back(assignment.record(ConflictId(i)));
  return records;
}

std::vector<ConflictRecord> ConflictCounter::causes(const Assignment& assignment) const {
  std::vector<ConflictRecord> causes = records(assignment);
  if (causes.size() > kMostCauses) causes.resize(kMostCauses);
  return causes;
}

}  // namespace cleave::solve
