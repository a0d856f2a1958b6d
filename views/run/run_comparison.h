#pragma once
/// Runs that were kept, in words and lines: one of them, or two side by side with what differs in their settings.
#include "views/base/rich_text.h"
#include "views/run/line_chart.h"
#include "views/session/run_history.h"

namespace cleave::views {

QString modelText(const pipeline::PastRun& run);     ///< "tiny-llama": the end of its path
QString planText(const pipeline::PastRun& run);      ///< "reference, 2 ranks, gloo"
QString verdictText(const pipeline::PastRun& run);   ///< "passed"
QString lossText(const pipeline::PastRun& run);      ///< of training "6.02 → 4.24"; empty: it has none
QString stepTimeText(const pipeline::PastRun& run);  ///< "35.9 ms"; empty: no rank was through
QString endedText(const QDateTime& at);              ///< of this place's clock

/// All that is known of one.
QString runHtml(const KeptRun& run, const TextColors& colors);
/// Settings that differ, verdicts, losses, times, and memory by category.
QString comparisonHtml(const KeptRun& a, const KeptRun& b, const TextColors& colors);
/// Losses of training runs over their steps; without lines where none of them trained.
ChartData lossesOf(const std::vector<std::shared_ptr<const KeptRun>>& runs);

}  // namespace cleave::views
