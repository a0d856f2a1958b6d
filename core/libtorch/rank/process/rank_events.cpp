#include "libtorch/rank/process/rank_events.h"

#include "base/throttle.h"

#include <chrono>
#include <string>

namespace cleave::torch_rank {
namespace {

constexpr auto kReportPeriod = std::chrono::milliseconds(50);

}  // namespace

Progress::Sink RankEvents::progressOf(protocol::Phase phase) const {
  if (m_isQuiet) return {};
  return [&sink = m_sink, phase, reports = Throttle(kReportPeriod)](const ProgressUpdate& update) mutable {
    if (reports.isDue(std::chrono::steady_clock::now())) sink(protocol::PhaseChange{phase, update.done, update.total});
  };
}

void RankEvents::observe(Collectives& collectives) const {
  collectives.resetCounts();
  if (m_isQuiet) return;
  collectives.setObserver([&sink = m_sink, index = std::int32_t(0)](const CollectiveRecord& record) mutable {
    sink(protocol::CollectiveDone{index++, std::string(record.kind), record.bytes, record.time.count()});
  });
}

}  // namespace cleave::torch_rank
