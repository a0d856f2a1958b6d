#include "cli/run_documents.h"

#include "cli/console.h"

namespace cleave::cli {

Result<RunDocuments> RunDocuments::open(std::string json, std::string timeline, std::stop_token stop) {
  RunDocuments documents;
  if (!json.empty() && json != "-") {
    CLEAVE_TRY(documents.m_reportFile, OutputFile::open(json, stop));
  }
  if (!timeline.empty() && timeline != "-") {
    CLEAVE_TRY(documents.m_timelineFile, OutputFile::open(timeline, stop));
  }
  documents.m_json = std::move(json);
  documents.m_timeline = std::move(timeline);
  return documents;
}

Result<void> RunDocuments::writeReport(const std::string& text) {
  if (m_json == "-") return writeOutput(m_json, text);
  if (!m_reportFile) return {};
  CLEAVE_TRY_VOID(m_reportFile->write(text));
  return m_reportFile->finish();
}

Result<void> RunDocuments::writeTimeline(const pipeline::Timeline& recorded, const plan::Plan& plan) {
  if (m_timeline.empty() || recorded.isEmpty()) return {};
  const std::string text = pipeline::toChromeTrace(recorded, plan);
  if (!m_timelineFile) return writeOutput(m_timeline, text);
  CLEAVE_TRY_VOID(m_timelineFile->write(text));
  return m_timelineFile->finish();
}

Result<void> RunDocuments::print(const std::string& text) const {
  return m_json == "-" || m_timeline == "-" ? Result<void>() : writeOutput("-", text);
}

}  // namespace cleave::cli
