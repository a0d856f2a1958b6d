#pragma once
/// The files of a run: its report in JSON and its timeline. They are opened before the ranks start, so that a file that
/// cannot be written is known at once.
#include "base/output_file.h"
#include "pipeline/report/timeline.h"
#include "plan/plan.h"

#include <optional>
#include <string>

namespace cleave::cli {

class RunDocuments {
 public:
  /// `json`, `timeline`: a file, "-" for standard output, or empty.
  static Result<RunDocuments> open(std::string json, std::string timeline, std::stop_token stop);
  Result<void> writeReport(const std::string& text);
  Result<void> writeTimeline(const pipeline::Timeline& recorded, const plan::Plan& plan);
  /// Prints text for people, unless standard output gets one of the documents.
  Result<void> print(const std::string& text) const;

 private:
  std::string m_json, m_timeline;
  std::optional<OutputFile> m_reportFile, m_timelineFile;
};

}  // namespace cleave::cli
