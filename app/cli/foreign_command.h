#pragma once
/// `cleave-cli plan MODEL --tp-plan FILE`: the plan of another library, checked, priced, and beside the plan that the
/// engine finds.
#include "cli/planning.h"

namespace cleave::cli {

/// The plan that another library's demands make of the model of these settings; nothing of what the file says of ranks.
/// Negative: its layers disagree, or no plan is so.
Result<std::shared_ptr<const plan::Plan>> foreignPlan(PlanSettings asked, const std::string& file,
                                                      const Progress& progress);

/// `file`: what exchange::readForeignPlan reads, or "own". Without `asksRanks` the file's number of ranks counts.
Result<int> showForeignPlan(PlanSettings asked, bool asksRanks, const std::string& file, const std::string& json,
                            const Progress& progress);

}  // namespace cleave::cli
