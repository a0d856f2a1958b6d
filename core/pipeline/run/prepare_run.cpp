#include "pipeline/run/prepare_run.h"

#include "base/quantities.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/memory/memory_check.h"
#include "pipeline/memory/rank_memory.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/modes.h"
#include "pipeline/run/unsplit_place.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

/// Notes why the tolerance is larger than on CPUs.
void noteSumsOfNccl(RunReport& report, const RunRequest& request) {
  const graph::DType dtype = request.plan->model.dtype;
  if (!isHalf(dtype) || report.spec.backend != launch::Backend::Nccl || request.mesh().ranks() <= 2) return;
  report.notes.push_back(fmt::format("NCCL sums {} in {}, with {} roundings per sum; Gloo sums it in float32.",
                                     graph::toText(dtype), graph::toText(dtype), request.mesh().ranks() - 1));
}

/// Notes parameters that are cast while they are loaded, as from_pretrained does.
void noteCasts(RunReport& report, const RunRequest& request) {
  if (!request.readsWeights()) return;
  std::map<std::string, std::int64_t> byType;
  for (const program::ParameterShards& parameter : request.plan->parameters) {
    if (parameter.isStoredFor(0) && parameter.storedDtype != parameter.type.dtype)
      ++byType[fmt::format("stored as {} and computed in {}", graph::toText(parameter.storedDtype),
                           graph::toText(parameter.type.dtype))];
  }
  for (const auto& [how, count] : byType)
    report.notes.push_back(fmt::format("{} of {} {} {}.", count,
                                       counted(std::ssize(request.plan->parameters), "parameter"),
                                       count == 1 ? "is" : "are", how));
}

/// Notes inputs without effect, such as position_ids: the program of a folder has no input for them.
void noteUnusedInputs(RunReport& report, const RunRequest& request) {
  if (!request.input) return;
  auto unused = unusedInputs(*request.plan, *request.input);
  if (unused && request.generation.isAsked())
    std::erase_if(*unused, [](const std::string& name) { return name == "prompt" || name == "tokens"; });
  if (!unused || unused->empty()) return;  // if the file is wrong, the ranks report why
  constexpr std::ptrdiff_t kMostNamed = 3;
  const auto count = std::ssize(*unused), named = std::min(count, kMostNamed);
  report.notes.push_back(fmt::format("{} also has {}{}. This plan has no such input, so the run does not use {}.",
                                     request.input->string(), fmt::join(unused->begin(), unused->begin() + named, ", "),
                                     count > named ? fmt::format(" and {} more", count - named) : "",
                                     count == 1 ? "it" : "them"));
}

}  // namespace

Result<launch::BackendChoice> backendFor(const RunRequest& request, const Progress& progress) {
  if (request.remote) return launch::BackendChoice{request.backend, {}};
  const std::int64_t bytes = request.ignoreMemory ? 0 : gpuBytes(*request.plan, request.workload());
  return launch::chooseBackend(request.backend, request.mesh().ranks(), bytes, progress);
}

Result<RunReport> beginReport(const RunRequest& request, const launch::BackendChoice& choice) {
  RunReport report;
  report.spec = request;
  report.spec.backend = choice.backend;
  report.coarsest = coarsestType(*request.plan->graph);
  if (request.rtol || request.atol) {
    report.spec.rtol = request.rtol.value_or(0);
    report.spec.atol = request.atol.value_or(0);
  }
  report.warnings = request.plan->warnings;
  report.mesh = request.mesh();
  const plan::ModelInfo& info = request.plan->model;
  CLEAVE_TRY_VOID(program::checkReplicated(report.mesh, info.source, info.isExported));
  if (!choice.why.empty()) report.notes.push_back(choice.why);
  noteSumsOfNccl(report, request);
  CLEAVE_TRY_VOID(stepsOf(request).validate(request, report));
  const FolderCheck folder = checkFolder(request);
  if (!folder.holds()) return fail(ErrorCode::BadInput, "{}", folder.text);
  noteCasts(report, request);
  noteUnusedInputs(report, request);
  return report;
}

Result<void> checkRoom(const RunRequest& request, launch::Backend backend, RunReport& report) {
  std::vector<MemoryCheck> checks;
  if (!request.remote) checks.push_back(checkMemory(*request.plan, backend, request.workload()));
  if (request.comparesUnsplit() &&
      unsplitPlace(*request.plan, request.workload(), backend).backend == launch::Backend::Gloo)
    checks.push_back(checkUnsplitMemory(*request.plan, request.workload()));
  for (const MemoryCheck& memory : checks) {
    if (memory.fits()) continue;
    if (!request.ignoreMemory) return fail(ErrorCode::Environment, "{}", memory.text);
    report.notes.push_back(memory.text);
  }
  return {};
}

}  // namespace cleave::pipeline
