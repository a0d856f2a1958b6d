#include "pipeline/run/prepare_run.h"

#include "base/quantities.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/memory/memory_check.h"
#include "pipeline/memory/rank_memory.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/unsplit_place.h"
#include "plan/text/headline.h"
#include "program/backward.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

/// Notes why the tolerance is larger than on CPUs.
void noteSumsOfNccl(RunReport& report, const RunRequest& request) {
  const graph::DType dtype = request.plan->model.dtype;
  if (!isHalf(dtype) || report.backend != launch::Backend::Nccl || request.mesh().ranks() <= 2) return;
  report.notes.push_back(fmt::format("NCCL sums {} in {}, with {} roundings per sum; Gloo sums it in float32.",
                                     graph::toText(dtype), graph::toText(dtype), request.mesh().ranks() - 1));
}

/// Notes the parameters that the run does not train.
void noteFrozen(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked() || !request.plan->backward) return;
  const graph::Graph& program = *request.plan->program;
  std::int64_t all = 0, trained = 0;
  for (const graph::Node& node : program.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    ++all;
    trained += request.plan->backward->gradients.of(node.results[0]);
  }
  const std::int64_t frozen = std::ssize(program.frozen), others = all - trained - frozen;
  if (trained == all) return;
  std::string text = fmt::format("{} of {} parameters are trained.", trained, all);
  if (frozen > 0) text += fmt::format(" {} {} or frozen.", frozen, frozen == 1 ? "is a buffer" : "are buffers");
  if (others > 0) text += fmt::format(" {} {} no gradient from the loss.", others, others == 1 ? "gets" : "get");
  report.notes.push_back(std::move(text));
}

/// The buffers that the program changes. `areRead`: those that its results depend on; otherwise the others.
std::vector<std::string> writtenBuffers(const plan::Plan& plan, bool areRead) {
  std::vector<std::string> names;
  for (const std::string& name : plan.model.writtenBuffers) {
    const auto value = plan.graph->findValue(name);
    const bool isRead = value.isValid() && !plan.graph->value(value).users.empty();
    if (isRead == areRead) names.push_back(name);
  }
  return names;
}

std::string firstOf(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
}

void noteWritten(RunReport& report, const RunRequest& request) {
  if (!request.training.isAsked()) return;
  const std::vector<std::string> written = writtenBuffers(*request.plan, false);
  if (written.empty()) return;
  report.notes.push_back(fmt::format(
      "The program writes to {} ({}) that its results do not read. Cleave does not keep these writes, so "
      "{} after training differ from PyTorch's.",
      counted(std::ssize(written), "buffer"), firstOf(written), written.size() == 1 ? "its values" : "their values"));
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

Result<void> checkTraining(const RunRequest& request) {
  if (!request.training.isAsked()) return {};
  CLEAVE_TRY_VOID(program::check(request.training));
  const plan::Plan& plan = *request.plan;
  if (!plan.costSettings.isTraining)
    return fail(ErrorCode::BadInput, "The plan is not for training. Plan again with --train.");
  const std::vector<std::string> written = writtenBuffers(plan, true);
  if (!written.empty() && request.training.steps * request.training.accumulate > 1) {
    return fail(ErrorCode::BadInput,
                "{}: each pass of the program changes the buffer {}, which the next pass reads. Cleave does not keep "
                "buffers between passes. Run one step (--train-steps 1), or export the model in eval mode.",
                plan.model.source, firstOf(written));
  }
  if (plan.backward) return {};
  CLEAVE_TRY_VOID(program::backwardOf(*plan.program, plan.parameters, plan.ranks, plan.checkpointed));
  return {};
}

Result<RunReport> beginReport(const RunRequest& request, const launch::BackendChoice& choice) {
  RunReport report;
  report.backend = choice.backend;
  report.coarsest = coarsestType(*request.plan->graph);
  if (request.rtol || request.atol) {
    report.rtol = request.rtol.value_or(0);
    report.atol = request.atol.value_or(0);
  }
  report.warnings = request.plan->warnings;
  report.mesh = request.mesh();
  report.training = request.training;
  const plan::ModelInfo& info = request.plan->model;
  CLEAVE_TRY_VOID(program::checkReplicated(report.mesh, info.source, info.isExported));
  CLEAVE_TRY_VOID(checkTraining(request));
  if (!choice.why.empty()) report.notes.push_back(choice.why);
  noteSumsOfNccl(report, request);
  noteFrozen(report, request);
  noteWritten(report, request);
  if (const std::string isOff = plan::dropoutOffText(*request.plan); request.training.isAsked() && !isOff.empty())
    report.notes.push_back(isOff);
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
