#pragma once
/// The result of one run for the console: its report, its summary, and why it failed.
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/report/report.h"
#include "plan/plan.h"

#include <optional>
#include <string>

namespace cleave::cli {

struct PassOutcome {
  pipeline::RunVerdict verdict = pipeline::RunVerdict::Failed;
  std::string report;            ///< JSON
  std::string summary;           ///< text for people
  std::optional<Error> failure;  ///< of the first rank that failed
  int exitCode() const;
};
PassOutcome outcomeOf(const pipeline::RunReport& report, const plan::Plan& plan);

/// Prints what ranks write, and shows rank 0's progress. `progress` must outlive the observer.
launch::Observer rankObserver(const Progress& progress);

}  // namespace cleave::cli
