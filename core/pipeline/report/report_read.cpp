#include "pipeline/report/report_read.h"

#include "base/schema_reader.h"
#include "pipeline/report/report_schema.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

PastRun pastRunOf(RunReport report, ReportDocument<RunReport>& document) {
  if (!report.spec.rtol || !report.spec.atol) report.spec.rtol = report.spec.atol = std::nullopt;
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    report.steps[i].step = static_cast<std::int64_t>(i) + 1;
    report.steps[i].steps = report.spec.training.steps;
  }
  report.outcome.results.resize(static_cast<std::size_t>(document.ranksOfRun()));
  for (RankEntry& entry : document.ranks)
    report.outcome.results[static_cast<std::size_t>(entry.rank)] = std::move(entry.result);
  for (MemoryEntry& entry : document.memory) {
    std::erase_if(entry.memory.lines, [](const MemoryLine& line) { return line.name.empty(); });
    report.memory[entry.rank] = std::move(entry.memory);
  }
  auto& failure = report.outcome.firstFailure;
  report.outcome.succeeded = !failure;
  if (failure) {
    failure->failed = true;
    report.verdict = RunVerdict::Failed;
  }
  return {.plan = std::move(document.plan),
          .mode = std::move(document.mode),
          .arguments = std::move(document.arguments),
          .report = std::move(report),
          .predictedStepNs = std::round(document.predictedStepUs * 1000)};
}

}  // namespace

Result<PastRun> readReport(std::string_view text, std::string_view where) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, where, {.bytes = kMostReportBytes}));
  CLEAVE_TRY(const JsonObject root, JsonObject::of(json, std::string(where)));
  CLEAVE_TRY(const std::string schema, root.text("schema"));
  if (schema != kReportSchema) {
    return fail(ErrorCode::BadInput, "{}: schema is {}, but a report of a run has {}.", where, quotedText(schema),
                quotedText(kReportSchema));
  }
  RunReport report;
  ReportDocument<RunReport> document{report};
  schema::Reader v(root);
  fields(v, document);
  CLEAVE_TRY_VOID(std::move(v).finish());
  return pastRunOf(std::move(report), document);
}

}  // namespace cleave::pipeline
