#include "views/run/run_export.h"

#include "base/json.h"
#include "views/base/text.h"

#include <nlohmann/json.hpp>

namespace cleave::views {

namespace {
std::vector<std::int64_t> processBytes(const RankView& rank) {
  std::vector<std::int64_t> bytes;
  for (const MemoryPoint& point : rank.history) bytes.push_back(point.process);
  return bytes;
}
}  // namespace

QString runToJson(const RunState& state) {
  pipeline::RunReport stopped;
  stopped.verdict = pipeline::RunVerdict::NotChecked;
  stopped.spec.backend = state.backend;
  stopped.notes.push_back(toStd(state.failure));
  auto root = nlohmann::ordered_json::parse(pipeline::toJson(state.report ? *state.report : stopped, *state.plan));
  for (const RankView& rank : state.monitor->snapshot())
    root["watched"].push_back({{"rank", rank.rank},
                               {"state", toStd(rank.state())},
                               {"peak_memory", rank.memory.peak.program},
                               {"peak_rss", rank.memory.peak.process},
                               {"process_bytes_10hz", processBytes(rank)}});
  return toQ(jsonText(root, 1));
}

QString runToCsv(const RunState& state) {
  QString csv = QStringLiteral("rank,milliseconds,program_bytes,process_bytes\n");
  for (const RankView& rank : state.monitor->snapshot())
    for (const MemoryPoint& point : rank.history)
      csv += QStringLiteral("%1,%2,%3,%4\n").arg(rank.rank).arg(point.atMs).arg(point.program).arg(point.process);
  return csv;
}

}  // namespace cleave::views
