#pragma once
/// Saved runs as text and charts: one run, or two side by side with their different settings.
#include "views/base/rich_text.h"
#include "views/run/line_chart.h"
#include "views/session/run_history.h"

namespace cleave::views {

QString modelText(const pipeline::PastRun& run);     ///< "tiny-llama": the end of its path
QString planText(const pipeline::PastRun& run);      ///< "reference, 2 ranks, gloo"
QString verdictText(const pipeline::PastRun& run);   ///< "passed"
QString lossText(const pipeline::PastRun& run);      ///< losses of a training run, "6.02 → 4.24"; empty: no training
QString stepTimeText(const pipeline::PastRun& run);  ///< "35.9 ms"; empty: no rank finished
QString endedText(const QDateTime& at);              ///< in local time

/// Everything known about one run.
QString runHtml(const KeptRun& run, const TextColors& colors);
/// Settings that differ, verdicts, losses, times, and memory by category.
QString comparisonHtml(const KeptRun& a, const KeptRun& b, const TextColors& colors);
/// Losses of training runs over their steps. Without lines if neither run trained.
ChartData lossesOf(const std::vector<std::shared_ptr<const KeptRun>>& runs);

}  // namespace cleave::views
